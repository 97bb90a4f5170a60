//! Link, FEC, MTU.

use super::{Look, differs};
use crate::facts::{Facts, PortFacts, Rails};
use crate::finding::{Evidence, Finding};
use crate::policy::Policy;
use crate::table::port as table;
use model::Fec;

/// Bits per second of a lane that is modulated as PAM4, and has no mode without FEC.
const PAM4: u64 = 50_000_000_000;
/// What the kernel takes off the netdev's MTU for the headers of `RoCE`: GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4
/// (`iboe_get_mtu` in `include/rdma/ib_addr.h`).
const HEADERS: u32 = 96;

/// The RDMA MTU that the kernel derives from a netdev's.
fn rdma_mtu(netdev: u32) -> Option<u32> {
    let room = netdev.checked_sub(HEADERS)?;
    [4096, 2048, 1024, 512, 256].into_iter().find(|mtu| *mtu <= room)
}

pub(super) fn of_port(look: Look<'_>, found: &mut Vec<Finding>) {
    let port = look.port;
    if let Some(mtu) = port.port.mtu {
        let rdma = rdma_mtu(mtu);
        if rdma.unwrap_or(0) < look.policy.mtu {
            let rdma = rdma.map_or("none".to_owned(), |mtu| mtu.to_string());
            let said = vec![
                Evidence::new("MTU of the netdev", mtu.to_string()),
                Evidence::new("RDMA MTU that follows", rdma),
                Evidence::new("wanted", look.policy.mtu.to_string()),
            ];
            found.push(Finding::of(&table::MTU_SMALL, &port.port, said));
        }
    }
    let per_lane = port.link.speed.zip(port.link.lanes.filter(|lanes| *lanes > 0));
    if let Some((speed, lanes)) = per_lane
        && port.setup.link.fec == Some(Fec::Off)
        && speed / lanes >= PAM4
    {
        let said = vec![
            Evidence::new("FEC (ethtool --show-fec)", Fec::Off.as_str()),
            Evidence::new("link", format!("{} in {lanes} lanes", gigabits(speed))),
        ];
        found.push(Finding::of(&table::FEC_OFF, &port.port, said));
    }
    if let (Some(speed), Some(planned)) = (port.link.speed, look.policy.speed)
        && speed < planned
    {
        let said = vec![
            Evidence::new("speed", gigabits(speed)),
            Evidence::new("policy", gigabits(planned)),
        ];
        found.push(Finding::of(&table::LINK_SLOW, &port.port, said));
    }
}

fn gigabits(speed: u64) -> String {
    format!("{} Gb/s", speed as f64 / 1e9)
}

pub(super) fn of_rails(rails: &Rails<'_>, policy: &Policy, found: &mut Vec<Finding>) {
    if policy.speed.is_none() {
        speeds(rails, found);
    }
    for (port, lanes, usual) in odd(rails, |port| port.link.lanes) {
        if lanes < usual {
            let said = differs("lanes", lanes.to_string(), usual.to_string());
            found.push(Finding::of(&table::LINK_LANES, &port.port, said));
        }
    }
    for (port, mtu, usual) in odd(rails, |port| port.port.mtu) {
        let said = differs("MTU of the netdev", mtu.to_string(), usual.to_string());
        found.push(Finding::of(&table::MTU_RAILS_DIFFER, &port.port, said).with("{mtu}", &usual.max(mtu)));
    }
    for (port, own, usual) in odd(rails, |port| Some((port.link.speed?, port.setup.link.fec?))) {
        // Another speed has another FEC, and is told as such.
        if own.0 == usual.0 {
            let said = differs("FEC (ethtool --show-fec)", own.1.as_str(), usual.1.as_str());
            found.push(Finding::of(&table::FEC_DIFFERS, &port.port, said));
        }
    }
}

/// The rails that have another value than most, with theirs and the usual.
fn odd<'a, T: PartialEq + Copy>(
    rails: &Rails<'a>,
    value: impl Fn(&PortFacts) -> Option<T>,
) -> impl Iterator<Item = (&'a PortFacts, T, T)> {
    let found = rails.odd(value);
    found
        .into_iter()
        .flat_map(|(usual, odd)| odd.into_iter().map(move |(port, own)| (port, own, usual)))
}

fn speeds(rails: &Rails<'_>, found: &mut Vec<Finding>) {
    let fastest = rails.ports().filter_map(|port| port.link.speed).max();
    let is_alone = rails.ports().nth(1).is_none();
    for port in rails.ports() {
        let (Some(speed), Some(fastest)) = (port.link.speed, fastest) else {
            continue;
        };
        let wanted = match port.setup.link.best_speed {
            Some(best) if is_alone => ("best that the port supports", best),
            _ => ("fastest rail of its kind", fastest),
        };
        if speed < wanted.1 {
            let mut said = vec![
                Evidence::new("speed", gigabits(speed)),
                Evidence::new(wanted.0, gigabits(wanted.1)),
            ];
            said.extend(
                port.link
                    .lanes
                    .map(|lanes| Evidence::new("lanes", lanes.to_string())),
            );
            found.push(Finding::of(&table::LINK_SLOW, &port.port, said));
        }
    }
}

/// Rails without a link beside rails that have one.
pub(super) fn down(facts: &Facts, found: &mut Vec<Finding>) {
    let roce = || facts.ports.iter().filter(|port| port.is_roce());
    for port in roce().filter(|port| !port.is_up()) {
        let alike = |other: &&PortFacts| {
            other.link.up == Some(true)
                && (&other.port.driver, &other.port.board) == (&port.port.driver, &port.port.board)
        };
        let up = roce().filter(alike).count();
        if up > 0 {
            let said = vec![
                Evidence::new("carrier", "none"),
                Evidence::new("rails of its kind with a carrier", up.to_string()),
            ];
            found.push(Finding::of(&table::LINK_DOWN, &port.port, said));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rdma_mtu_is_what_the_kernel_makes_of_the_netdevs() {
        for (netdev, rdma) in [
            (9000, Some(4096)),
            (4192, Some(4096)),
            (4191, Some(2048)),
            (1500, Some(1024)),
            (352, Some(256)),
            (351, None),
            (68, None),
        ] {
            assert_eq!(rdma_mtu(netdev), rdma, "{netdev}");
        }
    }
}
