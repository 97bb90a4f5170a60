//! PFC, pause, buffers, DCBX, and where the bytes are.

use super::{Look, differs};
use crate::facts::{PortFacts, Rails};
use crate::finding::{Evidence, Finding};
use crate::policy::{CUSTOMARY, Policy};
use crate::priority::{has, list, roce_dscp, words};
use crate::table::lossless as table;
use catalog::{Direction, Signal};
use model::Priorities;

/// `DCB_CAP_DCBX_LLD_MANAGED`.
const LLD_MANAGED: u8 = 2;
/// RDMA bytes a second below which their priority is not looked for.
const BUSY: f64 = 1e6;
/// Bytes of a frame beside its MTU: header, VLAN tag, check sequence.
const ETHERNET: u64 = 22;
/// Metres that the mlx5 driver reckons with (`MLX5E_DEFAULT_CABLE_LEN`).
const DRIVERS_CABLE: u32 = 7;

pub(super) fn of_port(look: Look<'_>, found: &mut Vec<Finding>) {
    mask(look, found);
    peer(look, found);
    pause(look, found);
    buffers(look, found);
    owner(look, found);
    traffic(look, found);
}

fn evidence(mask: Priorities) -> Evidence {
    Evidence::new("PFC (DCB pfc_en)", format!("{mask:#04x}: {}", words(mask)))
}

fn mask(look: Look<'_>, found: &mut Vec<Finding>) {
    let Some(mask) = look.port.pfc() else { return };
    let planned = look.policy.planned();
    let is_planned = planned == Some(mask);
    let check = match mask {
        _ if is_planned => return,
        0 => &table::PFC_OFF,
        0xff => &table::PFC_ON_ALL,
        _ if mask.count_ones() > planned.map_or(1, u8::count_ones) => &table::PFC_TOO_MANY,
        _ if planned.is_some() || mask & CUSTOMARY == 0 => &table::PFC_OTHER_PRIORITY,
        _ => return,
    };
    let mut said = vec![evidence(mask)];
    said.extend(planned.map(|planned| Evidence::new("policy", words(planned))));
    found.push(mended(Finding::of(check, &look.port.port, said), look.policy));
}

/// Fills in the blanks of commands that set PFC.
fn mended(finding: Finding, policy: &Policy) -> Finding {
    let priority = policy.priority();
    let flags = (0..8).map(|other| if other == priority { "1" } else { "0" });
    let flags = flags.collect::<Vec<_>>().join(",");
    finding.with("{priority}", &priority).with("{pfc}", &flags)
}

pub(super) fn of_rails(rails: &Rails<'_>, policy: &Policy, found: &mut Vec<Finding>) {
    let Some((usual, odd)) = rails.odd(PortFacts::pfc) else {
        return;
    };
    for (port, mask) in odd {
        let said = differs("PFC (DCB pfc_en)", words(mask), words(usual));
        found.push(mended(
            Finding::of(&table::PFC_RAILS_DIFFER, &port.port, said),
            policy,
        ));
    }
}

fn peer(look: Look<'_>, found: &mut Vec<Finding>) {
    if let (Some(own), Some(peer)) = (look.port.pfc(), look.port.setup.peer_pfc)
        && own != peer
    {
        let said = vec![
            evidence(own),
            Evidence::new("PFC of the switch port (LLDP)", words(peer)),
        ];
        found.push(Finding::of(&table::PFC_PEER_DIFFERS, &look.port.port, said));
    }
}

fn pause(look: Look<'_>, found: &mut Vec<Finding>) {
    let link = &look.port.link;
    let mask = look.port.pfc();
    if let Some(mask) = mask
        && (link.pause_rx == Some(true) || link.pause_tx == Some(true))
        && (mask != 0 || look.policy.wants_pfc())
    {
        let word = |on: Option<bool>| match on {
            Some(true) => "on",
            Some(false) => "off",
            None => "not known",
        };
        let says = format!("rx {}, tx {}", word(link.pause_rx), word(link.pause_tx));
        let said = vec![Evidence::new("global pause (ethtool -a)", says), evidence(mask)];
        found.push(Finding::of(&table::PAUSE_BESIDE_PFC, &look.port.port, said));
    }
    if let (Some(mask @ 1..), Some(0)) = (mask, link.storm_prevention) {
        let said = vec![Evidence::new("pfc-prevention-tout", "0: off"), evidence(mask)];
        found.push(Finding::of(&table::STORM_PREVENTION_OFF, &look.port.port, said));
    }
}

fn buffers(look: Look<'_>, found: &mut Vec<Finding>) {
    let (Some(mask), Some(buffers)) = (look.port.pfc(), look.port.setup.buffers) else {
        return;
    };
    let buffer = |priority: u8| buffers.of_priority[usize::from(priority)];
    for priority in list(mask) {
        let own = buffer(priority);
        let mapped = Evidence::new(
            format!("buffer of priority {priority} (DCB prio2buffer)"),
            own.to_string(),
        );
        if buffers.bytes.get(usize::from(own)) == Some(&0) {
            let said = vec![
                mapped.clone(),
                Evidence::new(format!("size of buffer {own}"), "0 bytes"),
            ];
            found.push(Finding::of(&table::BUFFER_ZERO, &look.port.port, said));
        }
        let beside: Vec<_> = list(!mask).filter(|other| buffer(*other) == own).collect();
        if !beside.is_empty() {
            let names: Vec<_> = beside.iter().map(u8::to_string).collect();
            let said = vec![mapped, Evidence::new("lossy priorities in it", names.join(", "))];
            let finding = Finding::of(&table::BUFFER_SHARED, &look.port.port, said);
            found.push(finding.with("{priority}", &priority));
        } else if let Some(&bytes @ 1..) = buffers.bytes.get(usize::from(own))
            && let Some(needed) = headroom(look).filter(|needed| u64::from(bytes) < *needed)
        {
            let said = vec![
                mapped,
                Evidence::new(format!("size of buffer {own}"), format!("{bytes} bytes")),
                Evidence::new("under way when the pause is sent", format!("{needed} bytes")),
            ];
            let finding = Finding::of(&table::BUFFER_SMALL, &look.port.port, said);
            let finding = finding.with("{buffer}", &own).with("{bytes}", &needed);
            found.push(finding.with("{meters}", &look.policy.cable.unwrap_or(DRIVERS_CABLE)));
        }
    }
}

/// Bytes that a lossless buffer has to hold: what arrives until the switch has stopped, and one frame more
/// (`calculate_xoff` and `update_xoff_threshold` of mlx5's `port_buffer.c`).
fn headroom(look: Look<'_>) -> Option<u64> {
    let gigabits = look.port.link.speed? / 1_000_000_000;
    let frame = u64::from(look.port.port.mtu?) + ETHERNET;
    let meters = u64::from(look.policy.cable.unwrap_or(0));
    Some((301 + 216 * meters / 100) * gigabits + 272 * frame / 100 + frame)
}

fn owner(look: Look<'_>, found: &mut Vec<Finding>) {
    let Some(dcbx) = look.port.dcb.as_ref().and_then(|dcb| dcb.dcbx) else {
        return;
    };
    if dcbx & LLD_MANAGED != 0 {
        let said = vec![Evidence::new(
            "DCBX mode",
            format!("{dcbx:#04x}: managed by an LLDP agent"),
        )];
        found.push(Finding::of(&table::DCBX_NOT_HOST, &look.port.port, said));
    }
}

/// Which priority the bytes really have.
fn traffic(look: Look<'_>, found: &mut Vec<Finding>) {
    let (Some(window), Some(mask)) = (&look.port.window, look.policy.lossless_of(look.port.pfc())) else {
        return;
    };
    for direction in [Direction::Rx, Direction::Tx] {
        let (rdma, bytes) = match direction {
            Direction::Rx => (Signal::BytesRxRdma, Signal::BytesRx),
            Direction::Tx => (Signal::BytesTxRdma, Signal::BytesTx),
        };
        let rate = |priority| window.rate_of(bytes, priority);
        let Some(rdma) = window.rate(rdma).filter(|rdma| *rdma > BUSY) else {
            continue;
        };
        let Some(lossless) = list(mask).filter_map(rate).reduce(|a, b| a + b) else {
            continue;
        };
        let said = |what: String, rate: f64| Evidence::new(what, format!("{:.3} GB/s", rate / 1e9));
        let word = direction.as_str();
        let elsewhere = (0..8)
            .filter(|priority| !has(mask, *priority))
            .filter_map(|priority| Some((priority, rate(priority)?)))
            .reduce(|a, b| if b.1 > a.1 { b } else { a });
        if let Some((priority, there)) = elsewhere
            && lossless < rdma / 2.0
            && there >= rdma / 2.0
        {
            let said = vec![
                said(format!("RDMA, {word}"), rdma),
                said(format!("{}, {word}", words(mask)), lossless),
                said(format!("priority {priority}, {word}"), there),
            ];
            let finding = Finding::of(&table::ROCE_ON_OTHER_PRIORITY, &look.port.port, said);
            let dscp = roce_dscp(look.port, look.policy).unwrap_or(26);
            let wanted = list(mask).next().unwrap_or(look.policy.priority());
            found.push(finding.with("{dscp}", &dscp).with("{priority}", &wanted));
        }
        let more = lossless - rdma;
        let line = look.port.link.speed.map(|speed| speed as f64 / 8.0);
        if more > rdma / 4.0 && line.is_some_and(|line| more > line / 100.0) {
            let said = vec![
                said(format!("{}, {word}", words(mask)), lossless),
                said(format!("RDMA, {word}"), rdma),
            ];
            let finding = Finding::of(&table::OTHERS_ON_LOSSLESS, &look.port.port, said);
            found.push(finding.with("{priority}", &list(mask).next().unwrap_or(3)));
        }
    }
}
