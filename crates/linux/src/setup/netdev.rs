//! What drivers of the OFED kind, and bonds, tell by files of a netdev and of an RDMA device.

use crate::Tree;
use crate::number::decimal;
use model::{Bond, EcnSetup, GidType, Port, Priorities, Trust};

/// `qos/trust`.
pub(super) fn trust(tree: &Tree, netdev: &str) -> Option<Trust> {
    let said = tree.read_string(&format!("class/net/{netdev}/qos/trust")).ok()?;
    match said.trim() {
        "pcp" => Some(Trust::Pcp),
        "dscp" => Some(Trust::Dscp),
        _ => None,
    }
}

/// `ecn/roce_np` and `ecn/roce_rp`.
pub(super) fn ecn(tree: &Tree, netdev: &str) -> EcnSetup {
    let number = |file: &str| {
        let value = tree.number(&format!("class/net/{netdev}/ecn/roce_np/{file}"), decimal);
        value.ok().and_then(|value| u32::try_from(value).ok())
    };
    let byte = |file| number(file).and_then(|value| u8::try_from(value).ok());
    EcnSetup {
        notification_point: enabled(tree, netdev, "roce_np"),
        reaction_point: enabled(tree, netdev, "roce_rp"),
        cnp_dscp: byte("cnp_dscp").filter(|dscp| *dscp < 64),
        cnp_priority: byte("cnp_802p_prio").filter(|priority| *priority < 8),
        cnp_interval: number("min_time_between_cnps"),
    }
}

/// The bond that a netdev is, or is a member of.
pub(super) fn bond(tree: &Tree, netdev: &str) -> Option<Bond> {
    let master = || {
        let master = tree.resolve(&format!("class/net/{netdev}/master")).ok()?;
        Some(master.rsplit('/').next()?.to_owned())
    };
    let is_bond = |name: &String| tree.exists(&format!("class/net/{name}/bonding"));
    let own = Some(netdev.to_owned()).filter(is_bond);
    let name = own.or_else(|| master().filter(is_bond))?;
    // A word and its number.
    let word = |file: &str| {
        let text = tree
            .read_string(&format!("class/net/{name}/bonding/{file}"))
            .ok()?;
        Some(text.split_whitespace().next()?.to_owned())
    };
    Some(Bond {
        mode: word("mode")?,
        hash: word("xmit_hash_policy"),
        name,
    })
}

/// `None` unless every priority tells.
fn enabled(tree: &Tree, netdev: &str, point: &str) -> Option<Priorities> {
    (0..8).try_fold(0, |mask, priority| {
        let file = format!("class/net/{netdev}/ecn/{point}/enable/{priority}");
        let on = tree.number(&file, decimal).ok()?;
        Some(mask | Priorities::from(on != 0) << priority)
    })
}

/// Where `rdma_cm` keeps the settings of a port, once somebody has made the device's folder there
/// (`drivers/infiniband/core/cma_configfs.c`).
fn by_cm(port: &Port) -> String {
    format!("kernel/config/rdma_cm/{}/ports/{}", port.device, port.id.number)
}

/// Which GIDs `rdma_cm` takes.
pub(super) fn cm_mode(tree: &Tree, port: &Port) -> Option<GidType> {
    let mode = tree
        .read_string(&format!("{}/default_roce_mode", by_cm(port)))
        .ok()?;
    match mode.as_str() {
        "IB/RoCE v1" => Some(GidType::V1),
        "RoCE v2" => Some(GidType::V2),
        _ => None,
    }
}

/// What connections get that ask for nothing: the device's traffic class, or that of `rdma_cm` (configfs, for those that use it).
pub(super) fn default_tos(tree: &Tree, port: &Port) -> Option<u8> {
    let (device, number) = (&port.device, port.id.number);
    let forced = tree.read_string(&format!("class/infiniband/{device}/tc/{number}/traffic_class"));
    // "Global tclass=106", and lines for single connections behind it.
    let forced = forced.ok().and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Global tclass="))?;
        line.trim().parse().ok()
    });
    let by_cm = || {
        let file = format!("{}/default_roce_tos", by_cm(port));
        u8::try_from(tree.number(&file, decimal).ok()?).ok()
    };
    forced.or_else(by_cm)
}
