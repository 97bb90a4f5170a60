//! Whether what is set is what the NICs do.
//!
//! What NCCL does by itself: its user guide, and its sources for the choice of a GID (`ncclIbGetGidIndex`,
//! src/transport/net_ib/connect.cc).

use super::advice::leads_to;
use super::environment::Environment;
use super::filter::Filter;
use super::node::Node;
use doctor::PortFacts;
use model::{Gid, GidType};
use serde::Serialize;

/// How the kernel prints the first part of a link-local address in a GID.
const LINK_LOCAL: &str = "fe80:0000:0000:0000:";

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Checked {
    pub(super) name: &'static str,
    /// Absent where it is not set.
    pub(super) value: Option<String>,
    /// Where it is set.
    pub(super) place: Option<String>,
    pub(super) state: State,
    pub(super) says: String,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It is as it should be.
    Right,
    /// It works, but not as it should, or not everywhere.
    Doubtful,
    /// It is wrong.
    Wrong,
    /// The NICs do not tell.
    Unknown,
}

type Said = (State, String);

/// All that was looked at.
pub(super) fn check(node: &Node, environment: &Environment, netdevs: Option<&[String]>) -> Vec<Checked> {
    let of = |name: &'static str, judge: &dyn Fn(Option<&str>) -> Option<Said>| {
        let set = environment.get(name);
        judge(set.map(|(value, _)| value)).map(|(state, says)| Checked {
            name,
            value: set.map(|(value, _)| value.to_owned()),
            place: set.map(|(_, place)| place.to_owned()),
            state,
            says,
        })
    };
    let chosen = chosen(node, environment.get("NCCL_IB_HCA").map(|(value, _)| value));
    [
        of("NCCL_NET", &network),
        of("NCCL_IB_DISABLE", &disabled),
        of("NCCL_IB_HCA", &|value| Some(hca(node, value))),
        of("NCCL_IB_GID_INDEX", &|value| gid(&chosen, value)),
        of("NCCL_IB_TC", &|value| traffic_class(&chosen, value)),
        of("NCCL_IB_FIFO_TC", &|value| control_class(&chosen, value?)),
        of("NCCL_SOCKET_IFNAME", &|value| socket(node, value, netdevs)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn network(value: Option<&str>) -> Option<Said> {
    let value = value?;
    Some(match value.to_ascii_lowercase().as_str() {
        "socket" => (State::Wrong, "NCCL uses TCP and leaves RDMA alone".to_owned()),
        "ib" => (State::Right, "NCCL uses RDMA".to_owned()),
        _ => (
            State::Unknown,
            format!("a plugin of this name ({value}) chooses the network"),
        ),
    })
}

fn disabled(value: Option<&str>) -> Option<Said> {
    let off = value?.trim().parse::<i64>().is_ok_and(|number| number != 0);
    off.then(|| (State::Wrong, "NCCL leaves RDMA alone".to_owned()))
}

/// The ports that a job would use.
fn chosen<'a>(node: &'a Node, value: Option<&str>) -> Vec<&'a PortFacts> {
    let filter = Filter::parse(value.unwrap_or_default());
    let usable = |facts: &&PortFacts| !super::node::is_unusable(facts);
    let chosen = node.all().filter(usable);
    chosen
        .filter(|facts| filter.chooses(&facts.port.device, facts.port.id.number))
        .collect()
}

fn hca(node: &Node, value: Option<&str>) -> Said {
    let chosen = chosen(node, value);
    if chosen.is_empty() {
        return (
            State::Wrong,
            "no RDMA port that is up is chosen: NCCL falls back to TCP".to_owned(),
        );
    }
    let is = |facts: &PortFacts, all: &[&PortFacts]| all.iter().any(|other| other.port.id == facts.port.id);
    let rails: Vec<_> = node.rails.iter().collect();
    let missing: Vec<_> = rails.iter().copied().filter(|rail| !is(rail, &chosen)).collect();
    let beyond: Vec<_> = chosen.iter().copied().filter(|port| !is(port, &rails)).collect();
    let unknown = value.map(|value| unknown_devices(node, &Filter::parse(value)));
    let mut said = Vec::new();
    if !missing.is_empty() {
        said.push(format!(
            "{} of {} rails are left out: {}",
            missing.len(),
            rails.len(),
            devices(&missing)
        ));
    }
    if !beyond.is_empty() {
        let whys = node.left_out.iter().filter(|(facts, _)| is(facts, &beyond));
        let whys: Vec<_> = whys
            .map(|(facts, why)| format!("{} ({why})", facts.port.device))
            .collect();
        said.push(format!("it takes in {}", whys.join(", ")));
    }
    said.extend(unknown.flatten());
    match (said.is_empty(), value) {
        (true, Some(_)) => (State::Right, format!("it chooses the {} rails", rails.len())),
        (true, None) => (
            State::Right,
            format!(
                "not set: NCCL takes the {} rails, which are all there is",
                rails.len()
            ),
        ),
        (false, None) => (State::Doubtful, format!("not set, so that {}", said.join("; "))),
        (false, Some(_)) => (State::Doubtful, said.join("; ")),
    }
}

fn unknown_devices(node: &Node, filter: &Filter) -> Option<String> {
    let all: Vec<_> = node
        .all()
        .map(|facts| (facts.port.device.as_str(), facts.port.id.number))
        .collect();
    let missing = filter.missing(&all);
    (!missing.is_empty()).then(|| format!("this node has no {}", missing.join(", ")))
}

fn devices(ports: &[&PortFacts]) -> String {
    let names: Vec<_> = ports.iter().map(|facts| facts.port.device.as_str()).collect();
    names.join(", ")
}

/// The worst of what is said of each port, each different thing once.
fn worst(chosen: &[&PortFacts], judge: impl Fn(&PortFacts) -> Said) -> Option<Said> {
    let said: Vec<_> = chosen.iter().map(|facts| (facts, judge(facts))).collect();
    let worst = said
        .iter()
        .map(|(_, (state, _))| *state)
        .max_by_key(|state| match state {
            State::Right => 0,
            State::Unknown => 1,
            State::Doubtful => 2,
            State::Wrong => 3,
        })?;
    let mut words: Vec<(&str, Vec<&str>)> = Vec::new();
    for (facts, (state, says)) in &said {
        if *state != worst {
            continue;
        }
        match words.iter_mut().find(|(other, _)| other == says) {
            Some((_, devices)) => devices.push(&facts.port.device),
            None => words.push((says, vec![&facts.port.device])),
        }
    }
    let everywhere = words.len() == 1 && words[0].1.len() == chosen.len();
    let words = words.iter().map(|(says, devices)| {
        if everywhere {
            (*says).to_owned()
        } else {
            format!("{says} on {}", devices.join(", "))
        }
    });
    Some((worst, words.collect::<Vec<_>>().join("; ")))
}

fn gid(chosen: &[&PortFacts], value: Option<&str>) -> Option<Said> {
    let Some(value) = value else {
        return worst(chosen, |facts| match doctor::roce_v2_ipv4(&facts.port).first() {
            Some(gid) => (
                State::Right,
                format!(
                    "not set: NCCL finds {} by itself from 2.21 on; before, it takes 0",
                    gid.index
                ),
            ),
            None => (
                State::Doubtful,
                "not set, and the port has no GID that is RoCE v2 over IPv4".to_owned(),
            ),
        });
    };
    let Ok(index) = value.trim().parse::<i64>() else {
        return Some((State::Wrong, "it is no number".to_owned()));
    };
    let Ok(index) = u32::try_from(index) else {
        return gid(chosen, None);
    };
    worst(chosen, |facts| {
        let gids = &facts.port.gids;
        match gids.iter().find(|gid| gid.index == index) {
            Some(gid) => of_gid(gid),
            // A GID table that nobody could read tells nothing.
            None if gids.is_empty() => (State::Unknown, "its GIDs cannot be read".to_owned()),
            None => (State::Wrong, format!("GID {index} is empty")),
        }
    })
}

fn of_gid(gid: &Gid) -> Said {
    let index = gid.index;
    match gid.kind {
        GidType::V1 => (
            State::Wrong,
            format!("GID {index} is RoCE v1: it crosses no router and has no DSCP"),
        ),
        GidType::Unknown => (State::Unknown, format!("nobody tells what GID {index} is")),
        GidType::V2 if gid.gid.starts_with(LINK_LOCAL) => (
            State::Doubtful,
            format!("GID {index} is RoCE v2 over a link-local address: it crosses no router"),
        ),
        GidType::V2 => (State::Right, format!("GID {index} is RoCE v2")),
    }
}

fn traffic_class(chosen: &[&PortFacts], value: Option<&str>) -> Option<Said> {
    match value.map(|value| (value.trim().parse::<u8>(), value)) {
        Some((Err(_), value)) => Some((State::Wrong, format!("{value:?} is no traffic class: 0 to 255"))),
        Some((Ok(class), _)) => worst(chosen, |facts| of_class(facts, class)),
        None => worst(chosen, |facts| {
            let class = facts.setup.default_tos;
            let (state, says) = of_class(facts, class.unwrap_or(0));
            let whence = if class.is_some() {
                "not set, and this host's default is used"
            } else {
                "not set, which is 0"
            };
            (state, format!("{whence}: {says}"))
        }),
    }
}

/// Traffic class, DSCP, priority, PFC.
fn of_class(facts: &PortFacts, class: u8) -> Said {
    let dscp = class >> 2;
    let Some(priority) = leads_to(facts, dscp) else {
        return (
            State::Unknown,
            format!("DSCP {dscp}: the port does not tell which priority that is"),
        );
    };
    let way = format!("DSCP {dscp} -> priority {priority}");
    match facts.dcb.as_ref().and_then(|dcb| dcb.pfc) {
        None => (State::Unknown, format!("{way}: the port does not tell its PFC")),
        Some(0) => (
            State::Doubtful,
            format!("{way}; PFC is on no priority, so that nothing is lossless"),
        ),
        Some(pfc) if pfc & (1 << priority) == 0 => (
            State::Wrong,
            format!("{way}, which has no PFC: it is not lossless"),
        ),
        Some(_) if class & 3 == 3 => (
            State::Wrong,
            format!(
                "{way}, which is lossless; but the two lowest bits are 3, so that every packet is CE-marked"
            ),
        ),
        Some(_) => (State::Right, format!("{way}, which has PFC: it is lossless")),
    }
}

/// Short messages, which may well have a priority of their own.
fn control_class(chosen: &[&PortFacts], value: &str) -> Option<Said> {
    let Ok(class) = value.trim().parse::<u8>() else {
        return Some((State::Wrong, format!("{value:?} is no traffic class: 0 to 255")));
    };
    worst(chosen, |facts| match of_class(facts, class) {
        (State::Wrong, says) if class & 3 != 3 => (State::Doubtful, format!("control messages: {says}")),
        (state, says) => (state, format!("control messages: {says}")),
    })
}

fn socket(node: &Node, value: Option<&str>, netdevs: Option<&[String]>) -> Option<Said> {
    let value = value?;
    let filter = Filter::parse(value);
    let Some(netdevs) = netdevs else {
        return Some((
            State::Unknown,
            "the netdevs of this node are not known".to_owned(),
        ));
    };
    let chosen: Vec<_> = netdevs
        .iter()
        .filter(|netdev| filter.chooses(netdev, 0))
        .collect();
    if chosen.is_empty() {
        return Some((State::Wrong, "no netdev of this node is chosen".to_owned()));
    }
    let names: Vec<_> = chosen.iter().map(|netdev| netdev.as_str()).collect();
    let names = names.join(", ");
    Some(match &node.default_netdev {
        None => (
            State::Unknown,
            format!("it chooses {names}; there is no default route to compare with"),
        ),
        Some(default) if chosen.contains(&default) => (
            State::Right,
            format!("it chooses {names}; {default} has the default route"),
        ),
        Some(default) if filter.names_what_is_wanted() => (
            State::Doubtful,
            format!(
                "it chooses {names}, but the default route is on {default}: the other nodes must reach it"
            ),
        ),
        Some(default) => (
            State::Doubtful,
            format!("it leaves out {default}, which has the default route"),
        ),
    })
}
