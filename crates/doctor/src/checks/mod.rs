//! From facts to findings.

mod ecn;
mod host;
mod link;
mod marking;
mod network;
mod pci;
mod pfc;

use crate::facts::{Facts, PortFacts, Rails};
use crate::finding::{Evidence, Finding};
use crate::policy::Policy;

/// What is wrong with the configuration of a node, the worst first, then by port. Ports without a link are only said to have
/// none.
#[must_use]
pub fn findings(facts: &Facts, policy: &Policy) -> Vec<Finding> {
    let rails = Rails::of(facts);
    let mut found = Vec::new();
    for port in rails.iter().flat_map(Rails::ports) {
        let look = Look { facts, port, policy };
        pfc::of_port(look, &mut found);
        marking::of_port(look, &mut found);
        ecn::of_port(look, &mut found);
        link::of_port(look, &mut found);
        pci::of_port(look, &mut found);
        network::of_port(look, &mut found);
        host::of_port(look, &mut found);
    }
    for group in &rails {
        pfc::of_rails(group, policy, &mut found);
        link::of_rails(group, policy, &mut found);
        network::of_rails(group, facts, &mut found);
        host::of_rails(group, &mut found);
    }
    link::down(facts, &mut found);
    host::of_node(facts, &rails, &mut found);
    found.sort_by(|a, b| b.severity().cmp(&a.severity()).then_with(|| a.port.cmp(&b.port)));
    found
}

/// A look at one port.
#[derive(Clone, Copy)]
struct Look<'a> {
    facts: &'a Facts,
    port: &'a PortFacts,
    policy: &'a Policy,
}

/// Evidence of a rail that is unlike the others: what this one says, and what the others do.
fn differs(what: &str, own: impl Into<String>, usual: impl Into<String>) -> Vec<Evidence> {
    vec![
        Evidence::new(what, own),
        Evidence::new("most rails of its kind", usual),
    ]
}
