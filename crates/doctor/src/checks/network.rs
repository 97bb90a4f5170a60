//! GIDs, addresses, routes, neighbours.

use super::Look;
use crate::facts::{Facts, PortFacts, Rails};
use crate::finding::{Evidence, Finding};
use crate::gid::{GidIndex, gid_index, roce_v2_ipv4};
use crate::table::network as table;
use model::{Address, GidType, Route, Routing, network};
use std::net::IpAddr;

/// `RT_TABLE_MAIN`.
const MAIN: u32 = 254;
/// Number of the first table that a remedy proposes.
const OWN_TABLE: u32 = 100;

pub(super) fn of_port(look: Look<'_>, found: &mut Vec<Finding>) {
    gid(look, found);
    cm_mode(look, found);
    neighbours(look, found);
    hops(look, found);
    bond(look, found);
}

/// Modes of a bond that choose a member by the hash policy.
const BY_HASH: [&str; 2] = ["balance-xor", "802.3ad"];

fn bond(look: Look<'_>, found: &mut Vec<Finding>) {
    let Some(bond) = &look.port.setup.bond else { return };
    if BY_HASH.contains(&bond.mode.as_str()) && bond.hash.as_deref() == Some("layer2") {
        let said = vec![
            Evidence::new("bond", format!("{}, mode {}", bond.name, bond.mode)),
            Evidence::new("xmit_hash_policy", "layer2"),
        ];
        found.push(Finding::of(&table::BOND_HASH, &look.port.port, said).with("{bond}", &bond.name));
    }
}

/// Routers on the way through a fabric of three tiers, and the port behind them.
const HOPS: u32 = 6;

fn hops(look: Look<'_>, found: &mut Vec<Finding>) {
    let Some(routing) = &look.facts.node.routing else {
        return;
    };
    let Some(own) = address(look.port, routing) else {
        return;
    };
    let of_node = routing.hop_limit.filter(|_| own.address.is_ipv4());
    let limited = ways_of(look.port, own, routing)
        .filter_map(|way| Some((way, way.hop_limit.or(of_node)?)))
        .find(|(_, limit)| *limit < HOPS);
    let Some((way, limit)) = limited else { return };
    let (to, bits) = way.to;
    let whose = if way.hop_limit.is_some() {
        "the route's"
    } else {
        "ip_default_ttl"
    };
    let said = vec![
        Evidence::new(
            format!("route to {to}/{bits}"),
            way.gateway
                .map_or_else(String::new, |gateway| format!("by {gateway}")),
        ),
        Evidence::new("hop limit", format!("{limit} ({whose})")),
    ];
    let finding = Finding::of(&table::HOP_LIMIT_LOW, &look.port.port, said);
    found.push(in_family(finding, own));
}

fn gid(look: Look<'_>, found: &mut Vec<Finding>) {
    let port = &look.port.port;
    if port.gids.is_empty() || look.port.link.up != Some(true) || !roce_v2_ipv4(port).is_empty() {
        return;
    }
    // A GID whose netdev is in a pod's namespace is not shown here, nor is its address.
    let global = |gid: &model::Gid| gid.kind == GidType::V2 && !gid.gid.starts_with("fe80:");
    if port.gids.iter().any(global) {
        return;
    }
    let kinds: Vec<_> = port
        .gids
        .iter()
        .map(|gid| {
            let kind = match gid.kind {
                GidType::V1 => "RoCE v1",
                GidType::V2 => "RoCE v2",
                GidType::Unknown => "not known",
            };
            format!("{}: {kind} {}", gid.index, gid.gid)
        })
        .collect();
    let said = vec![Evidence::new("GID table", kinds.join("; "))];
    found.push(Finding::of(&table::GID_MISSING, port, said));
}

fn cm_mode(look: Look<'_>, found: &mut Vec<Finding>) {
    let port = &look.port.port;
    let has_v2 = port.gids.iter().any(|gid| gid.kind == GidType::V2);
    if has_v2 && look.port.setup.cm_mode == Some(GidType::V1) {
        let said = vec![Evidence::new("default_roce_mode", "IB/RoCE v1")];
        found.push(Finding::of(&table::CM_ROCE_MODE, port, said));
    }
}

fn neighbours(look: Look<'_>, found: &mut Vec<Finding>) {
    let (Some(routing), Some(ifindex)) = (&look.facts.node.routing, look.port.port.ifindex) else {
        return;
    };
    let over_ipv4 = address(look.port, routing).is_none_or(|own| own.address.is_ipv4());
    let own: Vec<_> = routing
        .neighbours
        .iter()
        .filter(|neighbour| neighbour.ifindex == ifindex && neighbour.address.is_ipv4() == over_ipv4)
        .collect();
    let is_gateway = |address: IpAddr| {
        let of_port = routing.routes.iter().filter(|route| route.ifindex == ifindex);
        of_port
            .filter_map(|route| route.gateway)
            .any(|gateway| gateway == address)
    };
    let failed = || own.iter().filter(|neighbour| neighbour.failed);
    let gateway = failed().find(|neighbour| is_gateway(neighbour.address));
    let all = failed()
        .next()
        .filter(|_| own.iter().all(|neighbour| neighbour.failed));
    let Some(worst) = gateway.or(all) else { return };
    let what = if gateway.is_some() { "gateway" } else { "neighbour" };
    let said = vec![
        Evidence::new(format!("{what} {}", worst.address), "FAILED"),
        Evidence::new(
            "neighbours of the rail",
            format!("{} of {} failed", failed().count(), own.len()),
        ),
    ];
    let finding = Finding::of(&table::NEIGHBOUR_FAILED, &look.port.port, said);
    found.push(finding.with("{neighbour}", &worst.address));
}

pub(super) fn of_rails(rails: &Rails<'_>, facts: &Facts, found: &mut Vec<Finding>) {
    indexes(rails, found);
    if let Some(routing) = &facts.node.routing {
        subnets(rails, routing, found);
        ways_out(rails, routing, found);
    }
}

fn indexes(rails: &Rails<'_>, found: &mut Vec<Finding>) {
    let ports: Vec<_> = rails.ports().map(|port| &port.port).collect();
    let Some(GidIndex::Differs(first)) = gid_index(&ports) else {
        return;
    };
    // A rail without any is another finding.
    if first.iter().all(|(_, index)| index.is_some()) {
        let said = first.into_iter().map(|(device, index)| {
            let index = index.map_or("none".to_owned(), |index| format!("index {index}"));
            Evidence::new(device, index)
        });
        let finding = Finding::of(&table::GID_INDEX_DIFFERS, ports[0], said.collect());
        found.push(Finding {
            port: None,
            ..finding
        });
    }
}

/// The address by which a rail is judged: the first that is not link-local, of IPv4 if it has one. That is what NCCL and the
/// RDMA connection manager take unless they are told otherwise; IPv6 beside it comes by itself wherever a router announces it.
fn address(port: &PortFacts, routing: &Routing) -> Option<Address> {
    let ifindex = port.port.ifindex?;
    let own = || routing.addresses.iter().filter(|own| own.ifindex == ifindex);
    let ipv4 = |own: &&Address| matches!(own.address, IpAddr::V4(address) if !address.is_link_local());
    let ipv6 =
        |own: &&Address| matches!(own.address, IpAddr::V6(address) if !address.is_unicast_link_local());
    own().find(ipv4).or_else(|| own().find(ipv6)).copied()
}

/// The tables that packets from this address are routed by, the main one last.
fn tables(address: Address, routing: &Routing) -> Vec<u32> {
    let applies =
        |from: (IpAddr, u8)| from.1 > 0 && network(address.address, from.1) == network(from.0, from.1);
    let rules = routing.rules.iter().filter(|rule| applies(rule.from));
    let mut tables: Vec<_> = rules.map(|rule| rule.table).collect();
    tables.push(MAIN);
    tables
}

fn has_own_rule(address: Address, routing: &Routing) -> bool {
    tables(address, routing).len() > 1
}

fn subnets(rails: &Rails<'_>, routing: &Routing, found: &mut Vec<Finding>) {
    let all: Vec<_> = rails
        .ports()
        .filter_map(|port| Some((port, address(port, routing)?)))
        .collect();
    for (at, &(port, own)) in all.iter().enumerate() {
        let beside = |&&(other, its): &&(&PortFacts, Address)| {
            other.port.ifindex != port.port.ifindex
                && (its.network(), its.prefix) == (own.network(), own.prefix)
        };
        let beside: Vec<_> = all.iter().filter(beside).collect();
        if beside.is_empty() || has_own_rule(own, routing) {
            continue;
        }
        let names: Vec<_> = beside
            .iter()
            .map(|(other, _)| other.port.device.as_str())
            .collect();
        let said = vec![
            Evidence::new("address", format!("{}/{}", own.address, own.prefix)),
            Evidence::new("rails in the same subnet", names.join(", ")),
            Evidence::new("rule for the address", "none"),
        ];
        found.push(routed(
            Finding::of(&table::SUBNET_SHARED, &port.port, said),
            own,
            at,
        ));
        strict(port, own, routing, found);
    }
}

/// Fills in the blanks of commands that add a table and a rule.
fn routed(finding: Finding, own: Address, rail: usize) -> Finding {
    let table = OWN_TABLE + u32::try_from(rail).unwrap_or(0);
    in_family(finding, own)
        .with("{network}", &format!("{}/{}", own.network(), own.prefix))
        .with("{address}", &own.address)
        .with("{table}", &table)
}

fn in_family(finding: Finding, own: Address) -> Finding {
    finding.with("{family}", &if own.address.is_ipv4() { "-4" } else { "-6" })
}

/// The routes by which packets from this address leave their subnet.
fn ways_of(port: &PortFacts, own: Address, routing: &Routing) -> impl Iterator<Item = Route> {
    let tables = tables(own, routing);
    let leads_out = move |route: &&Route| {
        port.port.ifindex == Some(route.ifindex)
            && route.gateway.is_some()
            && route.to.0.is_ipv4() == own.address.is_ipv4()
            && tables.contains(&route.table)
    };
    routing.routes.iter().filter(leads_out).copied()
}

fn ways_out(rails: &Rails<'_>, routing: &Routing, found: &mut Vec<Finding>) {
    let all: Vec<_> = rails
        .ports()
        .filter_map(|port| {
            let own = address(port, routing)?;
            Some((port, own, ways_of(port, own, routing).next()))
        })
        .collect();
    let with = all.iter().filter(|(_, _, way)| way.is_some()).count();
    // A fabric without routers has none, and a node's default route is one alone.
    if with * 2 <= all.len() || with < 2 {
        return;
    }
    for (at, (port, own, way)) in all.into_iter().enumerate() {
        if way.is_none() {
            let said = vec![
                Evidence::new("address", format!("{}/{}", own.address, own.prefix)),
                Evidence::new(
                    "route with a gateway",
                    "none, neither by a rule for the address nor in the main table",
                ),
                Evidence::new("rails of its kind that have one", with.to_string()),
            ];
            let finding = Finding::of(&table::SOURCE_ROUTE_MISSING, &port.port, said);
            found.push(routed(finding, own, at));
            strict(port, own, routing, found);
        }
    }
}

/// Of a rail without a way of its own: whether it drops what comes in by it meanwhile. A rail is told once.
fn strict(port: &PortFacts, own: Address, routing: &Routing, found: &mut Vec<Finding>) {
    let filters = port
        .port
        .ifindex
        .is_some_and(|index| routing.strict.contains(&index));
    let is_told = |finding: &Finding| {
        finding.check == &table::STRICT_SOURCE
            && finding.port.as_ref().is_some_and(|told| told.id == port.port.id)
    };
    if filters && own.address.is_ipv4() && !found.iter().any(is_told) {
        let said = vec![
            Evidence::new("rp_filter", "1: strict"),
            Evidence::new("address", format!("{}/{}", own.address, own.prefix)),
        ];
        found.push(Finding::of(&table::STRICT_SOURCE, &port.port, said));
    }
}
