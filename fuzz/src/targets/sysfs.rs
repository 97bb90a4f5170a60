//! A sysfs whose files hold anything: one function with an RDMA device and a netdev.
#![allow(clippy::disallowed_methods)] // writes the files that the crate under test reads

use linux::{Kernel, Options};
use model::{ABSENT, Host, Opened, Port, Read, SourceKind};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

const FUNCTION: &str = "devices/pci0000:10/0000:10:01.0/0000:11:00.0";
/// The files, below [`FUNCTION`], in the order of the input, and what they hold where the input ends before them.
const FILES: [(&str, &str); 27] = [
    ("net/rail0/type", "1\n"),
    ("net/rail0/ifindex", "2\n"),
    ("net/rail0/dev_port", "0\n"),
    ("net/rail0/flags", "0x1003\n"),
    ("net/rail0/operstate", "up\n"),
    ("net/rail0/speed", "400000\n"),
    ("net/rail0/mtu", "9000\n"),
    ("net/rail0/address", "b8:3f:d2:00:00:02\n"),
    ("net/rail0/carrier_up_count", "3\n"),
    ("infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent", "100\n"),
    ("infiniband/mlx5_0/ports/1/counters/port_xmit_data", "200\n"),
    ("infiniband/mlx5_0/hw_counters/qp", "300\n"),
    ("infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n"),
    (
        "infiniband/mlx5_0/ports/1/gids/0",
        "fe80:0000:0000:0000:ba3f:d2ff:fe00:0002\n",
    ),
    ("infiniband/mlx5_0/ports/1/gid_attrs/types/0", "RoCE v2\n"),
    ("infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "rail0\n"),
    ("infiniband/mlx5_0/node_guid", "b83f:d203:0000:0002\n"),
    ("infiniband/mlx5_0/node_desc", "node mlx5_0\n"),
    ("infiniband/mlx5_0/fw_ver", "28.39.1002\n"),
    ("infiniband/mlx5_0/board_id", "MT_0000000838\n"),
    ("infiniband/mlx5_0/parent", ""),
    ("current_link_speed", "32.0 GT/s PCIe\n"),
    ("current_link_width", "16\n"),
    ("max_link_speed", "32.0 GT/s PCIe\n"),
    ("numa_node", "0\n"),
    ("class", "0x020000\n"),
    ("vendor", "0x15b3\n"),
];

struct Sysfs {
    directory: TempDir,
    /// What each file holds now.
    contents: Vec<Vec<u8>>,
}

thread_local! {
    static SYSFS: RefCell<Sysfs> = RefCell::new(Sysfs::lay_out());
}

impl Sysfs {
    fn lay_out() -> Self {
        let directory = TempDir::new().expect("a directory can be made");
        let path = |path: &str| directory.path().join(path);
        for (file, content) in FILES {
            let file = path(FUNCTION).join(file);
            fs::create_dir_all(file.parent().expect("below the root")).expect("a directory can be made");
            fs::write(file, content).expect("a file can be written");
        }
        let links = [
            (
                format!("{FUNCTION}/driver"),
                "bus/pci/drivers/mlx5_core".to_owned(),
            ),
            ("bus/pci/devices/0000:11:00.0".to_owned(), FUNCTION.to_owned()),
            ("class/net/rail0".to_owned(), format!("{FUNCTION}/net/rail0")),
            (
                "class/infiniband/mlx5_0".to_owned(),
                format!("{FUNCTION}/infiniband/mlx5_0"),
            ),
            (format!("{FUNCTION}/net/rail0/device"), FUNCTION.to_owned()),
            (
                format!("{FUNCTION}/infiniband/mlx5_0/device"),
                FUNCTION.to_owned(),
            ),
        ];
        fs::create_dir_all(path("bus/pci/drivers/mlx5_core")).expect("a directory can be made");
        for (link, target) in links {
            fs::create_dir_all(path(&link).parent().expect("below the root"))
                .expect("a directory can be made");
            symlink(path(&target), path(&link)).expect("a link can be made");
        }
        let contents = FILES
            .iter()
            .map(|(_, content)| content.as_bytes().to_vec())
            .collect();
        Self { directory, contents }
    }

    fn fill(&mut self, input: &[u8]) {
        let mut given = input.split(|&byte| byte == 0);
        for ((file, usual), content) in FILES.iter().zip(&mut self.contents) {
            let wanted = given.next().unwrap_or(usual.as_bytes());
            if content != wanted {
                let path = self.directory.path().join(FUNCTION).join(file);
                fs::write(path, wanted).expect("a file can be written");
                *content = wanted.to_vec();
            }
        }
    }

    fn content(&self, name: &str) -> Option<&[u8]> {
        let at = FILES
            .iter()
            .position(|(file, _)| Path::new(file).file_name() == Some(name.as_ref()))?;
        Some(&self.contents[at])
    }
}

/// Ports have identities of their own and names that are names, and a counter is what its file says or nothing.
///
/// The input is what the files hold, a NUL between them.
pub fn check(input: &[u8]) {
    SYSFS.with_borrow_mut(|sysfs| {
        sysfs.fill(input);
        let options = Options {
            sysfs: sysfs.directory.path().to_owned(),
            ..Options::default()
        };
        let kernel = Kernel::new(&options).expect("the tree is there");
        let ports = kernel.ports().expect("both classes are there");
        let identities: HashSet<_> = ports.iter().map(|port| &port.id).collect();
        assert_eq!(identities.len(), ports.len());
        for port in &ports {
            check_port(port);
            for source in SourceKind::ALL {
                check_source(sysfs, &kernel, port, source);
            }
        }
    });
}

fn check_port(port: &Port) {
    let names = [Some(&port.device), port.netdev.as_ref()].into_iter().flatten();
    for name in names.chain(port.gids.iter().filter_map(|gid| gid.netdev.as_ref())) {
        assert!(
            !name.is_empty() && !name.contains('/') && name != "..",
            "{name:?}"
        );
    }
    assert!(
        port.gids
            .iter()
            .all(|gid| gid.gid.bytes().any(|byte| !b"0:".contains(&byte)))
    );
    let links = port.pci.iter().flat_map(|pci| [pci.current, pci.max]).flatten();
    for link in links {
        assert!(link.gigatransfers.is_finite() && link.gigatransfers > 0.0 && (1..=32).contains(&link.width));
    }
}

fn check_source(sysfs: &Sysfs, kernel: &Kernel, port: &Port, source: SourceKind) {
    let Opened::Active(mut opened) = kernel.open(port, source) else {
        return;
    };
    let mut row = vec![0; opened.schema().columns.len()];
    if opened.read(&mut row) != Read::Row {
        return;
    }
    for (column, &value) in opened.schema().columns.iter().zip(&row) {
        match &*column.name {
            "carrier" => assert!(value <= 1 || value == ABSENT),
            "speed" => assert!(value == ABSENT || (1..u64::from(u32::MAX)).contains(&value)),
            name => assert_eq!(
                value,
                sysfs.content(name).and_then(number).unwrap_or(ABSENT),
                "{name}"
            ),
        }
    }
}

/// Digits and at most a newline; a file of 64 bytes or more is no number's.
fn number(content: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(content.strip_suffix(b"\n").unwrap_or(content)).ok()?;
    let is_number = content.len() < 64 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}
