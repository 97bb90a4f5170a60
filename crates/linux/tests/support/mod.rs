//! Writes sysfs trees as the kernel lays them out.
#![allow(dead_code)] // each test crate uses its part

use linux::{Kernel, Options};
use model::{Host, Opened, Port, Read, Source, SourceKind, Why};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) const HW_COUNTERS: [&str; 5] = [
    "rx_write_requests",
    "out_of_sequence",
    "np_ecn_marked_roce_packets",
    "np_cnp_sent",
    "rp_cnp_handled",
];
pub(crate) const PORT_COUNTERS: [&str; 4] = [
    "port_xmit_data",
    "port_rcv_data",
    "port_xmit_packets",
    "port_rcv_packets",
];

/// A sysfs in a directory of its own.
pub(crate) struct Sysfs(TempDir);

impl Sysfs {
    /// With `class/net` and `class/infiniband`, both empty.
    pub(crate) fn new() -> Self {
        let sysfs = Self(TempDir::new().unwrap());
        sysfs.directory("class/net");
        sysfs.directory("class/infiniband");
        sysfs.directory("bus/pci/devices");
        sysfs
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn directory(&self, path: &str) {
        fs::create_dir_all(self.path(path)).unwrap();
    }

    /// Writes `content` and the newline that the kernel ends it with.
    pub(crate) fn file(&self, path: &str, content: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), format!("{content}\n")).unwrap();
    }

    pub(crate) fn files(&self, directory: &str, files: &[(&str, &str)]) {
        for (name, content) in files {
            self.file(&format!("{directory}/{name}"), content);
        }
    }

    /// Makes `path` something that opens but cannot be read, as a file whose driver refuses.
    pub(crate) fn break_file(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
        self.directory(path);
    }

    pub(crate) fn pipe(&self, path: &str) {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            self.path(path),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    /// Links `path` to `target`, both below the root.
    pub(crate) fn link(&self, path: &str, target: &str) {
        let up = "../".repeat(path.matches('/').count());
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        symlink(format!("{up}{target}"), self.path(path)).unwrap();
    }

    /// A PCI function at `path` below `devices/`.
    pub(crate) fn function(
        &self,
        path: &str,
        driver: &str,
        class: &str,
        vendor: &str,
        numa_node: i32,
    ) -> String {
        let device = format!("devices/{path}");
        self.files(
            &device,
            &[
                ("class", class),
                ("vendor", vendor),
                ("numa_node", &numa_node.to_string()),
            ],
        );
        self.directory(&format!("bus/pci/drivers/{driver}"));
        self.link(&format!("{device}/driver"), &format!("bus/pci/drivers/{driver}"));
        let address = path.rsplit('/').next().unwrap();
        self.link(&format!("bus/pci/devices/{address}"), &device);
        device
    }

    /// A netdev of the device at `device`, up.
    pub(crate) fn netdev(&self, device: &str, name: &str, ifindex: u32, dev_port: u32) {
        let netdev = format!("{device}/net/{name}");
        self.netdev_files(&netdev, ifindex);
        self.file(&format!("{netdev}/dev_port"), &dev_port.to_string());
        self.link(&format!("{netdev}/device"), device);
        self.link(&format!("class/net/{name}"), &netdev);
    }

    /// A netdev without hardware, up.
    pub(crate) fn virtual_netdev(&self, name: &str, ifindex: u32) {
        let netdev = format!("devices/virtual/net/{name}");
        self.netdev_files(&netdev, ifindex);
        self.link(&format!("class/net/{name}"), &netdev);
    }

    fn netdev_files(&self, netdev: &str, ifindex: u32) {
        self.files(
            netdev,
            &[
                ("ifindex", &ifindex.to_string()),
                ("type", "1"),
                ("mtu", "9000"),
                ("flags", "0x1003"),
                ("operstate", "up"),
                ("carrier_up_count", "3"),
                ("carrier_down_count", "2"),
                ("address", &format!("b8:3f:d2:00:00:{ifindex:02x}")),
                ("dev_port", "0"),
            ],
        );
    }

    /// An RDMA device at `device` with one Ethernet port bound to `netdev`.
    pub(crate) fn rdma(&self, device: &str, name: &str, netdev: &str) -> String {
        let rdma = format!("{device}/infiniband/{name}");
        self.files(
            &rdma,
            &[
                ("fw_ver", "28.39.1002"),
                ("board_id", "MT_0000000838"),
                ("node_desc", "gpu-node mlx5_0"),
                ("node_guid", &guid(name)),
            ],
        );
        self.link(&format!("{rdma}/device"), device);
        self.link(&format!("class/infiniband/{name}"), &rdma);
        self.rdma_port(&rdma, 1, netdev);
        rdma
    }

    pub(crate) fn rdma_port(&self, rdma: &str, number: u32, netdev: &str) {
        let port = format!("{rdma}/ports/{number}");
        self.file(&format!("{port}/link_layer"), "Ethernet");
        for (index, (gid, kind)) in [("fe80::1", "IB/RoCE v1"), ("fe80::1", "RoCE v2")]
            .into_iter()
            .enumerate()
        {
            self.file(&format!("{port}/gids/{index}"), gid);
            self.file(&format!("{port}/gid_attrs/types/{index}"), kind);
            self.file(&format!("{port}/gid_attrs/ndevs/{index}"), netdev);
        }
        for index in 2..20 {
            // No gid_attrs: the kernel answers EINVAL for an empty entry.
            self.file(
                &format!("{port}/gids/{index}"),
                "0000:0000:0000:0000:0000:0000:0000:0000",
            );
        }
        for (value, name) in HW_COUNTERS.iter().enumerate() {
            self.file(&format!("{port}/hw_counters/{name}"), &(100 + value).to_string());
        }
        self.file(&format!("{port}/hw_counters/lifespan"), "10");
        for (value, name) in PORT_COUNTERS.iter().enumerate() {
            self.file(&format!("{port}/counters/{name}"), &(200 + value).to_string());
        }
    }

    /// NIC number `i` of a server with eight: behind a switch with a GPU, four to a NUMA node.
    pub(crate) fn nic(&self, i: u32) -> String {
        let (bus, node) = (0x10 + i * 0x10, i / 4);
        let switch = format!("pci0000:{bus:02x}/0000:{bus:02x}:01.0/0000:{:02x}:00.0", bus + 1);
        let nic = format!("{switch}/0000:{:02x}:00.0/0000:{:02x}:00.0", bus + 2, bus + 3);
        let gpu = format!("{switch}/0000:{:02x}:01.0/0000:{:02x}:00.0", bus + 2, bus + 4);
        let node = i32::try_from(node).unwrap();
        self.function(&gpu, "nvidia", "0x030200", "0x10de", node);
        let device = self.function(&nic, "mlx5_core", "0x020000", "0x15b3", node);
        self.files(
            &device,
            &[
                ("current_link_speed", "32.0 GT/s PCIe"),
                ("current_link_width", "16"),
                ("max_link_speed", "32.0 GT/s PCIe"),
                ("max_link_width", "16"),
            ],
        );
        let netdev = format!("rail{i}");
        self.netdev(&device, &netdev, i + 2, 0);
        self.rdma(&device, &format!("mlx5_{i}"), &netdev);
        device
    }

    /// `eth0` of ice, without RDMA.
    pub(crate) fn ethernet(&self) {
        let device = self.function(
            "pci0000:00/0000:00:02.0/0000:01:00.0",
            "ice",
            "0x020000",
            "0x8086",
            0,
        );
        self.netdev(&device, "eth0", 2, 0);
    }

    pub(crate) fn kernel(&self) -> Kernel {
        Kernel::new(&Options {
            sysfs: self.0.path().to_owned(),
            ..Options::default()
        })
        .unwrap()
    }

    pub(crate) fn ports(&self) -> Vec<Port> {
        self.kernel().ports().unwrap()
    }

    /// The only port that `device` has.
    pub(crate) fn port(&self, device: &str) -> Port {
        let mut ports = self.ports();
        ports.retain(|port| port.device == device);
        assert_eq!(ports.len(), 1, "{device} has one port");
        ports.remove(0)
    }

    pub(crate) fn open(&self, device: &str, source: SourceKind) -> Opened {
        self.kernel().open(&self.port(device), source)
    }

    pub(crate) fn active(&self, device: &str, source: SourceKind) -> Box<dyn Source> {
        match self.open(device, source) {
            Opened::Active(source) => source,
            Opened::NotApplicable(why) | Opened::Failed(why) => panic!("{source} of {device}: {why}"),
        }
    }

    pub(crate) fn not_applicable(&self, device: &str, source: SourceKind) -> Why {
        match self.open(device, source) {
            Opened::NotApplicable(why) => why,
            Opened::Active(_) => panic!("{source} of {device} is active"),
            Opened::Failed(why) => panic!("{source} of {device} failed: {why}"),
        }
    }
}

/// The node GUID that [`Sysfs::rdma`] gives a device.
pub(crate) fn guid(name: &str) -> String {
    let sum: u32 = name.bytes().map(u32::from).sum();
    format!("b83f:d203:0000:{sum:04x}")
}

/// One row, by name.
pub(crate) fn read(source: &mut dyn Source) -> Vec<(String, u64)> {
    let mut row = vec![0; source.schema().columns.len()];
    assert_eq!(source.read(&mut row), Read::Row);
    let names = source
        .schema()
        .columns
        .iter()
        .map(|column| column.name.to_string());
    names.zip(row).collect()
}

/// The value of one counter of a row.
pub(crate) fn value(row: &[(String, u64)], name: &str) -> u64 {
    row.iter()
        .find(|(column, _)| column == name)
        .unwrap_or_else(|| panic!("no {name}"))
        .1
}
