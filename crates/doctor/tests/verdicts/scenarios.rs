//! What is said of each scenario of the simulated server, by rail.

use crate::server::watch;
use doctor::{Facts, Policy, PortName, PortWindow, findings, verdicts};
use sim::{Nic, Scenario};

/// Rail (`None` for the node) and check.
type Said = (Option<usize>, &'static str);

/// Long enough for each look at a scenario of bursts to see some.
const SECONDS: u64 = 10;

/// What is said of the configuration, and of the traffic from `begin` on.
fn said(scenario: Scenario, nic: Nic, begin: u64) -> (Vec<Said>, Vec<Said>) {
    let facts = watch(scenario, nic, begin, SECONDS);
    let policy = Policy::default();
    let windows: Vec<PortWindow> = facts
        .ports
        .iter()
        .filter_map(|port| port.window.clone())
        .collect();
    let configured = findings(&facts, &policy);
    let configured = configured
        .iter()
        .map(|finding| (rail(&facts, finding.port.as_ref()), finding.check.id));
    let told = verdicts(&windows, &policy);
    let told = told
        .iter()
        .map(|verdict| (rail(&facts, verdict.port.as_ref()), verdict.check.id));
    (sorted(configured), sorted(told))
}

fn rail(facts: &Facts, port: Option<&PortName>) -> Option<usize> {
    facts
        .ports
        .iter()
        .position(|facts| Some(&PortName::of(&facts.port)) == port)
}

fn sorted(said: impl Iterator<Item = Said>) -> Vec<Said> {
    let mut said: Vec<_> = said.collect();
    said.sort_unstable();
    said
}

fn expected(scenario: Scenario) -> (Vec<Said>, Vec<Said>) {
    let all = |check| (0..8).map(|rail| (Some(rail), check)).collect();
    match scenario {
        // Healthy, bursts that ECN absorbs, and faults that are no business of a verdict on rates. A speed that was not
        // reached is one of the configuration.
        Scenario::Healthy
        | Scenario::Incast
        | Scenario::LinkFlap
        | Scenario::CounterReset
        | Scenario::StuckFirmware
        | Scenario::Tour => (vec![], vec![]),
        Scenario::PfcStorm => (vec![], vec![(Some(5), "fabric_pauses")]),
        Scenario::SlowReceiver => (vec![], vec![(Some(6), "host_is_slow")]),
        Scenario::BadCable => (vec![], vec![(Some(7), "bad_receive_path")]),
        Scenario::EcnOff => (vec![], vec![(Some(3), "pause_without_ecn")]),
        Scenario::CnpIgnored => (vec![], vec![(Some(3), "cnp_ignored")]),
        Scenario::PfcAllPriorities => (all("pfc_on_all"), vec![(Some(3), "pause_on_lossy")]),
        Scenario::RailImbalance => (vec![], vec![(None, "uneven_rails")]),
        Scenario::SpeedDowngrade => (vec![(Some(1), "link_lanes"), (Some(1), "link_slow")], vec![]),
    }
}

#[test]
fn each_scenario_gives_its_findings_and_verdicts_and_no_others() {
    for scenario in Scenario::ALL {
        // The storm lasts 20 s of each minute, and the tour begins with 30 s of health.
        let begins: &[u64] = match scenario {
            Scenario::PfcStorm => &[10, 20],
            Scenario::Tour => &[10],
            _ => &[10, 20, 40],
        };
        for &begin in begins {
            let found = said(scenario, Nic::default(), begin);
            assert_eq!(found, expected(scenario), "{scenario} from {begin} s on");
        }
    }
}

#[test]
fn a_healthy_server_is_healthy_with_the_nics_of_any_maker() {
    for nic in Nic::ALL {
        let (configured, told) = said(Scenario::Healthy, nic, 10);
        assert_eq!(configured, [], "{nic}");
        // A NIC that does not count the time of pauses is said to be one.
        let known: Vec<_> = told.iter().filter(|(_, check)| *check != "cannot_tell").collect();
        assert_eq!(known, Vec::<&Said>::new(), "{nic}");
    }
}
