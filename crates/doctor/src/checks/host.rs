//! `GPUDirect`, versions, temperature, optics.

use super::{Look, differs};
use crate::facts::{Facts, Rails};
use crate::finding::{Evidence, Finding};
use crate::table::host as table;
use catalog::Direction;
use model::{GpuDirect, KernelBuild, Module};

/// PCI vendor of NVIDIA.
const NVIDIA: u64 = 0x10de;
/// From this driver on the open kernel modules hand out DMA-BUF.
const FIRST_OPEN: u32 = 515;
/// From this kernel on RDMA takes DMA-BUF (commit 368c0159d492).
const TAKES_DMA_BUF: (u32, u32) = (5, 12);
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
    if rails.is_empty() {
        return;
    }
    not_built(direct, found);
    if !has_nvidia || !direct.modules_known {
        return;
    }
    let driver = direct
        .gpu_driver
        .as_ref()
        .filter(|driver| driver.name == "nvidia");
    if let Some(driver) = driver
        && direct.peer_memory.is_none()
        && let Some(why) = without_dma_buf(driver, direct.kernel.as_ref())
    {
        let said = vec![Evidence::new("nvidia_peermem, nv_peer_mem", "not loaded"), why];
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

/// Why GPU memory does not reach a NIC as DMA-BUF: the NVIDIA driver does not hand it out, or the kernel does not take it.
/// `None` if it may.
fn without_dma_buf(driver: &Module, kernel: Option<&KernelBuild>) -> Option<Evidence> {
    let version = driver.version.as_deref();
    let major = || version?.split('.').next()?.parse::<u32>().ok();
    let is_open = driver.proprietary == Some(false);
    if driver.proprietary == Some(true) || (is_open && major().is_some_and(|major| major < FIRST_OPEN)) {
        let kind = if is_open {
            "too old for"
        } else {
            "proprietary modules: no"
        };
        let version = version.unwrap_or("not known");
        return Some(Evidence::new(
            "nvidia",
            format!("version {version}, {kind} DMA-BUF"),
        ));
    }
    let kernel =
        kernel.filter(|kernel| number(&kernel.release).is_some_and(|number| number < TAKES_DMA_BUF))?;
    Some(Evidence::new(
        "kernel",
        format!("{}, which takes no DMA-BUF for RDMA", kernel.release),
    ))
}

/// The first two numbers of a release such as `5.15.0-105-generic`.
fn number(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

/// AMD's libraries look at the kernel's options themselves.
fn not_built(direct: &GpuDirect, found: &mut Vec<Finding>) {
    let amd = direct
        .gpu_driver
        .as_ref()
        .filter(|driver| driver.name == "amdgpu");
    let Some(kernel) = amd.and(direct.kernel.as_ref()) else {
        return;
    };
    // A client of the OFED kind needs neither.
    if let (Some(lacks @ [_, ..]), None) = (kernel.lacks.as_deref(), direct.registered_bytes) {
        let said = vec![
            Evidence::new("kernel", kernel.release.clone()),
            Evidence::new("built without", lacks.join(", ")),
        ];
        found.push(Finding::of_node(&table::DMA_BUF_NOT_BUILT, said));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_its_number() {
        for (release, right) in [
            ("5.15.0-105-generic", Some((5, 15))),
            ("6.12.0+", Some((6, 12))),
            ("4.18.0-553.el8_10.x86_64", Some((4, 18))),
            ("6.1", Some((6, 1))),
            ("linux", None),
            ("6", None),
        ] {
            assert_eq!(number(release), right, "{release}");
        }
    }
}
