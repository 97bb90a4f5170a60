//! `GPUDirect`, versions, temperature, optics.

use super::{Look, differs};
use crate::facts::{Facts, Rails};
use crate::finding::{Evidence, Finding};
use crate::table::host as table;
use catalog::Direction;
use model::Module;

/// PCI vendor of NVIDIA.
const NVIDIA: u64 = 0x10de;
/// From this driver on the open kernel modules hand out DMA-BUF.
const FIRST_OPEN: u32 = 515;
/// NUMA distance of a node to itself, by ACPI.
const LOCAL: u32 = 10;
/// Share of the line from which a port is busy.
const BUSY: f64 = 0.1;
const MODULE_HOT: f64 = 75.0;
const CHIP_HOT: f64 = 100.0;
/// -10 dBm, in nanowatts.
const DIM: u64 = 100_000;

pub(super) fn of_port(look: Look<'_>, found: &mut Vec<Finding>) {
    let port = &look.port.port;
    if let Some(distance) = look
        .port
        .setup
        .gpu_numa_distance
        .filter(|distance| *distance > LOCAL)
        && let Some(gpu) = &port.gpu
    {
        let said = vec![
            Evidence::new("nearest GPU", gpu.address.clone()),
            Evidence::new("NUMA distance", distance.to_string()),
        ];
        found.push(Finding::of(&table::GPU_FAR, port, said));
    }
    let link = &look.port.link;
    let heats = [
        (&table::MODULE_HOT, link.module_celsius, MODULE_HOT),
        (&table::CHIP_HOT, link.chip_celsius, CHIP_HOT),
    ];
    for (check, celsius, limit) in heats {
        if let Some(celsius) = celsius.filter(|celsius| *celsius >= limit) {
            let said = vec![Evidence::new("temperature", format!("{celsius:.1} °C"))];
            found.push(Finding::of(check, port, said));
        }
    }
    let brightest = link.rx_nanowatts.iter().max().copied().unwrap_or(0);
    let sends = link.tx_nanowatts.iter().any(|&power| power > 0);
    let dim = |power: u64| power < DIM || power < brightest / 10;
    if let Some(lane) = link.rx_nanowatts.iter().position(|power| dim(*power))
        && sends
        && look.port.is_up()
    {
        let said = vec![
            Evidence::new(
                format!("received power of lane {lane}"),
                format!("{:.3} mW", link.rx_nanowatts[lane] as f64 / 1e6),
            ),
            Evidence::new("brightest lane", format!("{:.3} mW", brightest as f64 / 1e6)),
        ];
        found.push(Finding::of(&table::OPTICS_DIM, port, said));
    }
}

pub(super) fn of_rails(rails: &Rails<'_>, found: &mut Vec<Finding>) {
    if let Some((usual, odd)) = rails.odd(|port| port.port.firmware.clone()) {
        for (port, own) in odd {
            let said = differs("firmware", own, usual.clone());
            found.push(Finding::of(&table::FIRMWARE_DIFFERS, &port.port, said));
        }
    }
    if let Some((usual, odd)) = rails.odd(|port| port.setup.driver_version.clone()) {
        for (port, own) in odd {
            let said = differs("driver version", own, usual.clone());
            found.push(Finding::of(&table::DRIVER_DIFFERS, &port.port, said));
        }
    }
}

pub(super) fn of_node(facts: &Facts, rails: &[Rails<'_>], found: &mut Vec<Finding>) {
    let has_nvidia = facts
        .node
        .gpus
        .as_ref()
        .is_some_and(|gpus| gpus.iter().any(|gpu| gpu.vendor == NVIDIA));
    let direct = &facts.node.gpu_direct;
    if rails.is_empty() || !has_nvidia || !direct.modules_known {
        return;
    }
    let driver = direct
        .gpu_driver
        .as_ref()
        .filter(|driver| driver.name == "nvidia");
    if let Some(driver) = driver
        && direct.peer_memory.is_none()
        && hands_out_dma_buf(driver) == Some(false)
    {
        let version = driver.version.clone().unwrap_or_else(|| "not known".to_owned());
        let said = vec![
            Evidence::new("nvidia_peermem, nv_peer_mem", "not loaded"),
            Evidence::new(
                "nvidia",
                format!("version {version}, proprietary modules: no DMA-BUF"),
            ),
        ];
        found.push(Finding::of_node(&table::GPUDIRECT_MISSING, said));
    }
    let busiest = rails
        .iter()
        .flat_map(Rails::ports)
        .filter_map(|port| {
            let window = port.window.as_ref()?;
            let used = [Direction::Rx, Direction::Tx].map(|direction| window.utilization(direction));
            Some((port, used.into_iter().flatten().reduce(f64::max)?))
        })
        .reduce(|a, b| if b.1 > a.1 { b } else { a });
    if let (Some(module), Some(0), Some((port, used))) =
        (&direct.peer_memory, direct.registered_bytes, busiest)
        && used >= BUSY
    {
        let said = vec![
            Evidence::new(module.name.clone(), "loaded"),
            Evidence::new("GPU memory registered with RDMA", "0 bytes"),
            Evidence::new(
                format!("utilization of {}", port.port.device),
                format!("{:.0} %", used * 100.0),
            ),
        ];
        found.push(Finding::of_node(&table::GPUDIRECT_UNUSED, said));
    }
}

/// Whether the NVIDIA driver hands out GPU memory as DMA-BUF; `None` if that is not known.
fn hands_out_dma_buf(driver: &Module) -> Option<bool> {
    if driver.proprietary? {
        return Some(false);
    }
    let major = driver.version.as_ref()?.split('.').next()?.parse::<u32>().ok()?;
    Some(major >= FIRST_OPEN)
}
