//! Each check: a node where it fires, and nodes on which it must not.

mod cases;
mod node;
mod other_fabrics;

use doctor::{CHECKS, Status};
use node::{healthy, ids};

#[test]
fn a_healthy_node_gives_no_finding() {
    assert_eq!(ids(&healthy()), Vec::<&str>::new());
}

/// A case fires exactly its own checks, so that every other case is one where a check must not fire.
#[test]
fn each_fault_gives_its_finding_and_no_other() {
    for case in cases::all() {
        let mut node = healthy();
        (case.fault)(&mut node);
        let found = ids(&node);
        assert_eq!(found, case.checks, "{}", case.name);
    }
}

#[test]
fn what_only_looks_like_a_fault_gives_none() {
    for (name, change) in cases::innocent() {
        let mut node = healthy();
        change(&mut node);
        assert_eq!(ids(&node), Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn every_check_has_a_case() {
    let cases = cases::all();
    for check in CHECKS
        .iter()
        .filter(|check| check.status() == Status::Configuration)
    {
        assert!(
            cases.iter().any(|case| case.checks.contains(&check.id)),
            "{} never fires",
            check.id
        );
    }
}

#[test]
fn what_is_not_known_gives_no_finding() {
    let mut node = healthy();
    node.facts.node = model::NodeSetup::default();
    for port in &mut node.facts.ports {
        port.setup = model::PortSetup::default();
        port.link = doctor::LinkFacts::default();
        port.dcb = None;
        port.window = None;
        port.port.gids.clear();
        port.port.mtu = None;
        port.port.firmware = None;
    }
    assert_eq!(ids(&node), Vec::<&str>::new());
}

#[test]
fn a_finding_names_its_port_evidence_and_commands_that_are_complete() {
    for case in cases::all() {
        let mut node = healthy();
        (case.fault)(&mut node);
        for finding in doctor::findings(&node.facts, &node.policy) {
            assert!(!finding.evidence.is_empty(), "{}", case.name);
            for command in &finding.commands {
                assert!(!command.contains('{'), "{}: {command}", case.name);
            }
        }
    }
}
