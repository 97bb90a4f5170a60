//! Each scenario shows what it is named for, and the healthy one shows nothing.

use catalog::{Index, Signal};
use model::{ABSENT, Change, Host, Opened, PortState, Read, Source, SourceKind};
use sim::{Scenario, Simulator};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const RDMA: Option<Index> = Some(Index::Priority(3));
const RAILS: usize = 8;

struct Server {
    time: Arc<AtomicU64>,
    host: Simulator,
}

impl Server {
    fn new(scenario: Scenario) -> Self {
        let time = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&time);
        let host = Simulator::new(scenario, 11, move || clock.load(Ordering::Relaxed));
        Self { time, host }
    }

    fn at(&self, seconds: f64) {
        let nanoseconds = Duration::from_secs_f64(seconds).as_nanos();
        self.time
            .store(u64::try_from(nanoseconds).unwrap(), Ordering::Relaxed);
    }

    /// Goes on to `seconds` without the long pauses that are played in longer steps.
    fn pass(&self, seconds: f64) {
        let now = Duration::from_nanos(self.time.load(Ordering::Relaxed)).as_secs_f64();
        let mut stop = now + 5.0;
        while stop < seconds {
            self.at(stop);
            self.host.ports().unwrap();
            stop += 5.0;
        }
        self.at(seconds);
    }

    fn source(&self, rail: usize, kind: SourceKind) -> Box<dyn Source> {
        match self.host.open(&self.host.ports().unwrap()[rail], kind) {
            Opened::Active(source) => source,
            Opened::NotApplicable(why) | Opened::Failed(why) => panic!("{kind}: {why}"),
        }
    }

    fn value(&self, rail: usize, kind: SourceKind, signal: Signal, index: Option<Index>) -> u64 {
        let mut source = self.source(rail, kind);
        let column = source
            .schema()
            .find(signal, index)
            .next()
            .expect("the source has the signal");
        let mut row = vec![0; source.schema().columns.len()];
        source.read(&mut row);
        row[column]
    }

    /// How much a counter grows from one second of the scenario to another. Time only goes on.
    fn grows(&self, from: f64, to: f64, what: &[(usize, SourceKind, Signal, Option<Index>)]) -> Vec<u64> {
        let look = |(rail, kind, signal, index): &(usize, SourceKind, Signal, Option<Index>)| {
            self.value(*rail, *kind, *signal, *index)
        };
        self.pass(from);
        let before: Vec<u64> = what.iter().map(look).collect();
        self.pass(to);
        what.iter()
            .map(look)
            .zip(before)
            .map(|(after, before)| after - before)
            .collect()
    }
}

fn pause(rail: usize, signal: Signal) -> (usize, SourceKind, Signal, Option<Index>) {
    (rail, SourceKind::Ethtool, signal, RDMA)
}

fn rdma(rail: usize, signal: Signal) -> (usize, SourceKind, Signal, Option<Index>) {
    (rail, SourceKind::HwCounters, signal, None)
}

#[test]
fn healthy_has_traffic_rare_marks_and_no_fault() {
    let server = Server::new(Scenario::Healthy);
    for rail in 0..RAILS {
        let faults = [
            pause(rail, Signal::PfcRxPauseDuration),
            pause(rail, Signal::PfcTxPauseDuration),
            pause(rail, Signal::PfcRxFrames),
            rdma(rail, Signal::RoceAckTimeout),
            rdma(rail, Signal::RoceRxOutOfSequence),
            (rail, SourceKind::Link, Signal::LinkCarrierDown, None),
        ];
        let from = 20.0 * rail as f64;
        assert_eq!(server.grows(from, from + 20.0, &faults), [0; 6]);
    }
    let what = [
        (1, SourceKind::Ethtool, Signal::BytesTx, RDMA),
        rdma(1, Signal::EcnRxCe),
    ];
    let grown = server.grows(200.0, 260.0, &what);
    let share = grown[0] as f64 / (50e9 * 60.0);
    assert!((0.25..0.60).contains(&share), "{share} of the line on average");
    assert!((1..5_000).contains(&grown[1]), "{} marks in a minute", grown[1]);
}

#[test]
fn healthy_bursts_reach_ninety_percent() {
    let server = Server::new(Scenario::Healthy);
    let what = [(4, SourceKind::Ethtool, Signal::BytesTx, None)];
    let shares = (0..200_u32).map(|i| {
        let from = f64::from(i) * 0.02;
        server.grows(from, from + 0.02, &what)[0] as f64 / (50e9 * 0.02)
    });
    let peak = shares.fold(0.0, f64::max);
    assert!((0.83..0.97).contains(&peak), "{peak}");
}

#[test]
fn incast_marks_notifies_pauses_and_slows() {
    let server = Server::new(Scenario::Incast);
    let what = [
        rdma(3, Signal::EcnRxCe),
        rdma(3, Signal::CnpTx),
        rdma(3, Signal::CnpRxHandled),
        pause(3, Signal::PfcRxPauseDuration),
        pause(3, Signal::PfcRxTransitions),
        pause(3, Signal::PfcTxPauseDuration),
        pause(2, Signal::PfcRxPauseDuration),
    ];
    let grown = server.grows(0.0, 30.0, &what);
    assert!(
        grown[0] > 100_000 && grown[1] > 10_000 && grown[2] > 5_000,
        "{grown:?}"
    );
    assert!(
        grown[3] > 30_000 && grown[3] < 3_000_000,
        "{} us of pause in 30 s",
        grown[3]
    );
    let episode = grown[3] as f64 / grown[4] as f64;
    assert!((1.0..84.0).contains(&episode), "episodes of {episode} us");
    assert_eq!(grown[5..], [0, 0]);
}

#[test]
fn a_storm_holds_one_rail_and_the_others_wait() {
    let server = Server::new(Scenario::PfcStorm);
    let what = [
        pause(5, Signal::PfcRxPauseDuration),
        pause(5, Signal::PfcRxFrames),
        pause(5, Signal::PfcRxTransitions),
        (5, SourceKind::Ethtool, Signal::BytesTx, RDMA),
        (1, SourceKind::Ethtool, Signal::BytesTx, RDMA),
        pause(1, Signal::PfcRxPauseDuration),
    ];
    let before = server.grows(1.0, 9.0, &what);
    assert_eq!(before[..3], [0, 0, 0]);
    let grown = server.grows(12.0, 29.0, &what);
    assert!(
        grown[0] >= 16_990_000 && grown[0] <= 17_001_000,
        "{} us",
        grown[0]
    );
    assert!(grown[1] >= 17 * 11_921, "{} frames", grown[1]);
    assert_eq!(grown[2..4], [0, 0], "no transition and no byte");
    assert!(
        grown[4] < 1_000_000,
        "a rail that waits sends no more than ACKs: {} bytes",
        grown[4]
    );
    assert_eq!(grown[5], 0);
    let ended = server.grows(29.0, 31.0, &what);
    assert_eq!(ended[2], 1);
    assert!(ended[3] > 0 && ended[4] > 0, "the job goes on");
}

#[test]
fn a_slow_receiver_pauses_the_switch() {
    let server = Server::new(Scenario::SlowReceiver);
    let what = [
        pause(6, Signal::PfcTxPauseDuration),
        pause(6, Signal::PfcTxFrames),
        rdma(6, Signal::CnpTx),
        pause(6, Signal::PfcRxPauseDuration),
    ];
    let grown = server.grows(33.0, 35.0, &what);
    assert!((300_000..1_000_000).contains(&grown[0]), "{} us in 2 s", grown[0]);
    assert!(grown[1] as f64 >= grown[0] as f64 / 83.9, "{} frames", grown[1]);
    assert!(grown[2] > 0);
    assert_eq!(grown[3], 0);
    assert!(server.value(6, SourceKind::Ethtool, Signal::PcieStalledWritePercent, None) > 10);
}

#[test]
fn a_flap_is_counted_seen_and_retransmitted() {
    let server = Server::new(Scenario::LinkFlap);
    let mut changes = server.host.changes().unwrap();
    let ifindex = server.host.ports().unwrap()[2].ifindex.unwrap();
    let mut found = Vec::new();
    server.at(9.0);
    changes.wait(Duration::ZERO, &mut found).unwrap();
    assert_eq!(found, []);

    server.at(10.5);
    changes.wait(Duration::ZERO, &mut found).unwrap();
    assert_eq!(found, [Change::Link { ifindex }]);
    assert_eq!(server.host.ports().unwrap()[2].state, Some(PortState::Down));
    assert_eq!(server.value(2, SourceKind::Link, Signal::LinkUp, None), 0);
    assert_eq!(
        server.value(2, SourceKind::Settings, Signal::LinkSpeed, None),
        ABSENT
    );
    assert_eq!(
        server.value(3, SourceKind::Settings, Signal::LinkSpeed, None),
        400_000
    );

    server.at(11.5);
    changes.wait(Duration::ZERO, &mut found).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(
        server.value(2, SourceKind::Settings, Signal::LinkSpeed, None),
        400_000
    );

    let what = [
        (2, SourceKind::Link, Signal::LinkCarrierDown, None),
        (2, SourceKind::Link, Signal::LinkCarrierUp, None),
        (2, SourceKind::Ethtool, Signal::LinkDownEvents, None),
        rdma(2, Signal::RoceAckTimeout),
        rdma(2, Signal::RoceRxOutOfSequence),
        (3, SourceKind::Link, Signal::LinkCarrierDown, None),
    ];
    let grown = server.grows(11.5, 20.0, &what);
    assert_eq!(grown[..3], [2, 2, 2], "the two flaps that are left");
    assert!(grown[3] > 0 && grown[4] > 0, "{grown:?}");
    assert_eq!(grown[5], 0);
}

#[test]
fn a_slow_receiver_runs_out_of_buffers_where_nothing_is_paused() {
    let server = Server::new(Scenario::SlowReceiver);
    let on = |signal, index| (6, SourceKind::Ethtool, signal, index);
    let what = [
        rdma(6, Signal::RoceRxNoWqe),
        on(Signal::DropRxNoBuffer, None),
        on(Signal::DropRxNoBuffer, Some(Index::Priority(0))),
        on(Signal::DropRxNoBuffer, RDMA),
        rdma(5, Signal::RoceRxNoWqe),
    ];
    let grown = server.grows(10.0, 40.0, &what);
    assert!(grown[0] > 100 && grown[1] > 100, "{grown:?}");
    assert_eq!(grown[1], grown[2], "what has no pause is dropped");
    assert_eq!(grown[3], 0, "what has is not");
    assert_eq!(grown[4], 0, "another rail");
}

#[test]
fn a_bad_cable_damages_one_port_and_every_layer_tells() {
    let server = Server::new(Scenario::BadCable);
    let on = |rail, signal| (rail, SourceKind::Ethtool, signal, None);
    let what = [
        on(7, Signal::FecCorrectedBits),
        (7, SourceKind::Settings, Signal::FecUncorrectableBlocks, None),
        on(7, Signal::LinkRxCrcErrors),
        rdma(7, Signal::RoceRxIcrcErrors),
        rdma(7, Signal::RoceRxOutOfSequence),
        rdma(7, Signal::RoceRxNakSequence),
        rdma(7, Signal::RoceAckTimeout),
        on(0, Signal::LinkRxCrcErrors),
        rdma(0, Signal::RoceRxOutOfSequence),
    ];
    let grown = server.grows(0.0, 60.0, &what);
    // 1e-4 of 400 Gb/s, and one of a million of 73.5 million code words a second.
    assert!(grown[0].abs_diff(2_400_000_000) < 100_000_000, "{grown:?}");
    assert!(grown[1].abs_diff(4_411) < 10, "{grown:?}");
    assert!(grown[2..7].iter().all(|grown| *grown > 0), "{grown:?}");
    assert!(
        grown[2] < grown[1],
        "an idle line has code words, but no frames: {grown:?}"
    );
    assert_eq!(grown[7..], [0, 0]);
}

#[test]
fn without_ecn_the_pauses_are_long_and_nothing_is_marked() {
    let server = Server::new(Scenario::EcnOff);
    let what = [
        pause(3, Signal::PfcRxPauseDuration),
        rdma(3, Signal::EcnRxCe),
        rdma(3, Signal::CnpTx),
        rdma(3, Signal::CnpRxHandled),
        pause(2, Signal::PfcRxPauseDuration),
    ];
    let unmarked = server.grows(0.0, 60.0, &what);
    let marked = Server::new(Scenario::Incast).grows(0.0, 60.0, &what);
    assert!(
        unmarked[0] > 5 * marked[0],
        "{} us of pause, {} with ECN",
        unmarked[0],
        marked[0]
    );
    assert_eq!(unmarked[1..], [0, 0, 0, 0]);
}

#[test]
fn ignored_cnps_are_counted_and_change_nothing() {
    let what = [
        rdma(3, Signal::CnpRxIgnored),
        rdma(3, Signal::CnpRxHandled),
        pause(3, Signal::PfcRxPauseDuration),
    ];
    let ignored = Server::new(Scenario::CnpIgnored).grows(0.0, 60.0, &what);
    let heeded = Server::new(Scenario::Incast).grows(0.0, 60.0, &what);
    assert!(
        ignored[0] > heeded[1] && ignored[1] == 0,
        "{ignored:?} {heeded:?}"
    );
    assert_eq!(heeded[0], 0);
    assert!(
        ignored[2] > 0,
        "the sender keeps its rate, so the switch stops it"
    );
}

#[test]
fn pfc_on_all_priorities_stops_them_together() {
    let server = Server::new(Scenario::PfcAllPriorities);
    let on = |priority| {
        (
            3,
            SourceKind::Ethtool,
            Signal::PfcRxPauseDuration,
            Some(Index::Priority(priority)),
        )
    };
    let what: Vec<_> = (0..8).map(on).collect();
    let grown = server.grows(0.0, 30.0, &what);
    assert!(
        grown[0] > 0 && grown.iter().all(|each| *each == grown[0]),
        "{grown:?}"
    );
    assert_eq!(
        server.value(0, SourceKind::Dcb, Signal::ConfigPfcEnabled, None),
        0xff
    );
}

#[test]
fn an_uneven_job_moves_four_times_as_much_on_even_rails() {
    let server = Server::new(Scenario::RailImbalance);
    let what: Vec<_> = (0..RAILS)
        .map(|rail| (rail, SourceKind::Ethtool, Signal::BytesTx, RDMA))
        .collect();
    let sent = server.grows(0.0, 60.0, &what);
    for pair in sent.chunks(2) {
        let ratio = pair[0] as f64 / pair[1] as f64;
        assert!((3.2..4.2).contains(&ratio), "{sent:?}");
    }
}

#[test]
fn half_of_the_lanes_carry_half() {
    let server = Server::new(Scenario::SpeedDowngrade);
    let setting = |rail, signal| server.value(rail, SourceKind::Settings, signal, None);
    assert_eq!(
        [1, 2].map(|rail| setting(rail, Signal::LinkSpeed)),
        [200_000, 400_000]
    );
    assert_eq!([1, 2].map(|rail| setting(rail, Signal::LinkLanes)), [2, 4]);
    let what = [(1, SourceKind::Ethtool, Signal::BytesTx, None)];
    let shares = (0..200_u32).map(|i| {
        let from = f64::from(i) * 0.02;
        server.grows(from, from + 0.02, &what)[0] as f64 / (50e9 * 0.02)
    });
    let peak = shares.fold(0.0, f64::max);
    assert!((0.4..=0.5).contains(&peak), "{peak} of the line");
}

#[test]
fn light_arrives_on_each_lane_of_a_good_cable() {
    let received = |scenario, rail, at| {
        let server = Server::new(scenario);
        server.pass(at);
        (0..4_u8).map(move |lane| {
            server.value(
                rail,
                SourceKind::Module,
                Signal::ModuleRxPower,
                Some(Index::Lane(lane)),
            )
        })
    };
    let well = received(Scenario::Healthy, 7, 1.0).collect::<Vec<_>>();
    assert!(
        well.iter()
            .all(|nanowatts| (800_000..900_000).contains(nanowatts)),
        "{well:?}"
    );
    let weak = received(Scenario::BadCable, 7, 1.0);
    assert!(weak.zip(&well).all(|(weak, well)| weak == well / 8));
    let lost = received(Scenario::SpeedDowngrade, 1, 1.0).collect::<Vec<_>>();
    assert_eq!(lost, [well[0], well[1], 0, 0]);
    assert!(received(Scenario::LinkFlap, 2, 10.5).all(|nanowatts| nanowatts == 0));
}

#[test]
fn a_reset_begins_at_zero_with_a_new_rdma_device() {
    let server = Server::new(Scenario::CounterReset);
    let mut changes = server.host.changes().unwrap();
    let mut found = Vec::new();
    let port = |server: &Server| server.host.ports().unwrap()[4].clone();
    let mut ethtool = server.source(4, SourceKind::Ethtool);
    let mut before = server.source(4, SourceKind::HwCounters);
    let mut row = vec![0; 1_000];
    let old = port(&server);

    server.at(21.0);
    let reason = |read| match read {
        Read::Missing(why) => why.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(ethtool.read(&mut row)), "ENODEV");
    assert!(matches!(
        server.host.open(&old, SourceKind::HwCounters),
        Opened::Failed(why) if why.reason == "ENODEV"
    ));
    assert_eq!(server.value(4, SourceKind::Link, Signal::LinkUp, None), 0);

    server.at(22.1);
    changes.wait(Duration::ZERO, &mut found).unwrap();
    let ifindex = old.ifindex.unwrap();
    assert_eq!(found, [Change::Link { ifindex }, Change::Devices]);
    assert_eq!(reason(before.read(&mut row)), "ENODEV", "that device is gone");
    assert_eq!(ethtool.read(&mut row), Read::Row, "the netdev stayed");
    let new = port(&server);
    assert_eq!(new.ifindex, old.ifindex);
    assert_ne!(new.rdma_index, old.rdma_index);
    let sent = server.value(4, SourceKind::Ethtool, Signal::BytesTx, None);
    assert!(sent < 5_000_000_000, "no more than 0.1 s of the line: {sent}");
    assert_eq!(
        server.value(4, SourceKind::Link, Signal::LinkCarrierDown, None),
        2
    );
}

#[test]
fn a_recovery_begins_at_zero_and_changes_nothing_else() {
    let server = Server::new(Scenario::CounterReset);
    server.pass(44.9);
    let mut changes = server.host.changes().unwrap();
    let mut sources = [SourceKind::Ethtool, SourceKind::HwCounters].map(|kind| server.source(4, kind));
    let ports = server.host.ports().unwrap();
    let mut sum = || {
        sources.each_mut().map(|source| {
            let mut row = vec![0; source.schema().columns.len()];
            assert_eq!(source.read(&mut row), Read::Row);
            row.into_iter().filter(|value| *value != ABSENT).sum::<u64>()
        })
    };
    let before = sum();
    server.pass(45.1);
    let after = sum();
    assert!(
        after[0] < before[0] && after[1] < before[1],
        "{before:?} {after:?}"
    );
    assert_eq!(server.host.ports().unwrap(), ports);
    let mut found = Vec::new();
    changes.wait(Duration::ZERO, &mut found).unwrap();
    assert_eq!(found, []);
}

#[test]
fn a_stuck_firmware_answers_the_same_and_then_not_at_all() {
    let server = Server::new(Scenario::StuckFirmware);
    let mut stuck = server.source(4, SourceKind::HwCounters);
    let mut read = |seconds| {
        server.pass(seconds);
        let mut row = vec![0; stuck.schema().columns.len()];
        assert_eq!(stuck.read(&mut row), Read::Row);
        row
    };
    assert_ne!(read(5.0), read(9.0));
    assert_eq!(read(11.0), read(29.0));
    assert_ne!(read(29.0), read(31.0));

    let mut ethtool = server.source(4, SourceKind::Ethtool);
    let mut row = vec![0; ethtool.schema().columns.len()];
    server.pass(36.0);
    let failed = ethtool.read(&mut row);
    assert!(
        matches!(&failed, Read::Missing(why) if why.reason == "EIO"),
        "{failed:?}"
    );
    assert_ne!(read(36.0), read(40.0), "the other source goes on");
    server.pass(46.0);
    assert_eq!(ethtool.read(&mut row), Read::Row);
}

#[test]
fn the_tour_shows_each_in_its_turn() {
    let server = Server::new(Scenario::Tour);
    let what = [
        rdma(3, Signal::EcnRxCe),
        pause(5, Signal::PfcRxPauseDuration),
        pause(6, Signal::PfcTxPauseDuration),
        (2, SourceKind::Link, Signal::LinkCarrierDown, None),
    ];
    let stages: Vec<Vec<u64>> = (0..5)
        .map(|stage| server.grows(f64::from(stage) * 30.0, f64::from(stage) * 30.0 + 30.0, &what))
        .collect();
    assert!(stages[0][0] < 5_000 && stages[0][1..] == [0, 0, 0], "{stages:?}");
    assert!(
        stages[1][0] > 100_000 && stages[1][1..] == [0, 0, 0],
        "{stages:?}"
    );
    assert!(
        stages[2][1] >= 19_990_000 && stages[2][2..] == [0, 0],
        "{stages:?}"
    );
    assert!(
        stages[3][2] > 3_000_000 && [stages[3][1], stages[3][3]] == [0, 0],
        "{stages:?}"
    );
    assert!(stages[4][1..] == [0, 0, 3], "{stages:?}");
}

#[test]
fn the_server_is_eight_rails_of_a_real_kind_and_says_that_it_is_not() {
    let server = Server::new(Scenario::Healthy);
    let ports = server.host.ports().unwrap();
    assert_eq!(ports.len(), RAILS);
    for (rail, port) in ports.iter().enumerate() {
        assert_eq!(port.device, format!("mlx5_{rail}"));
        assert!(port.firmware.as_deref().unwrap().contains("(simulated)"));
        assert_eq!(port.numa_node, Some(u32::from(rail >= 4)));
        assert_eq!(port.gids.len(), 4);
        let gpus = ports.iter().filter(|other| other.gpu == port.gpu).count();
        assert_eq!(gpus, 1, "a GPU of its own");
    }
}

#[test]
fn the_columns_are_those_of_one_lossless_priority() {
    let server = Server::new(Scenario::Healthy);
    let columns = |kind| server.source(0, kind).schema().columns.clone();
    let on = |signal| {
        let columns = columns(SourceKind::Ethtool);
        columns
            .iter()
            .filter(|c| c.meaning.unwrap().signal() == signal)
            .map(|c| c.meaning.unwrap().index)
            .collect::<Vec<_>>()
    };
    assert_eq!(on(Signal::PfcRxPauseDuration), [RDMA]);
    assert_eq!(on(Signal::PfcTxFrames), [RDMA]);
    assert_eq!(on(Signal::LinkRxLaneErrors).len(), 4);
    assert_eq!(on(Signal::PauseRxPauseDuration), []);
    assert_eq!(
        columns(SourceKind::HwCounters).len(),
        31,
        "as counted on Linux 6.12"
    );
    assert!(columns(SourceKind::Dcb).len() > 90);
    let Opened::NotApplicable(why) = server
        .host
        .open(&server.host.ports().unwrap()[0], SourceKind::DeviceCounters)
    else {
        panic!("mlx5 has no counters of the device outside switchdev")
    };
    assert_eq!(why.reason, "not_on_this_driver");
}
