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

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DeviceId, PortId};

    fn port(table: &[(u32, GidType, &str, &str)]) -> Port {
        let gid = |&(index, kind, gid, netdev): &(u32, GidType, &str, &str)| Gid {
            index,
            gid: gid.to_owned(),
            kind,
            netdev: Some(netdev.to_owned()),
        };
        let id = PortId {
            device: DeviceId::pci("0000:01:00.0"),
            number: 1,
        };
        Port {
            netdev: Some("rail0".to_owned()),
            gids: table.iter().map(gid).collect(),
            ..Port::bare(id, "mlx5_0", "mlx5_core")
        }
    }

    const V4: &str = "0000:0000:0000:0000:0000:ffff:0a01:0002";
    const V6: &str = "fe80:0000:0000:0000:0000:00ff:fe00:0001";

    #[test]
    fn the_ports_own_netdev_comes_before_a_vlan() {
        let port = port(&[
            (1, GidType::V2, V4, "rail0.100"),
            (2, GidType::V1, V4, "rail0"),
            (3, GidType::V2, V4, "rail0"),
            (5, GidType::V2, V6, "rail0"),
        ]);
        let found: Vec<_> = roce_v2_ipv4(&port).iter().map(|gid| gid.index).collect();
        assert_eq!(found, [3, 1]);
    }

    #[test]
    fn one_index_serves_all_rails_or_none_does() {
        let at = |indexes: &[u32]| {
            let table: Vec<_> = indexes
                .iter()
                .map(|index| (*index, GidType::V2, V4, "rail0"))
                .collect();
            port(&table)
        };
        let index = |ports: &[Port]| gid_index(&ports.iter().collect::<Vec<_>>());
        assert_eq!(index(&[at(&[3]), at(&[3, 5])]), Some(GidIndex::Common(3)));
        assert_eq!(index(&[at(&[3, 5]), at(&[5])]), Some(GidIndex::Common(5)));
        // Of two that serve all, the one that most rails have first.
        assert_eq!(index(&[at(&[3, 5]), at(&[3, 5])]), Some(GidIndex::Common(3)));
        let differs = vec![("mlx5_0".to_owned(), Some(3)), ("mlx5_0".to_owned(), None)];
        assert_eq!(index(&[at(&[3]), at(&[])]), Some(GidIndex::Differs(differs)));
        assert_eq!(index(&[]), None);
    }
}
