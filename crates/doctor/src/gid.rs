//! Which index of the GID table is `RoCE` v2 over IPv4.

use model::{Gid, GidType, Port};

/// How the kernel prints the first part of an IPv4 address in a GID.
const IPV4: &str = "0000:0000:0000:0000:0000:ffff:";

/// The entries of a port that are `RoCE` v2 over IPv4: those of the port's own netdev before those of VLANs and others on it.
#[must_use]
pub fn roce_v2_ipv4(port: &Port) -> Vec<&Gid> {
    let fits = |gid: &&Gid| gid.kind == GidType::V2 && gid.gid.starts_with(IPV4);
    let mut found: Vec<&Gid> = port.gids.iter().filter(fits).collect();
    found.sort_by_key(|gid| (gid.netdev != port.netdev, gid.index));
    found
}

/// Whether one index serves all rails, as `NCCL_IB_GID_INDEX` has to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GidIndex {
    /// This one is `RoCE` v2 over IPv4 on every rail.
    Common(u32),
    /// None is; the first of each rail, by device.
    Differs(Vec<(String, Option<u32>)>),
}

/// The index that is `RoCE` v2 over IPv4 on every one of these ports; of several the one that most ports have first, then the
/// lowest. `None` of no ports.
#[must_use]
pub fn gid_index(ports: &[&Port]) -> Option<GidIndex> {
    let tables: Vec<Vec<u32>> = ports
        .iter()
        .map(|port| roce_v2_ipv4(port).iter().map(|gid| gid.index).collect())
        .collect();
    let everywhere = |index: &u32| tables.iter().all(|table| table.contains(index));
    let first_on = |index: u32| {
        tables
            .iter()
            .filter(|table| table.first() == Some(&index))
            .count()
    };
    let common = tables
        .first()?
        .iter()
        .copied()
        .filter(everywhere)
        .max_by_key(|&index| (first_on(index), std::cmp::Reverse(index)));
    Some(common.map_or_else(
        || {
            let first = |(port, table): (&&Port, &Vec<u32>)| (port.device.clone(), table.first().copied());
            GidIndex::Differs(ports.iter().zip(&tables).map(first).collect())
        },
        GidIndex::Common,
    ))
}
