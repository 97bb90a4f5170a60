//! Faults of comparable tools that their users reported in public, each played as it happened, with all that may be told of
//! it. Repository and number of the report stand beside each.

use crate::rows::{HELD, MS, Rows, SECOND, Sources};
use model::{ABSENT, SourceKind};
use signals::detect::EventKind::{self, *};
use signals::detect::{EventChange, NodeDetectors, RailTraffic, Thresholds};

/// A port that carries some 80 Gbit/s each way, marks now and then, and answers marks.
const JOB: &[(&str, u64)] = &[
    ("rx_bytes_phy", 10_000_000_000),
    ("rx_packets_phy", 2_500_000),
    ("rx_vport_rdma_unicast_packets", 2_500_000),
    ("tx_bytes_phy", 10_000_000_000),
    ("tx_packets_phy", 2_500_000),
    ("tx_vport_rdma_unicast_packets", 2_500_000),
    ("np_ecn_marked_roce_packets", 50),
    ("np_cnp_sent", 50),
    ("rp_cnp_handled", 50),
];

// A detector must not cry wolf.

/// Every reboot was an alarm, while links trained: `NVSentinel` 1701.
#[test]
fn links_that_train_after_a_boot_are_not_told() {
    let mut rows = Rows::new(&Thresholds::default());
    for second in 0..60 {
        rows.facts.uptime = Some((second + 30) * SECOND);
        rows.set("carrier", second % 2);
        rows.add(&[("carrier_down_count", 1)]);
        rows.play(1_000, &[("out_of_sequence", 1_000)]);
    }
    rows.facts.uptime = Some(200 * SECOND);
    rows.set("carrier", 1);
    rows.play(60_000, &[]);
    rows.is_silent();
    // One that trains for ever is down.
    rows.set("carrier", 0);
    rows.play(1_000, &[]);
    rows.opens(&[LinkDown]);
}

/// An error of one read was taken for a device that had vanished: `NVSentinel` 1488.
#[test]
fn a_device_is_gone_when_it_stays_away() {
    let mut rows = Rows::rested();
    let mut away = |ms| {
        // As the agent has it: no source, and then all of them anew.
        rows.close();
        rows.facts.gone = true;
        rows.play(ms, &[]);
        let told = rows.told();
        rows.facts.gone = false;
        rows.reopen();
        rows.play(30_000, JOB);
        (told, rows.told())
    };
    let nothing = || (vec![], vec![]);
    assert_eq!(away(200), (nothing(), nothing()));
    assert_eq!(away(4_000), (nothing(), nothing()));
    assert_eq!(
        away(6_000),
        ((vec![DeviceGone], vec![]), (vec![], vec![DeviceGone]))
    );
}

/// A link that flapped was told once a boot, and its state was its alarm: `NVSentinel` 1488.
#[test]
fn each_flap_counts_and_the_state_is_another_thing() {
    let mut rows = Rows::rested();
    let flap = |rows: &mut Rows| {
        rows.set("carrier", 0);
        rows.set("speed", ABSENT);
        rows.add(&[("carrier_down_count", 1)]);
        rows.play(2_000, &[]);
        let down = rows.told();
        rows.set("carrier", 1);
        rows.set("speed", 400_000);
        rows.play(28_000, JOB);
        (down, rows.told())
    };
    let once = || ((vec![LinkDown], vec![]), (vec![], vec![LinkDown]));
    // Twice on two days: no boot lies between.
    for _ in 0..2 {
        assert_eq!(flap(&mut rows), once());
        assert_eq!(flap(&mut rows), once());
        let third = flap(&mut rows);
        assert_eq!(
            third,
            ((vec![LinkDown, LinkFlap], vec![]), (vec![], vec![LinkDown]))
        );
        // It flaps all the same, and each time is told.
        assert_eq!(flap(&mut rows), once());
        // It is up, and has not stopped to be a link that flaps.
        rows.play(500_000, JOB);
        rows.is_silent();
        rows.play(100_000, JOB);
        rows.closes(&[LinkFlap]);
    }
}

/// An idle node was taken for a broken one: `cluster-toolkit` 5917.
#[test]
fn no_traffic_is_no_fault() {
    let mut rails: Vec<Rows> = (0..2).map(|_| Rows::rested()).collect();
    let mut node = NodeDetectors::new(Thresholds::default());
    for minute in 0..30 {
        for rail in &mut rails {
            rail.play(60_000, &[]);
            rail.is_silent();
        }
        // One of them is asked something, now and then.
        rails[0].step(SECOND, &[("rx_bytes_phy", 2_000), ("rx_packets_phy", 20)]);
        rails[1].step(SECOND, &[]);
        let traffic = rails.iter().map(|rail| RailTraffic::of(&rail.signals));
        let told: Vec<_> = node.look(rails[0].now, traffic).collect();
        assert!(told.is_empty(), "minute {minute}: {told:?}");
    }
}

/// A tool cleared the hardware's counters for everybody: infiniband-radar-daemon 22. Who only reads sees them begin anew.
#[test]
fn counters_that_somebody_cleared_are_told_as_that() {
    begins_anew(&[
        "np_ecn_marked_roce_packets",
        "np_cnp_sent",
        "rp_cnp_handled",
        "rp_cnp_ignored",
        "out_of_sequence",
    ]);
}

// A number must be the right number.

/// A baseline stood above the value after a reload of the driver: sonic-buildimage 5206.
#[test]
fn counters_that_begin_anew_are_no_storm_and_no_burst() {
    let rows = Rows::rested();
    let facts = ["carrier", "speed", "pfc_enabled"];
    let counters = rows.values.keys().copied().filter(|name| !facts.contains(name));
    begins_anew(&counters.collect::<Vec<_>>());
}

/// These counters read 0 from one sample to the next, under a job, and count on.
fn begins_anew(counters: &[&'static str]) {
    let mut rows = Rows::rested();
    rows.play(120_000, JOB);
    rows.is_silent();
    for name in counters {
        rows.set(name, 0);
    }
    rows.play(1_000, JOB);
    let EventChange::Opened(event) = &rows.told[0] else {
        panic!("{:?}", rows.told)
    };
    assert_eq!(event.evidence, [("counters", counters.len() as f64)]);
    rows.opens(&[CounterReset]);
    rows.play(60_000, JOB);
    rows.closes(&[CounterReset]);
}

/// 132 million pause frames since the boot, and none now: daqiri 252.
#[test]
fn totals_since_the_boot_are_no_news() {
    let mut rows = Rows::new(&Thresholds::default());
    assert_eq!(rows.values["rx_prio3_pause"], 132_000_000);
    rows.play(600_000, JOB);
    rows.is_silent();
    rows.play(
        2_000,
        &[("rx_prio3_pause", 12_000), ("rx_prio3_pause_duration", HELD)],
    );
    rows.opens(&[PfcStorm]);
}

/// Growth was divided by the interval that was meant, not by the time between the reads: mlnx-tools 8fbfd9c. A pause of
/// half the time would have been one of up to 3.5 times the time.
#[test]
fn a_rate_is_by_the_time_between_two_reads() {
    let mut rows = Rows::rested();
    let half = [("rx_prio3_pause_duration", HELD / 2), ("rp_cnp_handled", 100)];
    for time in [200, 1_400, 200, 600, 1_000].repeat(8) {
        rows.step(time * MS, &half);
    }
    let EventChange::Opened(event) = &rows.told[0] else {
        panic!("{:?}", rows.told)
    };
    assert_eq!(event.evidence, [("pause_ratio", 0.5)]);
    rows.opens(&[SustainedPause]);
}

/// The strings of the statistics changed between two calls: Linux 7b07be1ff1cb. PFC goes from priority 3 to 4, and each
/// counter behind it is another column.
#[test]
fn counters_that_change_places_are_still_themselves() {
    const MOVED: Sources = &[
        (
            SourceKind::Ethtool,
            &[
                "rx_prio4_pause_duration",
                "rx_bytes_phy",
                "rx_packets_phy",
                "tx_bytes_phy",
                "tx_packets_phy",
                "rx_vport_rdma_unicast_packets",
                "tx_vport_rdma_unicast_packets",
            ],
        ),
        (SourceKind::Dcb, &["pfc_enabled"]),
    ];
    let mut rows = Rows::rested();
    rows.play(60_000, JOB);
    rows.add(&[("rx_prio3_pause_duration", 9_000_000_000)]);
    rows.set("pfc_enabled", 1 << 4);
    rows.open(MOVED);
    let traffic: Vec<_> = JOB.iter().copied().filter(|(name, _)| rows.has(name)).collect();
    rows.play(60_000, &traffic);
    rows.is_silent();
}

/// The file of the rate gave EINVAL: `node_exporter` 3810. A speed that nobody knows is not a low one.
#[test]
fn an_unknown_speed_is_not_below_the_usual() {
    let mut rows = Rows::new(&Thresholds::default());
    rows.set("speed", ABSENT);
    rows.facts.usual_speed = Some(200e9);
    rows.play(120_000, JOB);
    rows.is_silent();
    assert_eq!(RailTraffic::of(&rows.signals), None, "a share of nothing known");
}

const BROADCOM: &[&str] = &[
    "rx_pfc_ena_frames_pri3",
    "pfc_pri3_rx_duration_us",
    "rx_bytes",
    "tx_bytes",
];
const THOR_2: Sources = &[
    (SourceKind::Ethtool, BROADCOM),
    (SourceKind::HwCounters, &["rx_cnp_pkts"]),
    (SourceKind::Dcb, &["pfc_enabled"]),
];
const THOR_2_OUT_OF_TREE: Sources = &[
    (SourceKind::Ethtool, BROADCOM),
    (SourceKind::HwCounters, &["rp_cnp_handled"]),
    (SourceKind::Dcb, &["pfc_enabled"]),
];

/// Thor 2 names its pause otherwise than `mlx5` (rocm-systems 11027), and its CNPs in two ways (rocm-systems 5016).
#[test]
fn a_driver_with_other_names_has_the_same_events() {
    for (sources, cnps) in [(THOR_2, "rx_cnp_pkts"), (THOR_2_OUT_OF_TREE, "rp_cnp_handled")] {
        let play = |ms, growth: &[(&'static str, u64)]| {
            let mut rows = Rows::of("bnxt_en", sources, &Thresholds::default());
            rows.play(10_000, &[]);
            rows.play(ms, growth);
            let mut told: Vec<_> = rows.told.iter().map(opened).collect();
            told.sort_unstable();
            told
        };
        let half = ("pfc_pri3_rx_duration_us", HELD / 2);
        let storm = [
            ("rx_pfc_ena_frames_pri3", 6_000),
            ("pfc_pri3_rx_duration_us", HELD),
        ];
        assert_eq!(play(4_000, &storm), [(PfcStorm, Some(3))], "{cnps}");
        assert_eq!(
            play(14_000, &[half, (cnps, 500)]),
            [(SustainedPause, Some(3))],
            "{cnps}"
        );
        assert_eq!(
            play(14_000, &[half]),
            [(SustainedPause, Some(3)), (PauseWithoutCe, Some(3))],
            "{cnps}"
        );
    }
}

fn opened(change: &EventChange) -> (EventKind, Option<u8>) {
    let EventChange::Opened(event) = change else {
        panic!("{change:?}")
    };
    (event.kind, event.priority)
}

/// A virtual function has the counters of its own RDMA and none of the wire.
const VIRTUAL_FUNCTION: Sources = &[
    (
        SourceKind::Ethtool,
        &[
            "rx_vport_rdma_unicast_packets",
            "tx_vport_rdma_unicast_packets",
            "rx_vport_rdma_unicast_bytes",
            "tx_vport_rdma_unicast_bytes",
        ],
    ),
    (SourceKind::PortCounters, &["port_rcv_data", "port_xmit_data"]),
    (SourceKind::Link, &["carrier", "carrier_down_count"]),
    (SourceKind::Settings, &["speed"]),
];

/// A virtual function was counted beside its physical one: `rdma_exporter` 722efb6. A storm is told of the port that the
/// counters belong to; and what a function counts in words of 4 bytes (`node_exporter` 573) is no rail's traffic.
#[test]
fn what_happens_to_a_port_is_told_of_its_physical_function_alone() {
    let traffic = [
        ("rx_vport_rdma_unicast_packets", 2_500_000),
        ("tx_vport_rdma_unicast_packets", 2_500_000),
        ("rx_vport_rdma_unicast_bytes", 10_000_000_000),
        ("tx_vport_rdma_unicast_bytes", 10_000_000_000),
        ("port_rcv_data", 2_500_000_000),
        ("port_xmit_data", 2_500_000_000),
    ];
    let mut physical = Rows::rested();
    let mut function = Rows::of("mlx5_core", VIRTUAL_FUNCTION, &Thresholds::default());
    let mut idle = Rows::of("mlx5_core", VIRTUAL_FUNCTION, &Thresholds::default());
    let mut node = NodeDetectors::new(Thresholds::default());
    let mut uneven = Vec::new();
    for second in 0..120 {
        let held = [("rx_prio3_pause_duration", if second >= 110 { HELD } else { 0 })];
        physical.play(1_000, &[JOB, &held].concat());
        function.play(1_000, &traffic);
        idle.play(1_000, &[]);
        let rails = [&physical, &function, &idle].map(|rail| RailTraffic::of(&rail.signals));
        uneven.extend(node.look(physical.now, rails.into_iter()));
    }
    physical.opens(&[PfcStorm]);
    function.is_silent();
    idle.is_silent();
    assert_eq!(uneven, []);
}
