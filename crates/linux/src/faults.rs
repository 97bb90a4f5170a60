//! Every errno and every odd content, at every source that reads files: what it costs, and what it must not.

use crate::ethtool::Columns;
use crate::tree::Tree;
use crate::{Context, aer, link, netns, rdma, settings};
use capture::{Files, Node};
use model::{ABSENT, Opened, Pci, Port, Read, SourceKind};
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;

/// What drivers and the kernel answer with, and the word for it.
pub(crate) const ERRNOS: [(Errno, &str); 9] = [
    (Errno::AGAIN, "EAGAIN"),
    (Errno::INVAL, "EINVAL"),
    (Errno::IO, "EIO"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOENT, "ENOENT"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::PERM, "EPERM"),
    (Errno::ACCESS, "EACCES"),
];

/// Contents that are no number, and the word for each.
const CONTENTS: [(&str, &str); 7] = [
    ("", "empty"),
    ("\n", "empty"),
    ("N/A (no PMA)\n", "unsupported"),
    ("-5\n", "negative"),
    ("18446744073709551616\n", "overflow"),
    ("12 frames\n", "not_a_number"),
    (
        "1111111111111111111111111111111111111111111111111111111111111111\n",
        "EFBIG",
    ),
];

/// A source of files: which, the folder of its files, and two of them.
const SOURCES: [(SourceKind, &str, [&str; 2]); 5] = [
    (
        SourceKind::HwCounters,
        "class/infiniband/mlx5_0/ports/1/hw_counters",
        ["np_cnp_sent", "out_of_sequence"],
    ),
    (
        SourceKind::DeviceCounters,
        "class/infiniband/mlx5_0/hw_counters",
        ["np_cnp_sent", "out_of_sequence"],
    ),
    (
        SourceKind::PortCounters,
        "class/infiniband/mlx5_0/ports/1/counters",
        ["port_rcv_data", "port_xmit_data"],
    ),
    (
        SourceKind::Link,
        "class/net/rail0",
        ["carrier_up_count", "carrier_down_count"],
    ),
    (
        SourceKind::Aer,
        "devices/pci0000:00/0000:1a:00.0",
        ["aer_dev_correctable", "aer_dev_nonfatal"],
    ),
];

fn open(files: Files, source: SourceKind) -> Opened {
    let context = Context {
        tree: Arc::new(Tree::recorded(files, Path::new("/recorded"))),
        live: false,
        columns: Columns::Known,
        optional_counters: false,
    };
    let port = Port {
        device: "mlx5_0".to_owned(),
        pci: Some(Pci {
            address: "0000:1a:00.0".to_owned(),
            current: None,
            max: None,
        }),
        ..netns::any_port("rail0")
    };
    match source {
        SourceKind::HwCounters => rdma::open_hw_counters(&context, &port),
        SourceKind::DeviceCounters => rdma::open_device_counters(&context, &port),
        SourceKind::PortCounters => rdma::open_port_counters(&context, &port),
        SourceKind::Link => link::open(&context, &port),
        SourceKind::Settings => settings::open(&context, &port),
        SourceKind::Aer => aer::open(&context, &port),
        other => panic!("{other} reads no files"),
    }
}

/// The files of a source, of which the second is `odd`.
fn with(source: &(SourceKind, &str, [&str; 2]), first: &Node, odd: &Node) -> Files {
    let (_, folder, [one, other]) = source;
    let mut files = Files::new();
    for (name, content) in [(one, first), (other, odd)] {
        files.put(&format!("{folder}/{name}"), in_form(source.0, content));
    }
    let function = Node::Link("../../../devices/pci0000:00/0000:1a:00.0".to_owned());
    files.put("bus/pci/devices/0000:1a:00.0", function);
    files.put("class/infiniband/mlx5_0/ports/1/link_layer", file("Ethernet\n"));
    files.put("class/net/rail0/flags", file("0x1003\n"));
    files.put("class/net/rail0/operstate", file("up\n"));
    files
}

/// What stands where a number is expected, in a file of this source.
fn in_form(source: SourceKind, content: &Node) -> Node {
    match content {
        Node::File(number) if source == SourceKind::Aer => {
            let table = [b"RxErr 0\nTOTAL_ERR_COR ", &number[..]].concat();
            // What is longer than any number stands for what is longer than any table.
            Node::File(if number.len() > 40 {
                table.repeat(40)
            } else {
                table
            })
        }
        other => other.clone(),
    }
}

fn file(content: &str) -> Node {
    Node::File(content.as_bytes().to_vec())
}

fn fault(errno: Errno) -> Node {
    Node::Fault(errno.raw_os_error())
}

/// What a source reads of these files, or why it reads nothing, by the word of it.
fn read(files: Files, source: SourceKind) -> Result<Vec<u64>, &'static str> {
    let mut source = match open(files, source) {
        Opened::Active(source) => source,
        Opened::NotApplicable(why) | Opened::Failed(why) => return Err(why.reason),
    };
    let mut row = vec![0; source.schema().columns.len()];
    match source.read(&mut row) {
        Read::Row => Ok(row),
        Read::Missing(why) => Err(why.reason),
        Read::SchemaChanged => panic!("the files are the same"),
    }
}

/// The counters of a row, without the carrier that the link has before them.
fn counters(row: &[u64]) -> &[u64] {
    &row[row.len() - 2..]
}

#[test]
fn one_file_that_fails_costs_only_itself() {
    let good = file("7\n");
    for source in &SOURCES {
        for (errno, word) in ERRNOS {
            let read = read(with(source, &good, &fault(errno)), source.0);
            if errno == Errno::NODEV {
                // The device is gone, and what was read of it before is not a row.
                assert_eq!(read, Err("ENODEV"), "{} {word}", source.0);
                continue;
            }
            let row = read.unwrap_or_else(|reason| panic!("{} {word}: {reason}", source.0));
            assert_eq!(counters(&row), [7, ABSENT], "{} {word}", source.0);
        }
        for (content, word) in CONTENTS {
            let row = read(with(source, &good, &file(content)), source.0)
                .unwrap_or_else(|reason| panic!("{} {word}: {reason}", source.0));
            assert_eq!(counters(&row), [7, ABSENT], "{} {word}", source.0);
        }
    }
}

#[test]
fn a_source_of_which_nothing_can_be_read_says_why() {
    // The link has its carrier whatever becomes of the counts.
    for source in SOURCES.iter().filter(|source| source.0 != SourceKind::Link) {
        for (errno, word) in ERRNOS {
            let read = read(with(source, &fault(errno), &fault(errno)), source.0);
            assert_eq!(read, Err(word), "{}", source.0);
        }
        for (content, word) in CONTENTS {
            let read = read(with(source, &file(content), &file(content)), source.0);
            assert_eq!(read, Err(word), "{}", source.0);
        }
    }
}

#[test]
fn what_a_device_lacks_is_not_called_a_failure() {
    for source in &SOURCES[..3] {
        for odd in [fault(Errno::NOENT), file("N/A (no PMA)\n")] {
            let opened = open(with(source, &odd, &odd), source.0);
            assert!(matches!(opened, Opened::NotApplicable(_)), "{} {odd:?}", source.0);
        }
        let opened = open(with(source, &fault(Errno::IO), &fault(Errno::IO)), source.0);
        assert!(matches!(opened, Opened::Failed(_)), "{}", source.0);
    }
}

#[test]
fn the_link_has_no_row_without_its_carrier() {
    for (errno, word) in ERRNOS {
        for name in ["flags", "operstate"] {
            let mut files = with(&SOURCES[3], &file("1\n"), &file("1\n"));
            files.put("class/net/rail0/operstate", file("down\n"));
            files.put(&format!("class/net/rail0/{name}"), fault(errno));
            assert_eq!(read(files, SourceKind::Link), Err(word), "{name}");
        }
        // What is up needs no flags to be up.
        let mut files = with(&SOURCES[3], &file("1\n"), &file("1\n"));
        files.put("class/net/rail0/flags", fault(errno));
        assert_eq!(read(files, SourceKind::Link), Ok(vec![1, 1, 1]), "{word}");
    }
}

#[test]
fn a_speed_that_cannot_be_read_is_no_speed() {
    for (errno, word) in ERRNOS {
        let mut files = Files::new();
        files.put("class/net/rail0/speed", fault(errno));
        let speed = read(files, SourceKind::Settings);
        // EINVAL is the kernel's word for a netdev that is down.
        let right = if errno == Errno::INVAL {
            Ok(vec![ABSENT])
        } else {
            Err(word)
        };
        assert_eq!(speed, right);
    }
    for (content, _) in CONTENTS.iter().filter(|(_, word)| *word != "EFBIG") {
        let mut files = Files::new();
        files.put("class/net/rail0/speed", file(content));
        assert_eq!(read(files, SourceKind::Settings), Ok(vec![ABSENT]), "{content:?}");
    }
}

#[test]
fn a_row_is_whole_again_when_the_fault_is_over() {
    // What failed is left alone for a while; a source that is opened anew looks at once.
    let source = &SOURCES[0];
    let files = |odd: &Node| with(source, &file("7\n"), odd);
    assert_eq!(read(files(&fault(Errno::IO)), source.0), Ok(vec![7, ABSENT]));
    assert_eq!(read(files(&file("8\n")), source.0), Ok(vec![7, 8]));
}
