//! What drivers of the OFED kind tell by files of a netdev and of an RDMA device.

use crate::Tree;
use crate::number::decimal;
use model::{EcnSetup, Port, Priorities, Trust};

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

/// `None` unless every priority tells.
fn enabled(tree: &Tree, netdev: &str, point: &str) -> Option<Priorities> {
    (0..8).try_fold(0, |mask, priority| {
        let file = format!("class/net/{netdev}/ecn/{point}/enable/{priority}");
        let on = tree.number(&file, decimal).ok()?;
        Some(mask | Priorities::from(on != 0) << priority)
    })
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
        let file = format!("kernel/config/rdma_cm/{device}/ports/{number}/default_roce_tos");
        u8::try_from(tree.number(&file, decimal).ok()?).ok()
    };
    forced.or_else(by_cm)
}
