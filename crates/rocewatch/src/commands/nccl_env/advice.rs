//! What is right to set on this node, and why.
//!
//! What the variables mean: NCCL user guide, Environment Variables (`docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html`);
//! RCCL reads the same ones. UCX: Open MPI's guide to RoCE; gloo: `PyTorch`'s torch.distributed.

use super::node::{Node, near_gpu};
use doctor::{GidIndex, Policy, PortFacts, gid_index, priority_of, roce_dscp, trust};
use model::Port;
use serde::Serialize;

/// ECT(0), the two lowest bits of a traffic class: a switch marks only packets that have them (RFC 3168). NICs that set them by
/// themselves do no harm here; with DSCP 26 it is the customary 106 (NVIDIA's doroce).
const ECT: u8 = 2;

/// One variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Advice {
    pub(super) name: &'static str,
    /// Absent where it is best left alone, or nobody can tell.
    pub(super) value: Option<String>,
    pub(super) why: String,
}

fn set(name: &'static str, value: impl Into<String>, why: impl Into<String>) -> Advice {
    Advice {
        name,
        value: Some(value.into()),
        why: why.into(),
    }
}

fn leave(name: &'static str, why: impl Into<String>) -> Advice {
    Advice {
        name,
        value: None,
        why: why.into(),
    }
}

/// All of it.
pub(super) fn advise(node: &Node) -> Vec<Advice> {
    vec![
        hca(node),
        gid(node),
        traffic_class(node),
        socket(
            node,
            "NCCL_SOCKET_IFNAME",
            "=",
            "NCCL meets its peers and, without RDMA, sends by it",
        ),
        ucx(node),
        socket(
            node,
            "GLOO_SOCKET_IFNAME",
            "",
            "PyTorch's gloo meets its peers by it",
        ),
    ]
}

fn names(node: &Node) -> String {
    let ports = node.rails.iter().map(|facts| &facts.port);
    let names: Vec<_> = ports
        .map(|port| format!("{}:{}", port.device, port.id.number))
        .collect();
    names.join(",")
}

fn hca(node: &Node) -> Advice {
    const NAME: &str = "NCCL_IB_HCA";
    match node.rails.len() {
        0 => leave(NAME, "there is no RoCE port that is up"),
        count => set(
            NAME,
            format!("={}", names(node)),
            format!(
                "the {count} RoCE ports that are up{}; = makes the names exact, since mlx5_1 would be mlx5_10 as well",
                if node.rails.iter().all(near_gpu) {
                    " and near a GPU"
                } else {
                    ""
                }
            ),
        ),
    }
}

fn ucx(node: &Node) -> Advice {
    const NAME: &str = "UCX_NET_DEVICES";
    if node.rails.is_empty() {
        return leave(NAME, "there is no RoCE port that is up");
    }
    set(
        NAME,
        names(node),
        "the same ports for UCX (Open MPI, NIXL), which takes exact names",
    )
}

fn gid(node: &Node) -> Advice {
    const NAME: &str = "NCCL_IB_GID_INDEX";
    let ports: Vec<&Port> = node.rails.iter().map(|facts| &facts.port).collect();
    match gid_index(&ports) {
        None => leave(NAME, "there is no RoCE port that is up"),
        Some(GidIndex::Common(index)) => set(
            NAME,
            index.to_string(),
            "RoCE v2 over IPv4 on every one of them, in this network namespace; before NCCL 2.21 the default was 0",
        ),
        Some(GidIndex::Differs(each)) => {
            let each: Vec<_> = each
                .iter()
                .map(|(device, index)| match index {
                    Some(index) => format!("{device} {index}"),
                    None => format!("{device} none"),
                })
                .collect();
            leave(
                NAME,
                format!(
                    "no index is RoCE v2 over IPv4 on all of them ({}); from 2.21 on NCCL finds it for each by itself",
                    each.join(", ")
                ),
            )
        }
    }
}

fn traffic_class(node: &Node) -> Advice {
    const NAME: &str = "NCCL_IB_TC";
    let policy = Policy::default();
    let mut of_rails = node.rails.iter().map(|facts| (facts, roce_dscp(facts, &policy)));
    let Some((first, dscp)) = of_rails.next() else {
        return leave(NAME, "there is no RoCE port that is up");
    };
    if let Some((other, differs)) = of_rails.find(|(_, other)| *other != dscp) {
        return leave(
            NAME,
            format!(
                "the rails are not set up alike: {} on {}, {} on {}; `rocewatch doctor` tells more",
                words(dscp),
                first.port.device,
                words(differs),
                other.port.device
            ),
        );
    }
    match dscp {
        Some(dscp) => {
            let priority = leads_to(first, dscp).map_or("a lossless priority".to_owned(), |priority| {
                format!("priority {priority}, which has PFC")
            });
            set(
                NAME,
                (dscp << 2 | ECT).to_string(),
                format!(
                    "DSCP {dscp} leads to {priority}; 4 x {dscp} + {ECT}, where {ECT} lets switches mark it (ECT)"
                ),
            )
        }
        None => leave(NAME, unknown(first)),
    }
}

fn words(dscp: Option<u8>) -> String {
    dscp.map_or("no DSCP that is known to be lossless".to_owned(), |dscp| {
        format!("DSCP {dscp}")
    })
}

/// The priority of packets with this DSCP.
pub(super) fn leads_to(facts: &PortFacts, dscp: u8) -> Option<u8> {
    priority_of(dscp, trust(facts), facts.dcb.as_ref()?)
}

/// Why no DSCP is known to be lossless.
fn unknown(facts: &PortFacts) -> String {
    let device = &facts.port.device;
    match facts.dcb.as_ref().map(|dcb| dcb.pfc) {
        None | Some(None) => format!("{device} does not tell its PFC and its priorities"),
        Some(Some(0)) => format!("{device} has PFC on no priority: no traffic class is lossless"),
        Some(Some(_)) if trust(facts).is_none() => {
            format!("{device} does not tell whether it trusts DSCP")
        }
        Some(Some(_)) => {
            format!("{device} maps no DSCP to a priority with PFC; `rocewatch doctor` tells what to set")
        }
    }
}

fn socket(node: &Node, name: &'static str, exactly: &str, what: &str) -> Advice {
    match &node.default_netdev {
        Some(netdev) => set(
            name,
            format!("{exactly}{netdev}"),
            format!("it has the default route: {what}"),
        ),
        None => leave(
            name,
            "there is no default route to tell by which netdev the nodes meet",
        ),
    }
}
