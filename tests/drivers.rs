//! One server with NICs of seven drivers: whatever the driver calls its counters, the same metrics show them.
//!
//! Names: the drivers' `hw_counters` sources of Linux 6.12 and later (`crates/catalog/data` names the file for each). The
//! layout of sysfs: `drivers/infiniband/core/sysfs.c`. The faults: public reports, by repository and number.

mod support;
#[path = "support/tree.rs"]
mod tree;

use std::fmt::{Display, Write as _};
use std::time::Duration;
use support::{Daemon, Metrics};

/// A device `ib` with a netdev on PCI bus `bus`, bound to `driver`; `files` are below its port.
fn nic<N: Display>(bus: u8, ib: &str, driver: &str, link_layer: &str, files: &[(N, &str)]) -> String {
    let pci = format!("0000:{bus:02x}:00.0");
    let device = format!("devices/pci0000:00/{pci}");
    let port = format!("{device}/infiniband/{ib}/ports/1");
    let mut text = format!(
        "bus/pci/drivers/{driver}/module = {driver}\n\
         bus/pci/devices/{pci} -> ../../../{device}\n\
         class/infiniband/{ib} -> ../../{device}/infiniband/{ib}\n\
         class/net/eth{bus} -> ../../{device}/net/eth{bus}\n\
         {device}/driver -> ../../../bus/pci/drivers/{driver}\n\
         {device}/class = 0x020000\n\
         {device}/infiniband/{ib}/device -> ../../../{pci}\n\
         {device}/infiniband/{ib}/node_guid = 0000:0000:0000:00{bus:02x}\n\
         {device}/net/eth{bus}/device -> ../../../{pci}\n\
         {device}/net/eth{bus}/address = 02:00:00:00:00:{bus:02x}\n\
         {device}/net/eth{bus}/ifindex = {bus}\n\
         {device}/net/eth{bus}/type = 1\n\
         {device}/net/eth{bus}/flags = 0x1003\n\
         {device}/net/eth{bus}/operstate = up\n\
         {device}/net/eth{bus}/dev_port = 0\n\
         {port}/state = 4: ACTIVE\n\
         {port}/link_layer = {link_layer}\n\
         {port}/gids/0 = 0000:0000:0000:0000:0000:0000:0000:0000\n"
    );
    for (file, value) in files {
        let _ = writeln!(text, "{port}/{file} = {value}");
    }
    text
}

type Files = &'static [(&'static str, &'static str)];

/// PCI bus, RDMA device, driver, and its `hw_counters`.
const ETHERNET: [(u8, &str, &str, Files); 8] = [
    (
        0x10,
        "mlx5_0",
        "mlx5_core",
        &[
            ("np_ecn_marked_roce_packets", "11"),
            ("np_cnp_sent", "12"),
            ("rp_cnp_handled", "13"),
            ("rp_cnp_ignored", "14"),
            ("out_of_sequence", "15"),
        ],
    ),
    // Two vocabularies of one driver [rocm-systems 5016]; its handled CNPs are all CNPs that came.
    (
        0x11,
        "bnxt_re0",
        "bnxt_en",
        &[
            ("rx_ecn_marked_pkts", "21"),
            ("tx_cnp_pkts", "22"),
            ("rx_cnp_pkts", "23"),
            ("oos_drop_count", "25"),
            ("rx_bytes", "7521781137064"),
        ],
    ),
    (
        0x12,
        "bnxt_re1",
        "bnxt_en",
        &[
            ("np_ecn_marked_roce_packets", "31"),
            ("np_cnp_sent", "32"),
            ("rp_cnp_handled", "33"),
            ("out_of_sequence", "35"),
        ],
    ),
    // Names with spaces, a signal in two parts, and a name from udev: only the link tells the driver [node_exporter 2846].
    (
        0x13,
        "ibp152s0f0",
        "ice",
        &[
            ("RxECNMrkd", "41"),
            ("cnpSent", "42"),
            ("cnpHandled", "43"),
            ("cnpIgnored", "44"),
            ("Rcvd Out of order packets", "45"),
            ("CRC errors", "46"),
            ("ip4InOctets", "1000"),
            ("ip6InOctets", "24"),
        ],
    ),
    // All ones where the firmware has no such counter.
    (
        0x14,
        "ionic_0",
        "ionic",
        &[
            ("rx_rdma_ecn_pkts", "51"),
            ("tx_rdma_cnp_pkts", "18446744073709551615"),
            ("rx_rdma_cnp_pkts", "53"),
            ("resp_rx_outouf_seq", "55"),
        ],
    ),
    (
        0x15,
        "hns_0",
        "hns3",
        &[("tx_cnp_pkt", "62"), ("rx_cnp_pkt", "63"), ("rx_pkt", "64")],
    ),
    (
        0x16,
        "efa_0",
        "efa",
        &[("rx_bytes", "71"), ("tx_bytes", "72"), ("rx_drops", "76")],
    ),
    (
        0x17,
        "erdma_0",
        "erdma",
        &[("hw_rx_bytes_cnt", "81"), ("hw_tx_bytes_cnt", "82")],
    ),
];

fn server() -> String {
    let mut text = String::new();
    for (bus, ib, driver, counters) in ETHERNET {
        let files: Vec<_> = counters
            .iter()
            .map(|(name, value)| (format!("hw_counters/{name}"), *value))
            .collect();
        text += &nic(bus, ib, driver, "Ethernet", &files);
    }
    // Files of a driver without performance management [node_exporter 966] cost nothing else.
    let odd = [
        ("counters/port_rcv_data", "N/A (no PMA)"),
        ("hw_counters/np_cnp_sent", "92"),
    ];
    text += &nic(0x18, "mlx5_8", "mlx5_core", "Ethernet", &odd);
    // InfiniBand is listed and left alone: on some boards each refused read is a line in the kernel's log
    // [node_exporter 3434].
    text + &nic(
        0x19,
        "mlx5_9",
        "mlx5_core",
        "InfiniBand",
        &[("hw_counters/np_cnp_sent", "102")],
    )
}

/// What the daemon shows of that server once every counter has been read.
fn scraped() -> Metrics {
    let sysfs = tree::lay_out_text(&server());
    let daemon = Daemon::start(&["run", "--sysfs", sysfs.path().to_str().expect("paths are text")]);
    daemon.wait_until_ready();
    daemon.wait_for("every counter is read", Duration::from_secs(10), |metrics| {
        let bytes = [("device", "erdma_0"), ("direction", "rx")];
        metrics.get("rocewatch_rdma_bytes_total", &bytes).is_some()
            && metrics
                .get("rocewatch_cnp_sent_total", &[("device", "mlx5_8")])
                .is_some()
    })
}

#[test]
fn congestion_shows_alike_whatever_the_driver_calls_it() {
    let metrics = scraped();
    // CE marks received, CNPs sent, received, handled, ignored. What a driver does not tell apart is not made up.
    let right = [
        ("mlx5_0", [Some(11.0), Some(12.0), None, Some(13.0), Some(14.0)]),
        ("bnxt_re0", [Some(21.0), Some(22.0), Some(23.0), None, None]),
        ("bnxt_re1", [Some(31.0), Some(32.0), Some(33.0), None, None]),
        (
            "ibp152s0f0",
            [Some(41.0), Some(42.0), None, Some(43.0), Some(44.0)],
        ),
        ("ionic_0", [Some(51.0), None, Some(53.0), None, None]),
        ("hns_0", [None, Some(62.0), Some(63.0), None, None]),
        ("mlx5_8", [None, Some(92.0), None, None, None]),
        ("mlx5_9", [None; 5]),
    ];
    let families = [
        "ecn_marked_packets",
        "cnp_sent",
        "cnp_received",
        "cnp_handled",
        "cnp_ignored",
    ];
    for (device, values) in right {
        let found =
            families.map(|family| metrics.get(&format!("rocewatch_{family}_total"), &[("device", device)]));
        assert_eq!(found, values, "{device}: {families:?}");
    }
}

#[test]
fn bytes_errors_and_drops_show_alike_too() {
    let metrics = scraped();
    let error = |device, error| {
        metrics.get(
            "rocewatch_roce_errors_total",
            &[("device", device), ("error", error)],
        )
    };
    let devices = ["mlx5_0", "bnxt_re0", "bnxt_re1", "ibp152s0f0", "ionic_0"];
    let out_of_sequence = devices.map(|device| error(device, "out_of_sequence"));
    assert_eq!(out_of_sequence, [15.0, 25.0, 35.0, 45.0, 55.0].map(Some));
    assert_eq!(error("ibp152s0f0", "icrc"), Some(46.0));
    let bytes = |device| {
        ["rx", "tx"].map(|direction| {
            metrics.get(
                "rocewatch_rdma_bytes_total",
                &[("device", device), ("direction", direction)],
            )
        })
    };
    assert_eq!(bytes("bnxt_re0"), [Some(7_521_781_137_064.0), None]);
    assert_eq!(bytes("ibp152s0f0"), [Some(1024.0), None]);
    assert_eq!(bytes("efa_0"), [Some(71.0), Some(72.0)]);
    assert_eq!(bytes("erdma_0"), [Some(81.0), Some(82.0)]);
    let drops = [("device", "efa_0"), ("direction", "rx")];
    assert_eq!(metrics.get("rocewatch_drops_total", &drops), Some(76.0));
}

#[test]
fn what_is_not_read_is_listed_all_the_same() {
    let metrics = scraped();
    assert_eq!(metrics.all("rocewatch_port_info", &[]).count(), 10);
    let infiniband = [("device", "mlx5_9"), ("link_layer", "InfiniBand")];
    assert_eq!(metrics.all("rocewatch_port_info", &infiniband).count(), 1);
    assert_eq!(
        metrics
            .all(
                "rocewatch_samples_total",
                &[("device", "mlx5_9"), ("source", "hw_counters")]
            )
            .count(),
        0
    );
}
