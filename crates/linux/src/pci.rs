//! Places on the PCI bus: a NIC's link, its NUMA node, and the GPU that is nearest to it.

use crate::number::{decimal, hexadecimal};
use crate::tree::Tree;
use model::{Gpu, GpuSetup, Pci, PcieLink, Port};
use std::cmp::Reverse;

/// Base class and subclass of a VGA controller, a 3D controller, any other display controller, and a processing
/// accelerator (`include/linux/pci_ids.h`).
const DISPLAY: u64 = 0x03;
const VGA: u64 = 0x0300;
const ACCELERATOR: u64 = 0x1200;
/// Vendors whose VGA controllers are a console: ASPEED and Matrox in baseboard management controllers, the rest in virtual
/// machines (Red Hat, QEMU, `VMware`, Cirrus, Microsoft).
const CONSOLES: [u64; 8] = [0x1a03, 0x102b, 0x1af4, 0x1b36, 0x1234, 0x15ad, 0x1013, 0x1414];

/// The last component of `path` if it is a PCI address such as `0000:1a:00.0`.
pub(crate) fn address(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    is_address(name).then_some(name)
}

/// The part of `path` down to the PCI function that it is, or lies below: a sub-function is an auxiliary device of its
/// PCI function.
pub(crate) fn function(path: &str) -> Option<&str> {
    let mut path = path;
    loop {
        if address(path).is_some() {
            return Some(path);
        }
        path = path.rsplit_once('/')?.0;
    }
}

/// The PCI function of a port, below `devices/`.
pub(crate) fn device(tree: &Tree, port: &Port) -> Option<String> {
    let address = &port.pci.as_ref()?.address;
    let path = tree.resolve(&format!("bus/pci/devices/{address}")).ok()?;
    function(&path).map(str::to_owned)
}

/// The bridge that the function at `path` is behind; `None` of a root port.
pub(crate) fn above(path: &str) -> Option<&str> {
    let (above, _) = path.rsplit_once('/')?;
    address(above).map(|_| above)
}

fn is_address(name: &str) -> bool {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = || {
        let (rest, function) = name.rsplit_once('.')?;
        let (rest, device) = rest.rsplit_once(':')?;
        let (domain, bus) = rest.rsplit_once(':')?;
        // The domain of a device behind Intel VMD has five digits.
        Some(
            domain.len() >= 4
                && bus.len() == 2
                && device.len() == 2
                && [domain, bus, device, function].map(hex) == [true; 4],
        )
    };
    parts().unwrap_or(false)
}

/// Address and link of the PCI function at `path`, and its NUMA node.
pub(crate) fn facts(tree: &Tree, path: &str) -> Option<(Pci, Option<u32>)> {
    let address = address(path)?.to_owned();
    let pci = Pci {
        address,
        current: link(tree, path, "current"),
        max: link(tree, path, "max"),
    };
    Some((pci, numa_node(tree, path)))
}

pub(crate) fn link(tree: &Tree, path: &str, which: &str) -> Option<PcieLink> {
    let speed = tree.read_string(&format!("{path}/{which}_link_speed")).ok()?;
    let width = tree.number(&format!("{path}/{which}_link_width"), decimal).ok()?;
    // 0 lanes and 255 lanes stand for a link that is down or a device that is off the bus.
    let width = u8::try_from(width)
        .ok()
        .filter(|width| (1..=32).contains(width))?;
    Some(PcieLink {
        gigatransfers: gigatransfers(&speed)?,
        width,
    })
}

/// `32.0 GT/s PCIe`, or before 5.10 `32 GT/s`; `Unknown` is none.
fn gigatransfers(speed: &str) -> Option<f32> {
    let number = speed.split_once(" GT/s")?.0;
    number
        .parse()
        .ok()
        .filter(|speed: &f32| speed.is_finite() && *speed > 0.0)
}

pub(crate) fn numa_node(tree: &Tree, path: &str) -> Option<u32> {
    // -1, which is no number here, is a machine without NUMA or firmware that does not tell.
    let node = tree.number(&format!("{path}/numa_node"), decimal).ok()?;
    u32::try_from(node).ok()
}

/// The GPUs of a node.
#[derive(Debug, Default)]
pub(crate) struct Gpus(Vec<Candidate>);

#[derive(Debug)]
struct Candidate {
    address: String,
    vendor: u64,
    path: String,
    numa_node: Option<u32>,
}

impl Gpus {
    /// The display controllers and accelerators on the PCI bus.
    pub(crate) fn find(tree: &Tree) -> Self {
        let devices = tree.list("bus/pci/devices").unwrap_or_default();
        Self(
            devices
                .into_iter()
                .filter_map(|device| candidate(tree, device.name))
                .collect(),
        )
    }

    /// Every one of them.
    pub(crate) fn all(self) -> Vec<GpuSetup> {
        let of = |gpu: Candidate| GpuSetup {
            address: gpu.address,
            vendor: gpu.vendor,
            numa_node: gpu.numa_node,
        };
        self.0.into_iter().map(of).collect()
    }

    /// The GPU with which the function at `path` has the longest way down the PCI tree in common; among those that share
    /// nothing, one of the same NUMA node; among equals, the one with the lowest address. `None` if nothing tells that any
    /// is near.
    pub(crate) fn nearest(&self, path: &str, numa_node: Option<u32>) -> Option<Gpu> {
        let rank = |gpu: &Candidate| {
            (
                common(path, &gpu.path),
                numa_node.is_some() && gpu.numa_node == numa_node,
            )
        };
        let near = |gpu: &&Candidate| rank(gpu) > (0, false);
        let nearest = self
            .0
            .iter()
            .filter(near)
            .min_by_key(|gpu| (Reverse(rank(gpu)), &gpu.address))?;
        Some(Gpu {
            address: nearest.address.clone(),
            bridges: bridges(path, &nearest.path),
        })
    }
}

fn candidate(tree: &Tree, address: String) -> Option<Candidate> {
    let read = |file: &str| {
        tree.number(&format!("bus/pci/devices/{address}/{file}"), hexadecimal)
            .ok()
    };
    // Three bytes: base class, subclass, programming interface.
    let class = read("class")? >> 8;
    let is_gpu = match class {
        VGA => !CONSOLES.contains(&read("vendor")?),
        ACCELERATOR => true,
        other => other >> 8 == DISPLAY,
    };
    if !is_gpu {
        return None;
    }
    let path = tree.resolve(&format!("bus/pci/devices/{address}")).ok()?;
    let numa_node = numa_node(tree, &path);
    let vendor = read("vendor")?;
    Some(Candidate {
        address,
        vendor,
        path,
        numa_node,
    })
}

/// Host bridge, bridges and device of a path in `devices/`.
fn hops(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').skip_while(|name| !name.starts_with("pci"))
}

/// How many hops two paths have in common, their host bridge included.
fn common(a: &str, b: &str) -> usize {
    hops(a).zip(hops(b)).take_while(|(a, b)| a == b).count()
}

/// Bridges on the way from one device to the other, `None` if the way leads over the host bridge.
fn bridges(a: &str, b: &str) -> Option<u8> {
    let common = common(a, b);
    if common < 2 {
        return None;
    }
    // Of what the two do not share, the devices themselves are no bridges; of what they share, the way turns at the last.
    let own = |path| hops(path).count().saturating_sub(common + 1);
    u8::try_from(own(a) + own(b) + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NIC: &str = "devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0";

    fn gpus(paths: &[(&str, Option<u32>)]) -> Gpus {
        let candidate = |&(path, numa_node): &(&str, Option<u32>)| Candidate {
            address: address(path).unwrap().to_owned(),
            vendor: 0x10de,
            path: path.to_owned(),
            numa_node,
        };
        Gpus(paths.iter().map(candidate).collect())
    }

    #[test]
    fn a_gpu_under_the_same_switch_is_nearest() {
        let gpus = gpus(&[
            ("devices/pci0000:00/0000:00:01.0/0000:01:00.0", Some(0)),
            ("devices/pci0000:10/0000:10:02.0/0000:18:00.0", Some(0)),
            (
                "devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0",
                Some(0),
            ),
        ]);
        let gpu = gpus.nearest(NIC, Some(0)).unwrap();
        // Downstream port, upstream port of the switch, downstream port.
        assert_eq!(
            gpu,
            Gpu {
                address: "0000:14:00.0".into(),
                bridges: Some(3)
            }
        );
    }

    #[test]
    fn functions_behind_one_bridge_have_one_bridge_between_them() {
        let gpus = gpus(&[(
            "devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.1",
            None,
        )]);
        assert_eq!(gpus.nearest(NIC, None).unwrap().bridges, Some(1));
    }

    #[test]
    fn devices_of_different_root_ports_meet_in_the_cpu() {
        let gpus = gpus(&[("devices/pci0000:10/0000:10:03.0/0000:20:00.0", None)]);
        assert_eq!(
            gpus.nearest(NIC, None),
            Some(Gpu {
                address: "0000:20:00.0".into(),
                bridges: None
            })
        );
    }

    #[test]
    fn then_the_numa_node_decides_and_then_the_address() {
        let far = ("devices/pci0000:40/0000:40:01.0/0000:41:00.0", Some(0));
        let near = ("devices/pci0000:90/0000:90:01.0/0000:91:00.0", Some(1));
        let also = ("devices/pci0000:80/0000:80:01.0/0000:81:00.0", Some(1));
        let gpus = gpus(&[far, near, also]);
        assert_eq!(gpus.nearest(NIC, Some(1)).unwrap().address, "0000:81:00.0");
        assert_eq!(gpus.nearest(NIC, Some(0)).unwrap().address, "0000:41:00.0");
        assert_eq!(
            gpus.nearest(NIC, None),
            None,
            "an unknown node is not the same node"
        );
        assert_eq!(gpus.nearest(NIC, Some(2)), None);
    }

    #[test]
    fn an_address_is_known_by_its_form() {
        assert_eq!(address("devices/pci0000:10/10000:01:00.0"), Some("10000:01:00.0"));
        for other in [
            "devices/platform/mlx5_core.0",
            "devices/pci0000:10",
            "a/mlx5_core.sf.4",
            "a/0000:1a:00",
            "a/0000:1a:0.0",
            "",
        ] {
            assert_eq!(address(other), None, "{other}");
        }
        assert_eq!(
            function("devices/pci0000:08/0000:08:00.0/mlx5_core.sf.4"),
            Some("devices/pci0000:08/0000:08:00.0")
        );
        assert_eq!(function("devices/platform/HISI00D1:00"), None);
    }

    #[test]
    fn a_speed_is_read_in_both_spellings() {
        assert_eq!(gigatransfers("32.0 GT/s PCIe"), Some(32.0));
        assert_eq!(gigatransfers("8 GT/s"), Some(8.0));
        for none in ["Unknown", "Unknown speed", "", "-1 GT/s", "NaN GT/s", "inf GT/s"] {
            assert_eq!(gigatransfers(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text: String) {
            let _ = (address(&text), function(&text), gigatransfers(&text), bridges(&text, NIC));
        }
    }
}
