//! What a capture takes of sysfs: all that this crate reads there, and what helps to understand it.

use crate::pci;
use crate::tree::Tree;
use capture::{Files, Node};
use model::Port;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Of an RDMA device.
const DEVICE: [&str; 9] = [
    "node_type",
    "node_guid",
    "sys_image_guid",
    "node_desc",
    "fw_ver",
    "hca_type",
    "hw_rev",
    "board_id",
    "parent",
];
/// Of its ports. `state`, `phys_state` and `rate` ask the driver, which a capture may do once.
const PORT: [&str; 5] = ["state", "phys_state", "rate", "lid", "cap_mask"];
/// Of a netdev. `speed`, `duplex` and `phys_port_name` take rtnl.
const NETDEV: [&str; 18] = [
    "ifindex",
    "iflink",
    "type",
    "address",
    "addr_assign_type",
    "flags",
    "operstate",
    "dev_port",
    "dev_id",
    "mtu",
    "tx_queue_len",
    "speed",
    "duplex",
    "carrier_changes",
    "carrier_up_count",
    "carrier_down_count",
    "phys_port_name",
    "phys_switch_id",
];
/// Folders of a netdev; the last two are of vendors' drivers outside the kernel.
const NETDEV_FOLDERS: [&str; 8] = [
    "statistics",
    "bonding",
    "bonding_slave",
    "qos",
    "ecn/roce_np",
    "ecn/roce_np/enable",
    "ecn/roce_rp",
    "ecn/roce_rp/enable",
];
/// Of a PCI function and the bridges above it.
const PCI: [&str; 14] = [
    "class",
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "numa_node",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "aer_dev_correctable",
    "aer_dev_nonfatal",
    "aer_dev_fatal",
];
/// Of modules that let a NIC reach GPU memory, and of the NIC's driver.
const MODULES: [&str; 4] = ["nvidia_peermem", "nv_peer_mem", "nvidia", "amdgpu"];
const MODULE: [&str; 3] = ["version", "refcnt", "taint"];
/// Of every function on the PCI bus, for the GPUs among them.
const ANY_PCI: [&str; 3] = ["class", "vendor", "numa_node"];
/// Entries of a GID table that are looked at: a hole in it is shorter.
const EMPTY_GIDS: u32 = 8;

/// The files of `ports`. A device that has not answered within `limit` is left out.
pub(crate) fn files(tree: &Arc<Tree>, ports: &[Port], limit: Duration) -> Files {
    let mut bus = Recorder::new(tree);
    bus.folder("class/net");
    bus.folder("class/infiniband");
    bus.pci_bus();
    bus.host();
    let mut files = bus.files;
    // One thread for each device: a firmware that hangs holds up its own alone, and is left behind.
    let devices: BTreeSet<&str> = ports.iter().map(|port| port.device.as_str()).collect();
    let (sender, receiver) = channel();
    let mut waiting = BTreeSet::new();
    for device in devices {
        let (tree, sender) = (Arc::clone(tree), sender.clone());
        let ports: Vec<Port> = ports
            .iter()
            .filter(|port| port.device == device)
            .cloned()
            .collect();
        let name = device.to_owned();
        waiting.insert(name.clone());
        std::thread::spawn(move || {
            // The other end may have given up on this device.
            let _ = sender.send((name, of_device(&tree, &ports)));
        });
    }
    while !waiting.is_empty() {
        let Ok((device, found)) = receiver.recv_timeout(limit) else {
            tracing::warn!(
                ?waiting,
                "these devices do not answer, and their files are not in the capture"
            );
            break;
        };
        waiting.remove(&device);
        files.append(found);
    }
    files
}

fn of_device(tree: &Tree, ports: &[Port]) -> Files {
    let mut recorder = Recorder::new(tree);
    let mut netdevs = BTreeSet::new();
    for port in ports {
        if port.has_rdma() {
            recorder.rdma(port);
        }
        netdevs.extend(port.netdev.as_deref());
        netdevs.extend(port.gids.iter().filter_map(|gid| gid.netdev.as_deref()));
    }
    for netdev in netdevs {
        recorder.netdev(netdev);
    }
    recorder.files
}

struct Recorder<'a> {
    tree: &'a Tree,
    files: Files,
}

impl<'a> Recorder<'a> {
    fn new(tree: &'a Tree) -> Self {
        Self {
            tree,
            files: Files::new(),
        }
    }

    fn attribute(&mut self, path: &str) {
        let node = match self.tree.bytes(path) {
            Ok(content) => Node::File(content),
            Err(Errno::NOENT | Errno::ISDIR | Errno::NOTDIR) => return,
            Err(errno) => Node::Fault(errno.raw_os_error()),
        };
        self.files.put(path, node);
    }

    fn attributes(&mut self, folder: &str, names: &[&str]) {
        for name in names {
            self.attribute(&format!("{folder}/{name}"));
        }
    }

    /// Every file of a folder, in the order of inodes: the first counter of a group fetches all of it.
    fn all(&mut self, folder: &str) {
        let mut entries = self.tree.list(folder).unwrap_or_default();
        entries.sort_by_key(|entry| entry.inode);
        for entry in entries {
            self.attribute(&format!("{folder}/{}", entry.name));
        }
    }

    fn folder(&mut self, path: &str) {
        if self.tree.exists(path) {
            self.files.put(path, Node::Folder);
        }
    }

    /// Records a link, and tells where it leads.
    fn link(&mut self, path: &str) -> Option<String> {
        let target = self.tree.link(path).ok()?;
        self.files.put(path, Node::Link(target));
        let resolved = self.tree.resolve(path).ok()?;
        self.files.put(&resolved, Node::Folder);
        Some(resolved)
    }

    /// The folder of an object of `class`, which is a link on every kernel of today.
    fn object(&mut self, class: &str, name: &str) -> Option<String> {
        let path = format!("class/{class}/{name}");
        self.link(&path)
            .or_else(|| self.tree.exists(&path).then_some(path))
    }

    fn rdma(&mut self, port: &Port) {
        let Some(device) = self.object("infiniband", &port.device) else {
            return;
        };
        self.attributes(&device, &DEVICE);
        let files = format!("{device}/ports/{}", port.id.number);
        self.attribute(&format!("{files}/link_layer"));
        // A restricted InfiniBand function logs an error in the kernel at every query.
        if port.link_layer.is_read() {
            self.all(&format!("{device}/hw_counters"));
            self.all(&format!("{files}/hw_counters"));
            self.all(&format!("{files}/counters"));
            self.attributes(&files, &PORT);
            self.gids(&files);
        }
        self.attribute(&format!("{device}/tc/{}/traffic_class", port.id.number));
        let by_cm = format!("kernel/config/rdma_cm/{}/ports/{}", port.device, port.id.number);
        self.attributes(&by_cm, &["default_roce_tos", "default_roce_mode"]);
        if let Some(hardware) = self.link(&format!("{device}/device")) {
            self.hardware(&hardware);
        }
    }

    fn gids(&mut self, port: &str) {
        let mut empty = 0;
        for index in 0.. {
            let path = format!("{port}/gids/{index}");
            let Ok(gid) = self.tree.read_string(&path) else {
                return;
            };
            self.attribute(&path);
            let is_zero = gid.bytes().all(|byte| matches!(byte, b'0' | b':'));
            empty = if is_zero { empty + 1 } else { 0 };
            if empty == EMPTY_GIDS {
                return;
            }
            self.attributes(
                &format!("{port}/gid_attrs"),
                &[&format!("types/{index}"), &format!("ndevs/{index}")],
            );
        }
    }

    fn netdev(&mut self, name: &str) {
        let Some(netdev) = self.object("net", name) else {
            return;
        };
        self.attributes(&netdev, &NETDEV);
        for folder in NETDEV_FOLDERS {
            self.all(&format!("{netdev}/{folder}"));
        }
        if let Some(master) = self.link(&format!("{netdev}/master")) {
            self.attributes(&master, &NETDEV);
            self.all(&format!("{master}/bonding"));
            // Where it is looked for by its name.
            let name = master.rsplit('/').next().unwrap_or(&master).to_owned();
            self.object("net", &name);
        }
        if let Some(hardware) = self.link(&format!("{netdev}/device")) {
            self.hardware(&hardware);
        }
    }

    /// The device at `path`, and what it is plugged into.
    fn hardware(&mut self, path: &str) {
        self.driver(path);
        let Some(function) = pci::function(path) else {
            return;
        };
        self.driver(function);
        for chip in self.tree.list(&format!("{function}/hwmon")).unwrap_or_default() {
            self.sensors(&format!("{function}/hwmon/{}", chip.name));
        }
        if let Some(group) = self.link(&format!("{function}/iommu_group")) {
            self.attribute(&format!("{group}/type"));
        }
        let mut at = function;
        while pci::address(at).is_some() {
            self.attributes(at, &PCI);
            // 64 bytes without a right, all of it with CAP_SYS_ADMIN.
            self.attribute(&format!("{at}/config"));
            at = pci::above(at).unwrap_or_default();
        }
    }

    /// Names and temperatures; other files of a chip set something.
    fn sensors(&mut self, chip: &str) {
        self.attribute(&format!("{chip}/name"));
        for file in self.tree.list(chip).unwrap_or_default() {
            if file.name.ends_with("_input") || file.name.ends_with("_label") {
                self.attribute(&format!("{chip}/{}", file.name));
            }
        }
    }

    fn driver(&mut self, device: &str) {
        let driver = self.link(&format!("{device}/driver"));
        if let Some(module) = driver.and_then(|driver| self.link(&format!("{driver}/module"))) {
            self.attribute(&format!("{module}/version"));
        }
    }

    /// What the node has for RDMA to GPU memory, and how far its NUMA nodes are from each other.
    fn host(&mut self) {
        self.folder("module");
        for module in MODULES {
            let folder = format!("module/{module}");
            self.folder(&folder);
            self.attributes(&folder, &MODULE);
        }
        let peers = "kernel/mm/memory_peers";
        for client in self.tree.list(peers).unwrap_or_default() {
            self.attribute(&format!("{peers}/{}/num_reg_bytes", client.name));
        }
        let nodes = "devices/system/node";
        for node in self.tree.list(nodes).unwrap_or_default() {
            if node.name.starts_with("node") {
                self.attribute(&format!("{nodes}/{}/distance", node.name));
            }
        }
    }

    fn pci_bus(&mut self) {
        let bus = "bus/pci/devices";
        for function in self.tree.list(bus).unwrap_or_default() {
            if let Some(path) = self.link(&format!("{bus}/{}", function.name)) {
                self.attributes(&path, &ANY_PCI);
            }
        }
    }
}
