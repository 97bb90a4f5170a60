//! Each scenario shows its own signature, and no other scenario shows it.

mod support;

use catalog::{Index, Signal};
use model::SourceKind;
use sim::{Nic, Scenario, Setup};
use support::{Bench, PFC_HOLD, RDMA, Reader, Snapshot, setup};

/// How long each is watched, a look a second: every fault that recurs has its turn within a minute.
const SECONDS: u32 = 62;
const OTHER: Option<Index> = Some(Index::Priority(0));

/// What a minute of one port looked like.
#[derive(Debug, Default)]
struct Rail {
    sent: f64,
    last_sent: Option<u64>,
    marked: f64,
    cnps_ignored: f64,
    /// Share of the most paused second without data; from XOFF frames where the driver counts no time.
    most_held: f64,
    /// PFC frames, or microseconds of pause.
    rx_pause: f64,
    tx_pause: f64,
    other_pause: f64,
    no_request: f64,
    discards: f64,
    carrier_lost: f64,
    uncorrectable: f64,
    crc_errors: f64,
    out_of_sequence: f64,
    retransmitted: f64,
    timeouts: f64,
    /// Lowest speed, megabits per second.
    speed: f64,
    /// How often a counter of the port went back.
    resets: u32,
    /// Reads that failed, by source.
    failed: [u32; 2],
    /// Longest time for which RDMA counters stood still, seconds.
    still: u32,
}

fn watch(setup: Setup) -> Vec<Rail> {
    let bench = Bench::new(setup);
    let mut readers = bench.readers();
    let mut rails: Vec<Rail> = readers
        .iter()
        .map(|_| Rail {
            speed: f64::MAX,
            ..Rail::default()
        })
        .collect();
    let mut before: Vec<Snapshot> = readers.iter_mut().map(Reader::read).collect();
    let mut still = vec![0; rails.len()];
    for second in 1..=SECONDS {
        bench.pass(f64::from(second));
        for (i, rail) in rails.iter_mut().enumerate() {
            let after = readers[i].read();
            rail.add(&readers[i], &before[i], &after);
            let hw = |snapshot: &Snapshot| snapshot.0.get(&SourceKind::HwCounters).cloned();
            still[i] = if hw(&after).is_some() && hw(&after) == hw(&before[i]) {
                still[i] + 1
            } else {
                0
            };
            rail.still = rail.still.max(still[i]);
            before[i] = after;
        }
    }
    rails
}

impl Rail {
    fn add(&mut self, reader: &Reader, before: &Snapshot, after: &Snapshot) {
        let grew = |signal, index| reader.grew(before, after, signal, index);
        let of = |signals: &[Signal], index| {
            let mut each = signals.iter();
            each.find_map(|signal| grew(*signal, index)).unwrap_or(0.0)
        };
        let rx = [Signal::PfcRxPauseDuration, Signal::PfcRxXoffFrames];
        let tx = [Signal::PfcTxPauseDuration, Signal::PfcTxXoffFrames];
        let sent = of(&[Signal::BytesTx], None);
        self.sent += sent;
        self.marked += of(&[Signal::EcnRxCe], None);
        self.cnps_ignored += of(&[Signal::CnpRxIgnored], None);
        self.rx_pause += of(&rx, RDMA);
        self.tx_pause += of(&tx, RDMA);
        self.other_pause += of(&rx, OTHER) + of(&tx, OTHER);
        let share = grew(Signal::PfcRxPauseDuration, RDMA)
            .map(|paused| paused / 1e6)
            .or_else(|| grew(Signal::PfcRxXoffFrames, RDMA).map(|frames| frames * PFC_HOLD));
        // No more than management sends: frames alone are an upper bound of the time.
        if sent < 1e6 {
            self.most_held = self.most_held.max(share.unwrap_or(0.0));
        }
        self.no_request += of(&[Signal::RoceRxNoWqe], None);
        self.discards += of(&[Signal::DropRx, Signal::DropRxNoBuffer], None);
        self.carrier_lost += of(&[Signal::LinkCarrierDown], None);
        self.uncorrectable += of(&[Signal::FecUncorrectableBlocks], None);
        self.crc_errors += of(&[Signal::LinkRxCrcErrors], None);
        self.out_of_sequence += of(&[Signal::RoceRxOutOfSequence], None);
        self.retransmitted += of(&[Signal::RoceRetransmits, Signal::RoceRxNakSequence], None);
        self.timeouts += of(&[Signal::RoceAckTimeout], None);
        let speed = reader.value(after, Signal::LinkSpeed, None);
        self.speed = speed.map_or(self.speed, |speed| self.speed.min(speed as f64));
        if let Some(bytes) = reader.of(after, SourceKind::Ethtool, Signal::BytesTx, None) {
            self.resets += u32::from(self.last_sent.is_some_and(|last| bytes < last));
            self.last_sent = Some(bytes);
        }
        for (failed, kind) in self
            .failed
            .iter_mut()
            .zip([SourceKind::Ethtool, SourceKind::HwCounters])
        {
            *failed += u32::from(!after.0.contains_key(&kind));
        }
    }
}

/// The scenarios that what was seen speaks for.
fn recognised(nic: Nic, rails: &[Rail]) -> Vec<Scenario> {
    let sum = |of: fn(&Rail) -> f64| rails.iter().map(of).sum::<f64>();
    let any = |of: &dyn Fn(&Rail) -> bool| rails.iter().any(of);
    let reset = any(&|rail| rail.resets > 0);
    let storm = any(&|rail| rail.most_held >= 0.99);
    let marked = sum(|rail| rail.marked) > 100_000.0;
    let paused = sum(|rail| rail.rx_pause) > 0.0;
    let ignored = sum(|rail| rail.cnps_ignored) > 0.0;
    let elsewhere = sum(|rail| rail.other_pause) > 0.0;
    let (most, mean) = (
        rails.iter().map(|rail| rail.sent).fold(0.0, f64::max),
        sum(|rail| rail.sent) / rails.len() as f64,
    );
    // Lost frames: of these irdma of this generation has no timeouts and no gaps, and ionic no FEC.
    let lost = any(&|rail| {
        rail.crc_errors > 100.0
            && rail.retransmitted > 100.0
            && (rail.uncorrectable > 1_000.0 || nic == Nic::Ionic)
            && (rail.out_of_sequence > 100.0 && rail.timeouts >= 1.0 || nic == Nic::Irdma)
    });
    let slow = any(&|rail| {
        rail.tx_pause > 0.0 && rail.discards > 0.0 && (rail.no_request > 0.0 || nic == Nic::Irdma)
    });
    [
        (Scenario::Incast, marked && paused && !ignored && !elsewhere),
        (Scenario::PfcStorm, storm && !marked),
        (Scenario::SlowReceiver, slow),
        (Scenario::LinkFlap, any(&|rail| rail.carrier_lost >= 3.0)),
        (Scenario::BadCable, lost),
        (
            Scenario::EcnOff,
            paused && !storm && sum(|rail| rail.marked) <= 0.0,
        ),
        (Scenario::CnpIgnored, ignored),
        (Scenario::PfcAllPriorities, elsewhere),
        (Scenario::RailImbalance, most > 1.3 * mean),
        (Scenario::SpeedDowngrade, any(&|rail| rail.speed < 400_000.0)),
        (Scenario::CounterReset, reset && any(&|rail| rail.failed[1] > 2)),
        (
            Scenario::StuckFirmware,
            !reset && any(&|rail| rail.still >= 15 && rail.failed[0] >= 5),
        ),
    ]
    .into_iter()
    .filter_map(|(scenario, seen)| seen.then_some(scenario))
    .collect()
}

fn plays() -> impl Iterator<Item = Scenario> {
    Scenario::ALL
        .into_iter()
        .filter(|scenario| *scenario != Scenario::Tour)
}

/// What a scenario is recognised as on a NIC that tells less than mlx5.
fn expected(scenario: Scenario, nic: Nic) -> Vec<Scenario> {
    match (scenario, nic) {
        (Scenario::Healthy, _) => vec![],
        // These two do not tell handled CNPs from ignored ones.
        (Scenario::CnpIgnored, Nic::Bnxt | Nic::Ionic) => vec![Scenario::Incast],
        _ => vec![scenario],
    }
}

#[test]
fn every_scenario_is_recognised_as_itself_alone() {
    for nic in Nic::ALL {
        for scenario in plays() {
            let rails = watch(setup(scenario, 11, nic, 8));
            assert_eq!(
                recognised(nic, &rails),
                expected(scenario, nic),
                "{scenario} on {nic}: {rails:#?}"
            );
        }
    }
}

#[test]
fn one_port_is_enough_for_all_that_one_port_can_show() {
    for scenario in plays().filter(|scenario| *scenario != Scenario::RailImbalance) {
        let rails = watch(setup(scenario, 12, Nic::Mlx5, 1));
        assert_eq!(
            recognised(Nic::Mlx5, &rails),
            expected(scenario, Nic::Mlx5),
            "{scenario}: {rails:#?}"
        );
    }
}

#[test]
fn a_large_server_shows_them_as_well() {
    for scenario in [Scenario::PfcStorm, Scenario::BadCable, Scenario::RailImbalance] {
        let rails = watch(setup(scenario, 13, Nic::Mlx5, 64));
        assert_eq!(recognised(Nic::Mlx5, &rails), [scenario]);
    }
}

#[test]
fn a_sender_that_ignores_its_cnps_gets_more_of_them() {
    // What tells the two apart where the driver does not.
    let of = |scenario| {
        let bench = Bench::new(setup(scenario, 11, Nic::Bnxt, 8));
        let mut reader = bench.reader(3);
        let before = reader.read();
        bench.pass(60.0);
        let after = reader.read();
        reader.grew(&before, &after, Signal::CnpRx, None).unwrap()
    };
    let (heeded, ignored) = (of(Scenario::Incast), of(Scenario::CnpIgnored));
    assert!(ignored > 1.5 * heeded, "{heeded} CNPs heeded, {ignored} ignored");
}
