//! What only a kernel with RDMA devices can show. Run in the guest of `tests/vm` with six NICs, by `--ignored`; each test
//! has a NIC of its own.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // steers the fake NICs, waits, and prints what it measured

use super::{nldev, port_files, stat::Stat};
use crate::netns::ip;
use crate::{Kernel, Options, allocations, clock};
use model::{ABSENT, Change, Host, Opened, Port, Read, Source, SourceKind};
use std::time::Duration;
use std::{fs, process::Command, thread};

/// Longer than the kernel answers from its cache.
const PAST_LIFESPAN: Duration = Duration::from_millis(50);

fn kernel() -> Kernel {
    Kernel::new(&Options::default()).unwrap()
}

fn port(device: &str) -> Port {
    kernel()
        .ports()
        .unwrap()
        .into_iter()
        .find(|port| port.device == device)
        .unwrap()
}

fn active(port: &Port, source: SourceKind) -> Box<dyn Source> {
    match kernel().open(port, source) {
        Opened::Active(source) => source,
        Opened::NotApplicable(why) | Opened::Failed(why) => panic!("{source}: {why}"),
    }
}

fn names(source: &dyn Source) -> Vec<std::sync::Arc<str>> {
    let columns = source.schema().columns.iter();
    columns.map(|column| column.name.clone()).collect()
}

fn steer(line: &str) {
    fs::write("/proc/fakeroce", line).unwrap();
}

/// How often the kernel has called `function` of the driver of `device`.
fn calls(device: &str, function: &str) -> u64 {
    let all = fs::read_to_string("/proc/fakeroce").unwrap();
    let line = all
        .lines()
        .find(|line| line.starts_with(&format!("{device} ")))
        .unwrap();
    let mut words = line.split(' ').skip_while(|word| *word != function);
    words.nth(1).unwrap().parse().unwrap()
}

fn cell(source: &dyn Source, row: &[u64], name: &str) -> u64 {
    row[source
        .schema()
        .columns
        .iter()
        .position(|column| &*column.name == name)
        .unwrap()]
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn inodes_are_in_the_order_of_the_driver() {
    let port = port("mlx5_0");
    let stat = Stat::open(&port, port.rdma_index.unwrap()).unwrap();
    let files = port_files(&crate::Tree::open("/sys".as_ref()).unwrap(), &port).unwrap();
    let names = |schema: &model::Schema| {
        schema
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(stat.schema()), names(files.schema()));
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn a_row_of_files_is_one_query_of_the_driver() {
    let port = port("mlx5_1");
    let mut files = port_files(&crate::Tree::open("/sys".as_ref()).unwrap(), &port).unwrap();
    let mut row = vec![0; files.schema().columns.len()];
    let before = calls("mlx5_1", "hw_stats");
    for _ in 0..10 {
        thread::sleep(PAST_LIFESPAN);
        assert_eq!(files.read(&mut row), Read::Row);
    }
    let calls = calls("mlx5_1", "hw_stats") - before;
    println!("{calls} queries for 10 rows of {} files", row.len());
    // Emulation may take longer than the lifespan between two files.
    assert!(
        calls <= 20,
        "{calls} queries: the first file is not the driver's first counter"
    );
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn ports_are_listed_without_a_query_of_the_driver() {
    let kernel = kernel();
    let before = calls("mlx5_2", "query_port");
    let ports = kernel.ports().unwrap();
    assert_eq!(calls("mlx5_2", "query_port"), before);
    let port = ports.iter().find(|port| port.device == "mlx5_2").unwrap();
    assert_eq!(
        (port.netdev.as_deref(), port.driver.as_str()),
        (Some("rail2"), "mlx5_core")
    );
    assert!(port.rdma_index.is_some());
    assert_eq!(port.state, Some(model::PortState::Active));
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn values_failures_and_recovery() {
    let port = port("mlx5_3");
    for (source, name) in [
        (SourceKind::HwCounters, "np_cnp_sent"),
        (SourceKind::PortCounters, "port_xmit_data"),
    ] {
        steer(&format!("mlx5_3 {name} 123456789"));
        let mut source = active(&port, source);
        let mut row = vec![0; source.schema().columns.len()];
        assert_eq!(source.read(&mut row), Read::Row);
        assert_eq!(cell(&*source, &row, name), 123_456_789);
    }
    let mut source = active(&port, SourceKind::HwCounters);
    let mut row = vec![0; source.schema().columns.len()];
    steer("mlx5_3 !fail 5");
    match source.read(&mut row) {
        Read::Missing(why) => assert!(["EINVAL", "EIO"].contains(&why.reason), "{why}"),
        other => panic!("{other:?}"),
    }
    steer("mlx5_3 np_cnp_sent 5; mlx5_3 !fail 0");
    assert_eq!(source.read(&mut row), Read::Row);
    assert_eq!(cell(&*source, &row, "np_cnp_sent"), 5);
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn a_device_that_goes_is_missing_and_comes_back_as_another() {
    let port = port("mlx5_4");
    let mut sources =
        [SourceKind::HwCounters, SourceKind::PortCounters, SourceKind::Link].map(|kind| active(&port, kind));
    steer("unplug 4");
    for source in &mut sources {
        let mut row = vec![0; source.schema().columns.len()];
        match source.read(&mut row) {
            Read::Missing(why) => assert!(["ENODEV", "EINVAL"].contains(&why.reason), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(
        kernel()
            .ports()
            .unwrap()
            .iter()
            .all(|port| port.device != "mlx5_4")
    );
    steer("plug 4");
    let again = self::port("mlx5_4");
    assert_eq!(again.id, port.id);
    assert!(!again.same_instance(&port));
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn counters_that_are_switched_on_are_a_new_schema() {
    let mut source = active(&port("mlx5_3"), SourceKind::HwCounters);
    let before = source.schema().columns.len();
    let mut row = vec![0; before];
    rdma("statistic set link mlx5_3/1 optional-counters cc_rx_ce_pkts");
    assert_eq!(source.read(&mut row), Read::SchemaChanged);
    assert_eq!(source.schema().columns.len(), before + 1);
    row.resize(before + 1, 0);
    assert_eq!(source.read(&mut row), Read::Row);
    assert_ne!(cell(&*source, &row, "cc_rx_ce_pkts"), ABSENT);
    rdma("statistic unset link mlx5_3/1 optional-counters");
    assert_eq!(source.read(&mut row), Read::SchemaChanged);
    assert_eq!(source.schema().columns.len(), before);
}

/// Which optional counters of a device are on, as `rdma` tells it.
fn switched_on(device: &str) -> String {
    let output = Command::new("rdma")
        .args(["statistic", "mode", "link", &format!("{device}/1")])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.split_once("optional-counters")
        .map_or_else(String::new, |(_, counters)| counters.trim().to_owned())
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn optional_counters_are_switched_on_while_they_are_read_and_others_stay() {
    let device = "mlx5_5";
    rdma("statistic set link mlx5_5/1 optional-counters cc_rx_ce_pkts");
    let kernel = Kernel::new(&Options {
        optional_counters: true,
        ..Options::default()
    })
    .unwrap();
    let Opened::Active(mut source) = kernel.open(&port(device), SourceKind::HwCounters) else {
        panic!("hw_counters can be read")
    };
    let names = names(&*source);
    for name in ["cc_rx_ce_pkts", "cc_rx_cnp_pkts", "cc_tx_cnp_pkts"] {
        assert!(names.iter().any(|known| &**known == name), "{names:?}");
    }
    assert_eq!(switched_on(device), "cc_rx_ce_pkts,cc_rx_cnp_pkts,cc_tx_cnp_pkts");
    assert_eq!(source.read(&mut vec![0; names.len()]), Read::Row);

    // Somebody else wants another one in the meantime, and switches ours off.
    rdma("statistic set link mlx5_5/1 optional-counters cc_rx_ce_pkts,cc_rx_cnp_pkts");
    assert_eq!(source.read(&mut vec![0; names.len()]), Read::SchemaChanged);
    drop(source);
    assert_eq!(switched_on(device), "cc_rx_ce_pkts");
    rdma("statistic unset link mlx5_5/1 optional-counters");
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn the_kernel_tells_the_mode_of_queue_pair_counters() {
    let port = port("mlx5_0");
    let mut socket =
        crate::netlink::Socket::open(neli::consts::socket::NlFamily::Rdma, &[], crate::netlink::ANSWER)
            .unwrap();
    let mut request = nldev::queue_pair_mode_of(port.rdma_index.unwrap(), port.id.number);
    let before = calls("mlx5_0", "hw_stats");
    let mode = nldev::queue_pair_mode(socket.ask(&mut request).unwrap());
    assert_eq!(mode, Some(nldev::QueuePairMode::Off));
    assert_eq!(
        calls("mlx5_0", "hw_stats"),
        before,
        "without a query of the driver"
    );
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn a_device_that_comes_or_goes_is_told_of() {
    let release = crate::release("/proc".as_ref()).unwrap();
    // Without RDMA netlink's notices it is told all the same, as udev is.
    let by_netlink = nldev::monitor().unwrap().is_some();
    println!("kernel {release} tells of RDMA devices by netlink: {by_netlink}");
    assert_eq!(by_netlink, !release.starts_with("6.1."));
    // The netdev is there already, so that rtnetlink has nothing to say.
    for command in ["link add told0 type dummy", "link set told0 up"] {
        ip(command);
    }
    let _ = Command::new("modprobe")
        .args(["-a", "crc32_generic", "rdma_rxe"])
        .status();
    let mut changes = kernel().changes().unwrap();
    for command in ["link add told type rxe netdev told0", "link delete told"] {
        rdma(command);
        let mut found = Vec::new();
        changes.wait(Duration::from_secs(2), &mut found).unwrap();
        assert!(found.contains(&Change::Devices), "{command}: {found:?}");
    }
    ip("link del told0");
}

fn rdma(arguments: &str) {
    let status = Command::new("rdma").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "rdma {arguments}");
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn what_the_two_ways_take() {
    const ROWS: usize = 2000;
    let port = port("mlx5_5");
    let mut stat = active(&port, SourceKind::HwCounters);
    let mut files = port_files(&crate::Tree::open("/sys".as_ref()).unwrap(), &port).unwrap();
    let mut row = vec![0; stat.schema().columns.len()];
    let mut time = |source: &mut dyn Source| {
        let began = clock::now();
        assert_eq!(source.read(&mut row), Read::Row);
        began.elapsed()
    };
    let (mut netlink, mut file): (Vec<_>, Vec<_>) =
        (0..ROWS).map(|_| (time(&mut *stat), time(&mut files))).unzip();
    let [netlink, file] = [&mut netlink, &mut file].map(|times| {
        times.sort();
        (times[0], times[ROWS / 2])
    });
    let ratio = file.1.as_secs_f64() / netlink.1.as_secs_f64();
    println!("least and median: netlink {netlink:?}, files {file:?}; ratio of the medians {ratio:.2}");
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn counters_of_queue_pairs_cost_one_query_for_each_group_and_no_allocation() {
    let device = "mlx5_2";
    rdma(&format!("statistic qp set link {device}/1 auto type,pid on"));
    steer(&format!(
        "qp {device} 50 RC;qp {device} 51 RC;qp {device} 52 UD;qpcount {device} 51 packet_seq_err 9"
    ));
    let mut source = active(&port(device), SourceKind::QpCounters);
    let names = names(&*source);
    let whose = format!("pid={} qp_type=RC ", std::process::id());
    let at = names
        .iter()
        .position(|name| name.starts_with(&whose) && name.ends_with(" packet_seq_err"))
        .unwrap_or_else(|| panic!("the thread's process is told: {names:?}"));
    let mut row = vec![0; names.len()];
    assert_eq!(source.read(&mut row), Read::Row);
    assert_eq!(row[at], 9);
    let before = calls(device, "qp_stats");
    let allocated = allocations::during(|| assert_eq!(source.read(&mut row), Read::Row));
    assert_eq!(
        (calls(device, "qp_stats") - before, allocated),
        (2, 0),
        "two groups"
    );

    // What another thread makes has another counter, and is of the same process; also once the thread has ended, and the kernel
    // no longer names it.
    let made = std::sync::Barrier::new(2);
    let seen = std::sync::Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            steer(&format!("qp {device} 53 RC;qpcount {device} 53 packet_seq_err 2"));
            made.wait();
            seen.wait();
        });
        made.wait();
        assert_eq!(source.read(&mut row), Read::Row, "no column is new");
        assert_eq!(row[at], 11);
        seen.wait();
    });
    steer(&format!("qpcount {device} 53 packet_seq_err 1"));
    assert_eq!(source.read(&mut row), Read::Row, "no column is new");
    assert_eq!(row[at], 12);
    for number in 50..54 {
        steer(&format!("unqp {device} {number}"));
    }
    assert_eq!(
        source.read(&mut row),
        Read::Row,
        "one look may have passed over them"
    );
    assert_eq!(source.read(&mut row), Read::SchemaChanged);
    assert_eq!(source.schema().columns.len(), 1);
    rdma(&format!("statistic qp set link {device}/1 auto off"));
}
