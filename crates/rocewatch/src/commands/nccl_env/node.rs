//! Which of a node's ports a training job should use.

use doctor::PortFacts;
use model::{LinkLayer, PortState};

/// The ports of a node, as far as they concern a job.
pub(super) struct Node {
    /// Those that a job should use.
    pub(super) rails: Vec<PortFacts>,
    /// The other RDMA ports, each with the reason.
    pub(super) left_out: Vec<(PortFacts, String)>,
    /// The netdev of the default route.
    pub(super) default_netdev: Option<String>,
}

impl Node {
    /// Sorts the ports.
    pub(super) fn new(ports: Vec<PortFacts>, default_netdev: Option<String>) -> Self {
        let mut node = Self {
            rails: ports.into_iter().filter(|facts| facts.port.has_rdma()).collect(),
            left_out: Vec::new(),
            default_netdev,
        };
        node.leave_out(|facts| cannot_carry(facts));
        // Soft-RoCE is for trying things out: where there is a NIC it is a leftover.
        if node.rails.iter().any(PortFacts::is_roce) {
            node.leave_out(|facts| (!facts.is_roce()).then(|| "it is RoCE in software".to_owned()));
        }
        // A NIC that shares a PCI switch with a GPU is there for it; those behind the CPU are for storage and users.
        if node.rails.iter().any(near_gpu) {
            node.leave_out(|facts| {
                (!near_gpu(facts))
                    .then(|| "no GPU is on its PCI switch, unlike those of the others".to_owned())
            });
        }
        let front = node.default_netdev.clone();
        let is_front = |facts: &PortFacts| front.is_some() && facts.port.netdev == front;
        if !node.rails.iter().all(is_front) {
            node.leave_out(|facts| {
                is_front(facts)
                    .then(|| "its netdev has the default route: it is the way to the world".to_owned())
            });
        }
        node
    }

    fn leave_out(&mut self, reason: impl Fn(&PortFacts) -> Option<String>) {
        let mut kept = Vec::new();
        for facts in self.rails.drain(..) {
            match reason(&facts) {
                Some(why) => self.left_out.push((facts, why)),
                None => kept.push(facts),
            }
        }
        self.rails = kept;
    }

    /// Every RDMA port.
    pub(super) fn all(&self) -> impl Iterator<Item = &PortFacts> {
        self.rails
            .iter()
            .chain(self.left_out.iter().map(|(facts, _)| facts))
    }
}

/// True if a GPU is on the same PCI switch.
pub(super) fn near_gpu(facts: &PortFacts) -> bool {
    facts.port.gpu.as_ref().is_some_and(|gpu| gpu.bridges.is_some())
}

/// True of a port that no job can use.
pub(super) fn is_unusable(facts: &PortFacts) -> bool {
    cannot_carry(facts).is_some()
}

fn cannot_carry(facts: &PortFacts) -> Option<String> {
    let port = &facts.port;
    match (port.link_layer, port.state) {
        (LinkLayer::InfiniBand, _) => Some("it is InfiniBand, for which none of this is meant".to_owned()),
        (LinkLayer::Other, _) => Some("it is not RoCE; its vendor's plugin chooses by itself".to_owned()),
        (_, Some(state)) if state != PortState::Active => {
            Some(format!("its RDMA port is {}", state.as_str()))
        }
        _ if facts.link.up == Some(false) => Some("its link is down".to_owned()),
        _ => None,
    }
}
