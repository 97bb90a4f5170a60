//! The simulated server as the kernel would show it in sysfs.
//!
//! Layout: `drivers/infiniband/core/sysfs.c`, `net/core/net-sysfs.c` and `drivers/pci/pci-sysfs.c` of Linux 6.12.

use crate::columns::cells;
use crate::rail::Rail;
use crate::server::{self, Place};
use crate::value::value;
use crate::world::World;
use catalog::{Signal, SourceKind};
use model::{Gid, GidType, PcieLink, Port, PortState};
use std::fmt::{Display, Write as _};

/// PCI classes of an Ethernet controller and of a 3D controller, and the vendor of the GPUs.
const NIC_CLASS: &str = "0x020000";
const GPU_CLASS: &str = "0x030200";
const GPU_VENDOR: &str = "0x10de";
/// `IFF_UP`, `IFF_BROADCAST` and `IFF_MULTICAST`.
const FLAGS: &str = "0x1003";
/// For how long the kernel answers from its own copy of `hw_counters`, by default.
const LIFESPAN_MS: u32 = 10;

/// The tree, a line for each file, link or unreadable file.
pub(crate) fn write(world: &World) -> String {
    let mut tree = Tree::default();
    let driver = world.setup.nic.make().driver;
    tree.file(format!("bus/pci/drivers/{driver}/module"), driver);
    for (rail, (port, state)) in server::ports(world).iter().zip(&world.rails).enumerate() {
        write_rail(&mut tree, world, rail, port, state);
    }
    tree.0
}

/// Lines of a tree: `PATH = CONTENT`, `PATH -> TARGET`, `PATH ! ERRNO`.
#[derive(Default)]
struct Tree(String);

impl Tree {
    fn file(&mut self, path: impl Display, content: impl Display) {
        writeln!(self.0, "{path} = {content}").expect("a string takes any text");
    }

    fn link(&mut self, path: impl Display, target: impl Display) {
        writeln!(self.0, "{path} -> {target}").expect("a string takes any text");
    }

    fn unreadable(&mut self, path: impl Display, errno: &str) {
        writeln!(self.0, "{path} ! {errno}").expect("a string takes any text");
    }
}

fn write_rail(tree: &mut Tree, world: &World, rail: usize, port: &Port, state: &Rail) {
    let place = Place::of(rail);
    let make = world.setup.nic.make();
    let switch = switch(place);
    let nic = format!("{switch}/{}/{}", place.address(place.bus - 1, 0), place.nic());
    let gpu = format!("{switch}/{}/{}", place.address(place.bus - 1, 1), place.gpu());
    let node = port.numa_node.unwrap_or_default();
    let pcie = port.pci.as_ref().and_then(|pci| pci.current.zip(pci.max));

    function(tree, &nic, NIC_CLASS, make.vendor, node);
    tree.link(
        format!("{nic}/driver"),
        format!("{}bus/pci/drivers/{}", up(&nic), make.driver),
    );
    if let Some((current, max)) = pcie {
        pcie_link(tree, &nic, "current", current);
        pcie_link(tree, &nic, "max", max);
    }
    function(tree, &gpu, GPU_CLASS, GPU_VENDOR, node);
    netdev(tree, &nic, rail, port, state);
    rdma(tree, &nic, port, state);
    hw_counters(tree, &nic, world, port, state);
}

/// The upstream port of the switch of a NIC and its GPU.
fn switch(place: Place) -> String {
    let root = place.bus - 3;
    format!(
        "devices/pci{:04x}:{root:02x}/{}/{}",
        place.domain,
        place.address(root, 1),
        place.address(root + 1, 0)
    )
}

/// The way from a directory to the root of the tree.
fn up(path: &str) -> String {
    "../".repeat(path.split('/').count())
}

/// The last name of a path.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn function(tree: &mut Tree, path: &str, class: &str, vendor: &str, node: u32) {
    tree.link(
        format!("bus/pci/devices/{}", name(path)),
        format!("../../../{path}"),
    );
    tree.file(format!("{path}/class"), class);
    tree.file(format!("{path}/vendor"), vendor);
    tree.file(format!("{path}/numa_node"), node);
}

fn pcie_link(tree: &mut Tree, nic: &str, which: &str, link: PcieLink) {
    tree.file(
        format!("{nic}/{which}_link_speed"),
        format_args!("{:.1} GT/s PCIe", link.gigatransfers),
    );
    tree.file(format!("{nic}/{which}_link_width"), link.width);
}

fn netdev(tree: &mut Tree, nic: &str, rail: usize, port: &Port, state: &Rail) {
    let netdev = port.netdev.as_deref().expect("a simulated port has a netdev");
    let path = format!("{nic}/net/{netdev}");
    tree.link(format!("class/net/{netdev}"), format!("../../{path}"));
    tree.link(format!("{path}/device"), format!("../../../{}", name(nic)));
    tree.file(format!("{path}/address"), server::mac(rail));
    tree.file(format!("{path}/ifindex"), server::ifindex(rail));
    tree.file(format!("{path}/type"), 1);
    tree.file(format!("{path}/flags"), FLAGS);
    tree.file(format!("{path}/dev_port"), 0);
    tree.file(format!("{path}/mtu"), port.mtu.unwrap_or_default());
    tree.file(
        format!("{path}/operstate"),
        if state.carrier { "up" } else { "down" },
    );
    tree.file(format!("{path}/carrier"), u8::from(state.carrier));
    tree.file(format!("{path}/carrier_up_count"), state.carrier_up);
    tree.file(format!("{path}/carrier_down_count"), state.carrier_down);
    match speed(state) {
        Some(speed) => tree.file(format!("{path}/speed"), speed),
        // `SPEED_UNKNOWN`.
        None => tree.file(format!("{path}/speed"), -1),
    }
}

/// Megabits per second, while there is a carrier.
fn speed(state: &Rail) -> Option<u64> {
    value(state, SourceKind::Settings, Signal::LinkSpeed, None)
}

fn rdma(tree: &mut Tree, nic: &str, port: &Port, state: &Rail) {
    let device = format!("{nic}/infiniband/{}", port.device);
    tree.link(
        format!("class/infiniband/{}", port.device),
        format!("../../{device}"),
    );
    tree.link(format!("{device}/device"), format!("../../../{}", name(nic)));
    tree.file(format!("{device}/node_type"), "1: CA");
    tree.file(format!("{device}/node_desc"), &port.device);
    let facts = [
        ("node_guid", &port.guid),
        ("fw_ver", &port.firmware),
        ("board_id", &port.board),
    ];
    for (file, fact) in facts {
        if let Some(fact) = fact {
            tree.file(format!("{device}/{file}"), fact);
        }
    }
    let files = format!("{device}/ports/{}", port.id.number);
    let (number, physical) = if state.carrier {
        (4, "5: LinkUp")
    } else {
        (1, "3: Disabled")
    };
    let word = port.state.unwrap_or(PortState::Nop).as_str();
    tree.file(format!("{files}/state"), format_args!("{number}: {word}"));
    tree.file(format!("{files}/phys_state"), physical);
    tree.file(format!("{files}/link_layer"), port.link_layer.as_str());
    tree.file(format!("{files}/rate"), rate(state));
    gids(tree, &files, &port.gids);
}

/// As `rate_show` words it: four lanes of NDR, or two. Without a carrier the kernel takes the lowest rate there is.
fn rate(state: &Rail) -> String {
    match speed(state) {
        Some(speed) => format!("{} Gb/sec ({}X NDR)", speed / 1000, speed / 100_000),
        None => "2.5 Gb/sec (1X SDR)".to_owned(),
    }
}

fn gids(tree: &mut Tree, files: &str, gids: &[Gid]) {
    for Gid {
        index,
        gid,
        kind,
        netdev,
    } in gids
    {
        tree.file(format!("{files}/gids/{index}"), gid);
        let kind = match kind {
            GidType::V1 => "IB/RoCE v1",
            GidType::V2 => "RoCE v2",
            GidType::Unknown => "",
        };
        tree.file(format!("{files}/gid_attrs/types/{index}"), kind);
        if let Some(netdev) = netdev {
            tree.file(format!("{files}/gid_attrs/ndevs/{index}"), netdev);
        }
    }
    // The attributes of an empty entry cannot be read.
    let empty = gids.len();
    tree.file(
        format!("{files}/gids/{empty}"),
        "0000:0000:0000:0000:0000:0000:0000:0000",
    );
    for attribute in ["types", "ndevs"] {
        tree.unreadable(format!("{files}/gid_attrs/{attribute}/{empty}"), "EINVAL");
    }
}

/// The RDMA counters of a port. What the driver refuses to answer is not there, as its device is not.
fn hw_counters(tree: &mut Tree, nic: &str, world: &World, port: &Port, state: &Rail) {
    let files = format!("{nic}/infiniband/{}/ports/{}", port.device, port.id.number);
    for (source, folder) in [
        (SourceKind::HwCounters, "hw_counters"),
        (SourceKind::PortCounters, "counters"),
    ] {
        let refused = state.driver.refuses(source, state.driver.registrations());
        for cell in cells(world.setup, source) {
            let path = format!("{files}/{folder}/{}", cell.name);
            match &refused {
                Some(why) => tree.unreadable(path, why.reason),
                None => tree.file(path, cell.read(state)),
            }
        }
    }
    tree.file(format!("{files}/hw_counters/lifespan"), LIFESPAN_MS);
}
