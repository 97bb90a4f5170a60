//! Ports of RDMA devices.

use super::netdev::{self, Netdev};
use super::{Found, Object, Place, driver, gids};
use crate::Context;
use crate::link::Carrier;
use crate::pci::{self, Gpus};
use crate::rdma::nldev;
use crate::tree::Tree;
use model::{DeviceId, Gid, LinkLayer, Port, PortId, PortState};
use std::collections::HashMap;

/// What the software drivers say of themselves: `rxe_register_device` in `drivers/infiniband/sw/rxe/rxe_verbs.c`,
/// `SIW_NODE_DESC_COMMON` in `include/uapi/rdma/siw-abi.h`.
const SOFTWARE: [(&str, &str); 2] = [("rxe", "rxe"), ("Software iWARP stack", "siw")];

/// Index of each RDMA device that this process may see; empty where the tree is no kernel's.
pub(super) fn indexes(ctx: &Context) -> HashMap<String, u32> {
    if !ctx.tree.is_sysfs() {
        return HashMap::new();
    }
    nldev::indexes().unwrap_or_else(|errno| {
        tracing::debug!(%errno, "RDMA netlink does not list devices");
        HashMap::new()
    })
}

/// What all ports of a device share.
struct Device<'a> {
    name: &'a str,
    index: Option<u32>,
    driver: String,
    firmware: Option<String>,
    board: Option<String>,
    guid: Option<String>,
    /// Its device, below `devices/`; none of a software device, whose link, on old kernels, is that of its netdev.
    path: Option<String>,
    /// The netdev that a soft-RoCE device was made on.
    parent: Option<String>,
    place: Place,
}

/// The ports of a device. One that cannot be read costs itself alone.
pub(super) fn ports(
    tree: &Tree,
    gpus: &Gpus,
    netdevs: &[Netdev],
    object: &Object,
    index: Option<u32>,
) -> Vec<Found> {
    let name = &object.name;
    let device = Device::read(tree, gpus, object, index);
    let ports = tree
        .list(&format!("class/infiniband/{name}/ports"))
        .unwrap_or_else(|why| {
            tracing::debug!(device = name, %why, "an RDMA device without ports");
            Vec::new()
        });
    let mut numbers: Vec<u32> = ports.iter().filter_map(|port| port.name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
        .into_iter()
        .map(|number| device.port(tree, netdevs, number))
        .collect()
}

impl<'a> Device<'a> {
    fn read(tree: &Tree, gpus: &Gpus, object: &'a Object, index: Option<u32>) -> Self {
        let name = &object.name;
        let text = |file| {
            let text = tree.read_string(&format!("class/infiniband/{name}/{file}")).ok();
            text.filter(|text| !text.is_empty())
        };
        // rdma-ndd rewrites the node description, but only soft-RoCE has a `parent`.
        let parent = text("parent").filter(|parent| gids::is_name(parent));
        let software = match &parent {
            Some(_) => Some("rxe"),
            None => text("node_desc").and_then(|said| {
                SOFTWARE
                    .iter()
                    .find(|(known, _)| *known == said)
                    .map(|(_, driver)| *driver)
            }),
        };
        let path = match software {
            Some(_) => None,
            None => object.device.clone(),
        };
        let place = path
            .as_deref()
            .map(|path| Place::of(tree, gpus, path))
            .unwrap_or_default();
        let driver = match (software, &path) {
            (Some(software), _) => software.to_owned(),
            (None, Some(path)) => driver(tree, path),
            (None, None) => "unknown".to_owned(),
        };
        let guid = text("node_guid").filter(|guid| guid.bytes().any(|byte| !matches!(byte, b'0' | b':')));
        Self {
            name,
            index,
            driver,
            firmware: text("fw_ver"),
            board: text("board_id"),
            guid,
            path,
            parent,
            place,
        }
    }

    fn port(&self, tree: &Tree, netdevs: &[Netdev], number: u32) -> Found {
        let files = format!("class/infiniband/{}/ports/{number}", self.name);
        let link_layer = match tree.read_string(&format!("{files}/link_layer")).as_deref() {
            Ok("Ethernet") => LinkLayer::Ethernet,
            Ok("InfiniBand") => LinkLayer::InfiniBand,
            Ok("Unknown") => LinkLayer::Other,
            _ => LinkLayer::Unknown,
        };
        // An InfiniBand port is listed and otherwise left alone: some belong to a fabric manager, whose functions log an
        // error in the kernel at every query.
        let is_read = link_layer.is_read();
        let gids = if is_read {
            gids::read(tree, &files)
        } else {
            Vec::new()
        };
        let netdev = if is_read {
            self.netdev(tree, &gids, netdevs, number)
        } else {
            None
        };
        let netdev_name = netdev.as_deref();
        let otherwise = self.guid.as_deref().map(DeviceId::guid);
        let port = Port {
            id: PortId {
                device: self.id(tree, netdev_name),
                number,
            },
            device: self.name.to_owned(),
            ifindex: netdev_name.and_then(|name| netdev::ifindex(tree, name)),
            rdma_index: self.index,
            driver: self.driver.clone(),
            firmware: self.firmware.clone(),
            board: self.board.clone(),
            guid: self.guid.clone(),
            pci: self.place.pci.clone(),
            numa_node: self.place.numa_node,
            gpu: self.place.gpu.clone(),
            link_layer,
            state: netdev_name.and_then(|name| state(tree, name)),
            mtu: netdev_name.and_then(|name| netdev::mtu(tree, name)),
            gids,
            netdev,
        };
        Found {
            port,
            path: self.path.clone(),
            otherwise,
        }
    }

    /// The netdev whose driver statistics, link and DCB are those of the port. The GIDs name the netdev that RDMA is bound
    /// to; under a bond that is the bond, which has none of these, and the function's own netdev is taken.
    ///
    /// A name among the GIDs is that of the netdev's own network namespace. Of a netdev that moved into a pod, and has
    /// its RDMA device here still, the name may be nobody's here, or another netdev's.
    fn netdev(&self, tree: &Tree, gids: &[Gid], netdevs: &[Netdev], number: u32) -> Option<String> {
        if let Some(parent) = &self.parent {
            return Some(parent.clone());
        }
        let bound = || gids.iter().filter_map(|gid| Some((gid, gid.netdev.as_deref()?)));
        let is_ours = |gid: &Gid, name: &str| {
            let path = netdevs
                .iter()
                .find(|netdev| netdev.name == name)
                .map(|netdev| &netdev.path);
            (path.is_some() && path == self.path.as_ref()) || netdev::has_gid(tree, name, &gid.gid)
        };
        let is_physical = |name: &str| netdevs.iter().any(|netdev| netdev.name == name);
        let of_the_port = |netdev: &&Netdev| {
            self.path.as_ref() == Some(&netdev.path) && netdev.dev_port.checked_add(1) == Some(number)
        };
        let physical = bound().find(|(gid, name)| is_physical(name) && is_ours(gid, name));
        let own = || {
            netdevs
                .iter()
                .find(of_the_port)
                .map(|netdev| netdev.name.as_str())
        };
        let any = || bound().find(|(gid, name)| is_ours(gid, name));
        physical
            .map(|(_, name)| name)
            .or_else(own)
            .or_else(|| any().map(|(_, name)| name))
            .map(str::to_owned)
    }

    fn id(&self, tree: &Tree, netdev: Option<&str>) -> DeviceId {
        let by_pci = self.path.as_deref().and_then(pci::address).map(DeviceId::pci);
        let by_guid = || self.guid.as_deref().map(DeviceId::guid);
        let by_address = || netdev.and_then(|name| netdev::by_address(tree, name));
        by_pci
            .or_else(by_guid)
            .or_else(by_address)
            .unwrap_or_else(|| DeviceId::guid(self.name))
    }
}

/// State of an Ethernet port. The kernel's definition is that of its netdev (`ib_get_curr_port_state` in
/// `include/rdma/ib_verbs.h`), which can be read without `query_port`.
fn state(tree: &Tree, netdev: &str) -> Option<PortState> {
    let up = Carrier::open(tree, netdev)
        .and_then(|carrier| carrier.is_up())
        .ok()?;
    Some(if up == Some(true) {
        PortState::Active
    } else {
        PortState::Down
    })
}
