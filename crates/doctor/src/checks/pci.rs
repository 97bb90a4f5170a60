//! PCI Express: the link, the way to the root, device control, ACS, IOMMU.

use super::Look;
use crate::check::Check;
use crate::finding::{Evidence, Finding};
use crate::table::port as table;
use catalog::Signal;
use model::{Iommu, PciHop, PcieLink};

/// What of the raw bandwidth is left for data: headers of 24 bytes and more on payloads of 256, acknowledgements, flow control.
const EFFICIENCY: f64 = 0.88;
/// Corrected errors a second that no link in order has: the specification's bit error rate of 10^-12 is 0.5 of 32 GT/s x16.
const CORRECTED: f64 = 1.0;
/// Transfer rate up to which the link has no error correction of its own, with which retries are usual.
const WITHOUT_FEC: f32 = 32.0;
/// From this speed on a small read request is felt, in bits per second.
const FAST: u64 = 100_000_000_000;

/// Bits per second that a link carries, its encoding taken off: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, and nearly
/// nothing lost in the flits of 64 GT/s (PCI Express Base Specification 6.0, 4.2).
fn bandwidth(link: PcieLink) -> f64 {
    let encoding = match link.gigatransfers {
        speed if speed <= 5.0 => 0.8,
        speed if speed <= 32.0 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    };
    f64::from(link.gigatransfers) * 1e9 * f64::from(link.width) * encoding
}

fn words(link: PcieLink) -> String {
    format!("{} GT/s x{}", link.gigatransfers, link.width)
}

pub(super) fn of_port(look: Look<'_>, found: &mut Vec<Finding>) {
    links(look, found);
    capacity(look, found);
    control(look, found);
    errors(look, found);
    redirection(look, found);
    let has_gpus = look.facts.node.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty());
    if has_gpus && look.port.setup.iommu == Some(Iommu::Translated) {
        let said = vec![Evidence::new(
            "IOMMU group type",
            "DMA: each access is translated",
        )];
        found.push(Finding::of(&table::IOMMU_TRANSLATES, &look.port.port, said));
    }
}

/// Every link on the way to the root. Stations come in pairs, the lower and the upper end of one link: the function and the
/// port above it, the upstream port of a switch and the port above that. Both ends tell the link in use.
fn links(look: Look<'_>, found: &mut Vec<Finding>) {
    for ends in look.port.setup.pci.chunks(2) {
        let [hop, above @ ..] = ends else { continue };
        let (Some(now), Some(own)) = (hop.current, hop.max) else {
            continue;
        };
        let other = above.first().and_then(|above| above.max).unwrap_or(own);
        let could = PcieLink {
            width: own.width.min(other.width),
            gigatransfers: own.gigatransfers.min(other.gigatransfers),
        };
        if now.width < could.width {
            push(look, &table::PCIE_NARROW, hop, now, could, found);
        }
        if now.gigatransfers < could.gigatransfers {
            push(look, &table::PCIE_SLOW, hop, now, could, found);
        }
    }
}

fn push(
    look: Look<'_>,
    check: &'static Check,
    hop: &PciHop,
    now: PcieLink,
    could: PcieLink,
    found: &mut Vec<Finding>,
) {
    let said = vec![
        Evidence::new(format!("PCIe link of {}", hop.address), words(now)),
        Evidence::new("both ends are capable of", words(could)),
    ];
    found.push(Finding::of(check, &look.port.port, said).with("{hop}", &hop.address));
}

/// Whether `PCIe` carries the line.
fn capacity(look: Look<'_>, found: &mut Vec<Finding>) {
    let (Some(nic), Some(speed)) = (look.port.setup.pci.first(), look.port.link.speed) else {
        return;
    };
    let carries = |link: PcieLink| bandwidth(link) * EFFICIENCY;
    let gigabits = |bits: f64| format!("{:.0} Gb/s", bits / 1e9);
    let line = speed as f64;
    if let Some(now) = nic.current
        && carries(now) < line
    {
        let said = vec![
            Evidence::new(
                "PCIe link",
                format!("{}: carries about {}", words(now), gigabits(carries(now))),
            ),
            Evidence::new("Ethernet link", gigabits(line)),
        ];
        found.push(Finding::of(&table::PCIE_BELOW_LINE, &look.port.port, said));
    }
    let Some(slot) = look.port.setup.pci.get(1) else {
        return;
    };
    let exceeds = |link: PcieLink, bridge: PcieLink| {
        link.width > bridge.width || link.gigatransfers > bridge.gigatransfers
    };
    // A bridge that a hypervisor made up tells less than the link that the NIC has.
    if let (Some(now), Some(own), Some(bridge)) = (nic.current, nic.max, slot.max)
        && exceeds(own, bridge)
        && !exceeds(now, bridge)
        && carries(bridge) < line
    {
        let said = vec![
            Evidence::new(format!("slot ({})", slot.address), words(bridge)),
            Evidence::new("NIC", words(own)),
            Evidence::new("Ethernet link", gigabits(line)),
        ];
        found.push(Finding::of(&table::PCIE_SLOT, &look.port.port, said).with("{hop}", &slot.address));
    }
}

fn control(look: Look<'_>, found: &mut Vec<Finding>) {
    let hops = &look.port.setup.pci;
    let Some(nic) = hops.first().and_then(|nic| nic.express) else {
        return;
    };
    let all: Option<Vec<_>> = hops.iter().map(|hop| hop.express).collect();
    let supported = all.and_then(|all| all.iter().map(|express| express.payload_supported).min());
    if let Some(supported) = supported
        && nic.payload < supported.min(256)
    {
        let said = vec![
            Evidence::new("payload in use", format!("{} bytes", nic.payload)),
            Evidence::new(
                "payload that the whole way supports",
                format!("{supported} bytes"),
            ),
        ];
        found.push(Finding::of(&table::PCIE_PAYLOAD, &look.port.port, said));
    }
    if nic.read_request <= 256 && look.port.link.speed.is_some_and(|speed| speed >= FAST) {
        let said = vec![Evidence::new(
            "read request",
            format!("{} bytes", nic.read_request),
        )];
        found.push(Finding::of(&table::PCIE_READ_REQUEST, &look.port.port, said));
    }
}

/// Errors while the node is looked at, and fatal ones of before.
fn errors(look: Look<'_>, found: &mut Vec<Finding>) {
    let link = look.port.setup.pci.first().and_then(|nic| nic.current);
    let is_exact = link.is_none_or(|link| link.gigatransfers <= WITHOUT_FEC);
    let rate = |signal| look.port.window.as_ref()?.rate(signal);
    let mut said = Vec::new();
    for (what, signal, is_corrected) in [
        ("corrected, noticed by the NIC", Signal::PcieCorrectable, true),
        (
            "corrected, noticed by the slot",
            Signal::PcieSlotCorrectable,
            true,
        ),
        (
            "for which the link recovered, seen by the firmware",
            Signal::PcieRxErrors,
            true,
        ),
        (
            "for which the other end recovered, seen by the firmware",
            Signal::PcieTxErrors,
            true,
        ),
        ("not corrected", Signal::PcieNonfatal, false),
        ("fatal", Signal::PcieFatal, false),
    ] {
        let is_many = |rate: &f64| {
            if is_corrected {
                is_exact && *rate >= CORRECTED
            } else {
                *rate > 0.0
            }
        };
        let rate = rate(signal).filter(is_many);
        said.extend(rate.map(|rate| Evidence::new(format!("PCIe errors, {what}"), format!("{rate:.1}/s"))));
    }
    let before = look.port.link.pcie_fatal.filter(|errors| *errors > 0);
    said.extend(
        before.map(|errors| Evidence::new("fatal PCIe errors since the device is there", errors.to_string())),
    );
    if !said.is_empty() {
        found.push(Finding::of(&table::PCIE_ERRORS, &look.port.port, said));
    }
}

/// ACS of the bridges between the NIC and the GPU that shares a switch with it. The root port is none of them.
fn redirection(look: Look<'_>, found: &mut Vec<Finding>) {
    let Some(bridges) = look.port.port.gpu.as_ref().and_then(|gpu| gpu.bridges) else {
        return;
    };
    // Two functions below one bridge have no switch between them.
    if bridges < 2 {
        return;
    }
    let above = look.port.setup.pci.iter().skip(1);
    let redirects = above
        .filter_map(|hop| Some((hop, hop.acs?)))
        .find(|(_, acs)| acs.request_redirect || acs.completion_redirect);
    let Some((hop, acs)) = redirects else { return };
    let services: Vec<_> = [
        (acs.request_redirect, "requests"),
        (acs.completion_redirect, "completions"),
    ]
    .into_iter()
    .filter_map(|(on, name)| on.then_some(name))
    .collect();
    let gpu = look.port.port.gpu.as_ref().map_or("", |gpu| &gpu.address);
    let said = vec![
        Evidence::new(
            format!("ACS of {}", hop.address),
            format!("redirects {}", services.join(" and ")),
        ),
        Evidence::new("GPU below the same switch", gpu),
    ];
    found.push(Finding::of(&table::ACS_REDIRECT, &look.port.port, said).with("{hop}", &hop.address));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_hundred_gigabits_need_the_fifth_generation() {
        let link = |gigatransfers, width| PcieLink { gigatransfers, width };
        let carries = |link| bandwidth(link) * EFFICIENCY;
        assert!(carries(link(32.0, 16)) > 400e9);
        assert!(carries(link(16.0, 16)) < 400e9);
        assert!(carries(link(16.0, 16)) > 200e9);
        assert!(carries(link(8.0, 16)) > 100e9);
        assert!(carries(link(64.0, 16)) > 800e9);
    }
}
