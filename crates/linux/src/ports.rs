//! Which ports there are, and what can be told of them without waiting for firmware or for rtnl.
//!
//! That rules out the obvious ways. The files `state`, `phys_state` and `rate` of an RDMA port, and `PORT_GET` of RDMA
//! netlink, call the driver's `query_port`: on mlx5 a firmware command, elsewhere `ib_get_eth_speed`, which takes rtnl
//! (drivers/infiniband/core/verbs.c). The files `speed`, `duplex` and `phys_port_name` of a netdev take rtnl as well. What
//! is read here is what the kernel has in memory: attributes, the GID cache, links.

mod gids;
mod netdev;
mod rdma;

use crate::Context;
use crate::pci::{self, Gpus};
use crate::tree::{Entry, Tree};
use model::{DeviceId, Gpu, Pci, Port, Why};
use std::collections::HashSet;

/// Every port, in the order of PCI address, port number and name; devices without a PCI address come last. Of what goes by
/// an `excluded` name nothing is opened.
///
/// # Errors
/// The tree has neither `class/infiniband` nor `class/net`.
pub(crate) fn list(ctx: &Context, excluded: &dyn Fn(&str) -> bool) -> Result<Vec<Port>, Why> {
    let tree = &*ctx.tree;
    let (netdevs, devices) = (objects(tree, "net"), objects(tree, "infiniband"));
    if let (Err(why), Err(_)) = (&netdevs, &devices) {
        let root = tree.root().display();
        let detail =
            format!("{root} has neither class/net nor class/infiniband, so it is no sysfs: correct --sysfs");
        return Err(Why::new(why.reason, detail));
    }
    let (netdevs, devices) = (netdevs.unwrap_or_default(), devices.unwrap_or_default());
    let excluded = Excluded::find([&netdevs[..], &devices], excluded);
    let netdevs = netdev::physical(tree, netdevs.iter().filter(|netdev| !excluded.has(netdev)));
    let gpus = Gpus::find(tree);
    let mut ports = Vec::new();
    let indexes = rdma::indexes(ctx);
    for device in devices.iter().filter(|device| !excluded.has(device)) {
        let index = indexes.get(&device.name).copied();
        ports.extend(rdma::ports(tree, &gpus, &netdevs, device, index));
    }
    let with_rdma: HashSet<&str> = ports.iter().filter_map(|found| found.path.as_deref()).collect();
    let bound: HashSet<&str> = ports
        .iter()
        .filter_map(|found| found.port.netdev.as_deref())
        .collect();
    let bare = netdevs.iter().filter(|netdev| {
        // The netdevs of a function with an RDMA device are its own, or representors of other functions.
        !bound.contains(netdev.name.as_str()) && !with_rdma.contains(netdev.path.as_str())
    });
    let bare: Vec<Found> = bare.map(|netdev| netdev.port(tree, &gpus)).collect();
    ports.extend(bare);
    Ok(in_order(distinct(ports)))
}

/// A kernel object of a class.
struct Object {
    name: String,
    /// Its device, below `devices/`; none of what has no hardware.
    device: Option<String>,
}

/// The objects of a class, by name. Nothing of theirs is opened; where their links lead is looked up.
fn objects(tree: &Tree, class: &str) -> Result<Vec<Object>, Why> {
    let entries = tree.list(&format!("class/{class}"))?;
    let object = |Entry { name, .. }| Object {
        device: tree.resolve(&format!("class/{class}/{name}/device")).ok(),
        name,
    };
    Ok(entries.into_iter().map(object).collect())
}

/// What is to be left alone, by what can be known without opening anything: names, and where links lead.
struct Excluded<'a> {
    name: &'a dyn Fn(&str) -> bool,
    /// Functions with an excluded netdev, or RDMA device, and none that is not: all that is on them goes with it.
    functions: HashSet<&'a str>,
}

impl<'a> Excluded<'a> {
    fn find(classes: [&'a [Object]; 2], name: &'a dyn Fn(&str) -> bool) -> Self {
        let mut functions = HashSet::new();
        for objects in classes {
            let (mut excluded, mut kept) = (HashSet::new(), HashSet::new());
            for object in objects {
                let of = if name(&object.name) {
                    &mut excluded
                } else {
                    &mut kept
                };
                of.extend(object.device.as_deref());
            }
            functions.extend(excluded.difference(&kept));
        }
        Self { name, functions }
    }

    fn has(&self, object: &Object) -> bool {
        let by_device =
            |path: &str| self.functions.contains(path) || pci::address(path).is_some_and(self.name);
        (self.name)(&object.name) || object.device.as_deref().is_some_and(by_device)
    }
}

/// Name and index of the netdevs with hardware behind them.
pub(crate) fn physical_names(tree: &Tree) -> Vec<(String, u32)> {
    let netdevs = objects(tree, "net").unwrap_or_default();
    netdev::physical(tree, netdevs.iter())
        .into_iter()
        .map(|netdev| (netdev.name, netdev.ifindex))
        .collect()
}

/// A port, and how else it could be told apart.
struct Found {
    port: Port,
    /// Its device, below `devices/`.
    path: Option<String>,
    /// Who it is if another RDMA device already is what `port.id` says. A second netdev of the same function and number is a
    /// representor of another function, and no port.
    otherwise: Option<DeviceId>,
}

/// Ports with an identity of their own each: two devices may share a PCI function.
fn distinct(found: Vec<Found>) -> Vec<Port> {
    let mut taken = HashSet::new();
    let mut ports = Vec::with_capacity(found.len());
    for Found {
        mut port, otherwise, ..
    } in found
    {
        if taken.contains(&port.id)
            && let Some(device) = otherwise
        {
            port.id.device = device;
        }
        if taken.insert(port.id.clone()) {
            ports.push(port);
        } else {
            tracing::debug!(device = port.device, id = %port.id, "not watched: another port has the same identity");
        }
    }
    ports
}

fn in_order(mut ports: Vec<Port>) -> Vec<Port> {
    ports.sort_by_cached_key(|port| {
        let address = port.pci.as_ref().map(|pci| pci.address.clone());
        (address.is_none(), address, port.id.number, port.device.clone())
    });
    ports
}

/// Where a device is attached.
#[derive(Clone, Default)]
struct Place {
    pci: Option<Pci>,
    numa_node: Option<u32>,
    gpu: Option<Gpu>,
}

impl Place {
    fn of(tree: &Tree, gpus: &Gpus, path: &str) -> Self {
        let Some(function) = pci::function(path) else {
            return Self::default();
        };
        let Some((pci, numa_node)) = pci::facts(tree, function) else {
            return Self::default();
        };
        Self {
            pci: Some(pci),
            numa_node,
            gpu: gpus.nearest(function, numa_node),
        }
    }
}

/// The driver that a device's `driver` link names. A driver on the auxiliary bus, as of a sub-function, is called
/// `MODULE.NAME` (drivers/base/auxiliary.c), and its module is what the catalogue knows.
fn driver(tree: &Tree, device: &str) -> String {
    let driver = tree.resolve(&format!("{device}/driver"));
    let name = driver.as_deref().ok().and_then(|path| path.rsplit('/').next());
    name.and_then(|name| name.split('.').next())
        .unwrap_or("unknown")
        .to_owned()
}
