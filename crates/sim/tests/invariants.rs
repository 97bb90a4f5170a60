//! What must hold of the simulated counters whatever happens: physics, the rules of ECN and PFC, and the widths.

mod support;

use catalog::{Index, Kind, Signal};
use model::{ABSENT, Host, SourceKind};
use proptest::prelude::*;
use sim::{Nic, Scenario, Setup, Simulator, Speed};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::{Bench, CNP, LINE, PFC_HOLD, RDMA, Reader, Snapshot, setup};

/// Eight senders of four queue pairs each converge on a rail at most.
const FLOWS: f64 = 32.0;

/// Two looks at a port, some time apart.
struct Window<'a> {
    setup: Setup,
    reader: &'a Reader,
    before: &'a Snapshot,
    after: &'a Snapshot,
    seconds: f64,
}

impl Window<'_> {
    fn grew(&self, signal: Signal, index: Option<Index>) -> Option<f64> {
        self.reader.grew(self.before, self.after, signal, index)
    }

    /// For how long a counter that is shown late may have counted unseen.
    fn late(&self) -> f64 {
        match (self.setup.scenario, self.setup.nic) {
            (Scenario::StuckFirmware, _) => 21.0,
            // It looks once a second while the link is up: what came before the carrier went shows with what came after.
            (Scenario::LinkFlap | Scenario::Tour, Nic::Bnxt) => 2.0 + self.step(),
            (_, Nic::Bnxt) => 1.0,
            _ => 0.0,
        }
    }

    /// How long a step of the model stands for.
    fn step(&self) -> f64 {
        f64::from(self.setup.speed.get().div_ceil(60)) / 1e3
    }

    /// The seconds in which all that has grown can have happened: a read sees the model at its last full step, up to one
    /// ago at either end.
    fn window(&self) -> f64 {
        self.seconds + self.late() + self.step()
    }

    /// Whether the firmware may answer one source as of now and another as of before.
    fn is_torn(&self) -> bool {
        self.setup.scenario == Scenario::StuckFirmware
    }

    fn assert_plausible(&self) {
        self.assert_monotonic();
        for way in [WAYS.0, WAYS.1] {
            self.assert_conserved(way);
        }
        self.assert_pauses();
        self.assert_congestion_control();
    }

    /// No counter goes back, except by a wrap of 32 bits, and none is wider than the catalogue says.
    fn assert_monotonic(&self) {
        for (kind, source) in &self.reader.sources {
            let (Some(old), Some(new)) = (self.before.0.get(kind), self.after.0.get(kind)) else {
                continue;
            };
            for ((column, old), new) in source.schema().columns.iter().zip(old).zip(new) {
                let entry = column.meaning.expect("the catalogue knows every column").entry;
                if *new == ABSENT {
                    continue;
                }
                assert!(
                    entry.width.extended || *new <= entry.width.max(),
                    "{} is {new}, wider than it is",
                    column.name
                );
                let wrapped = entry.width.bits == 32 && *old > 1 << 31 && *new < 1 << 31;
                let reset = self.setup.scenario == Scenario::CounterReset && *kind != SourceKind::Link;
                assert!(
                    entry.kind != Kind::Counter || new >= old || wrapped || reset,
                    "{} went from {old} to {new}",
                    column.name
                );
            }
        }
    }

    /// What a port carries is what its classes carry, and no more than the line.
    fn assert_conserved(&self, way: Way) {
        let all = |signal| {
            (0..8)
                .map(|class| self.grew(signal, Some(Index::Priority(class))))
                .sum::<Option<f64>>()
        };
        if let (Some(bytes), Some(packets)) = (self.grew(way.bytes, None), self.grew(way.packets, None)) {
            let wire = bytes + 20.0 * packets;
            assert!(
                wire <= LINE * self.window(),
                "{wire} bytes on the wire in {} s",
                self.window()
            );
            if let (Some(classes), Some(pauses)) = (all(way.bytes), self.grew(way.pauses, RDMA)) {
                let sum = classes + 64.0 * pauses;
                assert!(
                    (bytes - sum).abs() <= 80.0,
                    "port {bytes}, classes and pauses {sum}"
                );
            }
        }
        let roce = |signal| Some(self.grew(signal, RDMA)? + self.grew(signal, CNP)?);
        if let (Some(frames), Some(rdma)) = (roce(way.packets), self.grew(way.rdma_packets, None)) {
            assert!(
                self.is_torn() || (frames - rdma).abs() < 4.0,
                "{frames} frames, {rdma} packets"
            );
        }
        if let (Some(bytes), Some(frames)) = (self.grew(way.bytes, RDMA), self.grew(way.packets, RDMA)) {
            assert!(bytes <= 4158.0 * (frames + 1.0), "frames above the path MTU");
        }
        if let (Some(bytes), Some(frames)) = (roce(way.bytes), roce(way.packets))
            && let Some(rdma) = self.grew(way.rdma_bytes, None)
        {
            let uncounted = 4.0 * frames;
            assert!(
                self.is_torn() || (bytes - uncounted - rdma).abs() < 16.0,
                "{bytes} bytes of frames, {rdma} of RDMA"
            );
        }
    }

    fn assert_pauses(&self) {
        for duration in [Signal::PfcRxPauseDuration, Signal::PfcTxPauseDuration] {
            let paused = self.grew(duration, RDMA).unwrap_or(0.0);
            assert!(
                paused <= self.window() * 1e6,
                "{duration}: {paused} us in {} s",
                self.window()
            );
        }
        if let (Some(paused), Some(sent)) = (
            self.grew(Signal::PfcRxPauseDuration, RDMA),
            self.grew(Signal::BytesTx, RDMA),
        ) {
            let paused = paused / 1e6;
            assert!(sent <= LINE * (self.window() - paused) + 1e5, "sent while paused");
        }
        if let (Some(paused), Some(frames), Some(episodes)) = (
            self.grew(Signal::PfcRxPauseDuration, RDMA),
            self.grew(Signal::PfcRxFrames, RDMA),
            self.grew(Signal::PfcRxTransitions, RDMA),
        ) {
            assert!(
                frames >= (paused / 1e6 / PFC_HOLD).floor() - 1.0,
                "pauses without refresh"
            );
            assert!(episodes <= frames / 2.0 + 1.0);
        }
    }

    fn assert_congestion_control(&self) {
        let flows = |flows: f64| flows * self.window() / 50e-6 + 1.0;
        if let (Some(marked), Some(sent)) = (self.grew(Signal::EcnRxCe, None), self.grew(Signal::CnpTx, None))
        {
            assert!(sent <= marked + 1.0, "{sent} CNPs for {marked} marks");
            assert!(sent <= flows(FLOWS), "{sent} CNPs in {} s", self.window());
            let packets = self.grew(Signal::PacketsRxRdma, None);
            assert!(packets.is_none_or(|packets| self.is_torn() || marked <= packets + 1.0));
            let frames = self.grew(Signal::PacketsTx, CNP);
            assert!(frames.is_none_or(|frames| self.is_torn() || (frames - sent).abs() <= 1.0));
        }
        let split = || Some(self.grew(Signal::CnpRxHandled, None)? + self.grew(Signal::CnpRxIgnored, None)?);
        if let Some(received) = self.grew(Signal::CnpRx, None).or_else(split) {
            assert!(received <= flows(4.0), "{received} CNPs for four flows");
            let frames = self.grew(Signal::PacketsRx, CNP);
            assert!(frames.is_none_or(|frames| self.is_torn() || (frames - received).abs() <= 2.0));
        }
    }
}

/// The signals of one direction.
#[derive(Clone, Copy)]
struct Way {
    bytes: Signal,
    packets: Signal,
    rdma_bytes: Signal,
    rdma_packets: Signal,
    pauses: Signal,
}

const WAYS: (Way, Way) = (
    Way {
        bytes: Signal::BytesTx,
        packets: Signal::PacketsTx,
        rdma_bytes: Signal::BytesTxRdma,
        rdma_packets: Signal::PacketsTxRdma,
        pauses: Signal::PfcTxFrames,
    },
    Way {
        bytes: Signal::BytesRx,
        packets: Signal::PacketsRx,
        rdma_bytes: Signal::BytesRxRdma,
        rdma_packets: Signal::PacketsRxRdma,
        pauses: Signal::PfcRxFrames,
    },
);

fn scenarios() -> impl Strategy<Value = Scenario> {
    prop::sample::select(&Scenario::ALL[..])
}

fn nics() -> impl Strategy<Value = Nic> {
    prop::sample::select(&Nic::ALL[..])
}

/// Reads a server ten times a second, and looks at each window and at the whole.
fn play(setup: Setup, seconds: u32) {
    let bench = Bench::new(setup);
    let mut readers = bench.readers();
    let mut before: Vec<Snapshot> = readers.iter_mut().map(Reader::read).collect();
    let first = before.clone();
    for _ in 0..seconds * 10 {
        bench.clock.advance(Duration::from_millis(100));
        for (reader, before) in readers.iter_mut().zip(&mut before) {
            let after = reader.read();
            let window = Window {
                setup,
                reader,
                before,
                after: &after,
                seconds: 0.1,
            };
            window.assert_plausible();
            *before = after;
        }
    }
    for ((reader, before), after) in readers.iter().zip(&first).zip(&before) {
        let window = Window {
            setup,
            reader,
            before,
            after,
            seconds: f64::from(seconds),
        };
        window.assert_plausible();
    }
}

#[test]
fn every_scenario_is_plausible_on_every_nic() {
    for (i, scenario) in (1..).zip(Scenario::ALL) {
        for (nic, ports) in Nic::ALL.into_iter().zip([3, 2, 1, 2]) {
            play(setup(scenario, i, nic, ports), 40);
        }
    }
}

#[test]
fn what_bnxt_counts_around_a_loss_of_the_carrier_shows_at_once() {
    // Its seconds end 0.9 s before the loss, twice during it, and 0.9 s behind it.
    let speed = Speed::new(2616).unwrap();
    let setup = setup(Scenario::LinkFlap, 8_004_855_912_478_428_422, Nic::Bnxt, 2);
    play(Setup { speed, ..setup }, 120);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_minutes_are_plausible(scenario in scenarios(), nic in nics(), seed: u64, ports in 1..=9_u8) {
        play(setup(scenario, seed, nic, ports), 120);
    }

    #[test]
    fn a_fast_server_is_as_plausible(
        scenario in scenarios(),
        nic in nics(),
        seed: u64,
        speed in 1..=Speed::MOST,
    ) {
        let speed = Speed::new(speed).unwrap();
        play(Setup { speed, ..setup(scenario, seed, nic, 2) }, 120);
    }

    #[test]
    fn a_server_is_the_same_however_often_it_is_read(
        scenario in scenarios(),
        nic in nics(),
        seed: u64,
        ports in 1..=64_u8,
        speed in 1..=600_u32,
        reads in prop::collection::btree_set(1..40_000_u64, 0..200),
    ) {
        let speed = Speed::new(speed).unwrap();
        let setup = Setup { speed, ..setup(scenario, seed, nic, ports) };
        let (often, once) = (Bench::new(setup), Bench::new(setup));
        let mut readers = often.readers();
        let mut untouched = once.readers();
        // Pauses above ten seconds are played in longer steps and are left out here.
        let tens = [10_000, 20_000, 30_000, 40_000];
        let reads: BTreeSet<u64> = reads.into_iter().chain(tens).collect();
        let go = |bench: &Bench, milliseconds: u64| {
            bench.clock.advance(Duration::from_nanos(milliseconds * 1_000_000 - bench.clock.now()));
        };
        for (i, time) in reads.into_iter().enumerate() {
            go(&often, time);
            let rail = i % readers.len();
            readers[rail].read();
        }
        for time in tens {
            go(&once, time);
            once.host.ports().unwrap();
        }
        for (reader, untouched) in readers.iter_mut().zip(&mut untouched) {
            prop_assert_eq!(reader.read(), untouched.read());
        }
    }

    #[test]
    fn a_long_pause_is_bounded_and_plausible(
        scenario in scenarios(),
        nic in nics(),
        seed: u64,
        hours in 0.01..48.0,
    ) {
        let setup = setup(scenario, seed, nic, 4);
        let bench = Bench::new(setup);
        let mut readers = bench.readers();
        let before: Vec<Snapshot> = readers.iter_mut().map(Reader::read).collect();
        bench.clock.advance(Duration::from_secs_f64(hours * 3600.0));
        for (reader, before) in readers.iter_mut().zip(&before) {
            let after = &reader.read();
            let seconds = hours * 3600.0;
            // In two days a 32-bit counter may come round, which no single look can tell.
            if hours < 1.0 {
                Window { setup, reader, before, after, seconds }.assert_plausible();
            }
            if let Some(sent) = reader.grew(before, after, Signal::BytesTx, None) {
                prop_assert!(sent > 0.0 && sent <= LINE * (seconds + 1.0));
            }
        }
    }
}

#[test]
fn the_first_rail_wraps_its_requests_within_minutes() {
    let bench = Bench::new(Setup::new(Scenario::Healthy, 5));
    let mut reader = bench.reader(0);
    let requests = |reader: &mut Reader| {
        let snapshot = reader.read();
        reader
            .value(&snapshot, Signal::RoceRxWriteRequests, None)
            .unwrap()
    };
    assert!(requests(&mut reader) > 4_000_000_000);
    bench.pass(180.0);
    assert!(requests(&mut reader) < 1_000_000_000);
}

#[test]
fn a_clock_that_goes_back_changes_nothing() {
    let time = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&time);
    let host = Simulator::new(Scenario::Healthy, 3, move || clock.load(Ordering::Relaxed));
    time.store(5_000_000_000, Ordering::Relaxed);
    let later = host.sysfs();
    time.store(1_000_000_000, Ordering::Relaxed);
    assert_eq!(host.sysfs(), later);
}

#[test]
fn seeds_differ() {
    let read = |seed| Bench::new(Setup::new(Scenario::Healthy, seed)).reader(0).read();
    assert_ne!(read(1), read(2));
    assert_eq!(read(1), read(1));
}
