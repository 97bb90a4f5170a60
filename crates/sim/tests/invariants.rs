//! What must hold of the simulated counters whatever happens: physics, the rules of ECN and PFC, and the widths.

use catalog::{Index, Signal};
use model::{ABSENT, Host, Opened, Port, Read, Source, SourceKind};
use proptest::prelude::*;
use sim::{Scenario, Simulator};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const RDMA: Option<Index> = Some(Index::Priority(3));
const CNP: Option<Index> = Some(Index::Priority(6));
/// 400 Gb/s.
const LINE: f64 = 50e9;
/// Eight senders of four queue pairs each converge on a rail at most.
const FLOWS: f64 = 32.0;

/// A server on a clock that stands still until it is set.
struct Bench {
    time: Arc<AtomicU64>,
    host: Simulator,
    ports: Vec<Port>,
}

/// Everything that one port tells at an instant.
#[derive(Clone, Debug, PartialEq)]
struct Snapshot(BTreeMap<SourceKind, Vec<u64>>);

/// The sources of one port, and the column of each signal: the only one, or the only one that moves.
struct Reader {
    sources: BTreeMap<SourceKind, Box<dyn Source>>,
    columns: BTreeMap<(SourceKind, Signal, Option<Index>), usize>,
}

impl Bench {
    fn new(scenario: Scenario, seed: u64) -> Self {
        let time = Arc::new(AtomicU64::new(77));
        let clock = Arc::clone(&time);
        let host = Simulator::new(scenario, seed, move || clock.load(Ordering::Relaxed));
        let ports = host.ports().unwrap();
        Self { time, host, ports }
    }

    fn at(&self, nanoseconds: u64) {
        self.time.store(77 + nanoseconds, Ordering::Relaxed);
    }

    fn reader(&self, rail: usize) -> Reader {
        let open = |kind| match self.host.open(&self.ports[rail], kind) {
            Opened::Active(source) => Some((kind, source)),
            Opened::NotApplicable(_) => None,
            Opened::Failed(why) => panic!("{kind}: {why}"),
        };
        let sources: BTreeMap<_, _> = SourceKind::ALL.into_iter().filter_map(open).collect();
        let mut columns = BTreeMap::new();
        for (kind, source) in &sources {
            for (i, column) in source.schema().columns.iter().enumerate() {
                let meaning = column.meaning.expect("the catalogue knows every column");
                columns
                    .entry((*kind, meaning.signal(), meaning.index))
                    .or_insert(i);
            }
        }
        Reader { sources, columns }
    }

    fn readers(&self) -> Vec<Reader> {
        (0..self.ports.len()).map(|rail| self.reader(rail)).collect()
    }
}

impl Reader {
    fn read(&mut self) -> Snapshot {
        let read = |(kind, source): (&SourceKind, &mut Box<dyn Source>)| {
            let mut row = vec![0; source.schema().columns.len()];
            assert_eq!(source.read(&mut row), Read::Row);
            (*kind, row)
        };
        Snapshot(self.sources.iter_mut().map(read).collect())
    }

    fn value(&self, snapshot: &Snapshot, kind: SourceKind, signal: Signal, index: Option<Index>) -> u64 {
        snapshot.0[&kind][self.columns[&(kind, signal, index)]]
    }

    fn ethtool(&self, snapshot: &Snapshot, signal: Signal, index: Option<Index>) -> u64 {
        self.value(snapshot, SourceKind::Ethtool, signal, index)
    }

    fn rdma(&self, snapshot: &Snapshot, signal: Signal) -> u64 {
        self.value(snapshot, SourceKind::HwCounters, signal, None)
    }

    /// No counter goes back, except by a wrap of 32 bits, and none is wider than the catalogue says.
    fn assert_monotonic(&self, before: &Snapshot, after: &Snapshot) {
        for (kind, source) in &self.sources {
            for (i, column) in source.schema().columns.iter().enumerate() {
                let entry = column.meaning.expect("the catalogue knows every column").entry;
                let (old, new) = (before.0[kind][i], after.0[kind][i]);
                if new == ABSENT {
                    continue;
                }
                assert!(
                    entry.width.extended || new <= entry.width.max(),
                    "{} is {new}, wider than it is",
                    column.name
                );
                let wrapped = entry.width.bits == 32 && old > 1 << 31 && new < 1 << 31;
                let counts = entry.kind == catalog::Kind::Counter;
                assert!(
                    !counts || new >= old || wrapped,
                    "{} went from {old} to {new}",
                    column.name
                );
            }
        }
    }

    fn assert_plausible(&self, before: &Snapshot, after: &Snapshot, seconds: f64) {
        self.assert_monotonic(before, after);
        let grew =
            |signal, index| (self.ethtool(after, signal, index) - self.ethtool(before, signal, index)) as f64;
        let rdma = |signal| (self.rdma(after, signal) - self.rdma(before, signal)) as f64;
        // A read sees the model at its last full step, up to a millisecond ago at either end.
        let window = seconds + 1e-3;

        let ways = [
            (
                Signal::BytesTx,
                Signal::PacketsTx,
                Signal::BytesTxRdma,
                Signal::PacketsTxRdma,
            ),
            (
                Signal::BytesRx,
                Signal::PacketsRx,
                Signal::BytesRxRdma,
                Signal::PacketsRxRdma,
            ),
        ];
        for (bytes, packets, rdma_bytes, rdma_packets) in ways {
            let wire = grew(bytes, None) + 20.0 * grew(packets, None);
            assert!(wire <= LINE * window, "{wire} bytes on the wire in {window} s");
            let classes = (0..8).map(|p| grew(bytes, Some(Index::Priority(p)))).sum::<f64>();
            assert!(
                grew(bytes, None) >= classes - 8.0,
                "{bytes}: port {} < classes {classes}",
                grew(bytes, None)
            );
            let roce = grew(bytes, RDMA) + grew(bytes, CNP);
            let frames = grew(packets, RDMA) + grew(packets, CNP);
            assert!(
                (roce - 4.0 * frames - grew(rdma_bytes, None)).abs() < 16.0,
                "{rdma_bytes}"
            );
            assert!((frames - grew(rdma_packets, None)).abs() < 4.0, "{rdma_packets}");
            assert!(
                grew(bytes, RDMA) <= 4158.0 * (grew(packets, RDMA) + 1.0),
                "frames above the path MTU"
            );
        }

        for duration in [Signal::PfcRxPauseDuration, Signal::PfcTxPauseDuration] {
            assert!(
                grew(duration, RDMA) <= window * 1e6,
                "{duration}: {} us in {window} s",
                grew(duration, RDMA)
            );
        }
        let paused = grew(Signal::PfcRxPauseDuration, RDMA) / 1e6;
        assert!(
            grew(Signal::BytesTx, RDMA) <= LINE * (window - paused) + 1e5,
            "sent while paused"
        );
        assert!(
            grew(Signal::PfcRxFrames, RDMA) >= (paused / 83.9e-6).floor() - 1.0,
            "pauses without refresh"
        );
        assert!(grew(Signal::PfcRxTransitions, RDMA) <= grew(Signal::PfcRxFrames, RDMA) / 2.0 + 1.0);

        let (marked, sent, handled) = (
            rdma(Signal::EcnRxCe),
            rdma(Signal::CnpTx),
            rdma(Signal::CnpRxHandled),
        );
        assert!(sent <= marked + 1.0, "{sent} CNPs for {marked} marks");
        assert!(sent <= FLOWS * window / 50e-6 + 1.0, "{sent} CNPs in {window} s");
        assert!(
            handled <= 4.0 * window / 50e-6 + 1.0,
            "{handled} CNPs for four flows in {window} s"
        );
        assert!(marked <= grew(Signal::PacketsRxRdma, None) + 1.0);
        assert!((grew(Signal::PacketsTx, CNP) - sent).abs() <= 1.0);
        assert!((grew(Signal::PacketsRx, CNP) - handled).abs() <= 1.0);
    }
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    prop::sample::select(&Scenario::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn three_minutes_are_plausible(scenario in scenarios(), seed: u64) {
        let bench = Bench::new(scenario, seed);
        let mut readers = bench.readers();
        let mut before: Vec<Snapshot> = readers.iter_mut().map(Reader::read).collect();
        let first = before.clone();
        for step in 1..=1800_u64 {
            bench.at(step * 100 * MILLISECOND);
            for (reader, before) in readers.iter_mut().zip(&mut before) {
                let after = reader.read();
                reader.assert_plausible(before, &after, 0.1);
                *before = after;
            }
        }
        for ((reader, first), last) in readers.iter().zip(&first).zip(&before) {
            reader.assert_plausible(first, last, 180.0);
            prop_assert!(reader.rdma(last, Signal::CnpTx) <= reader.rdma(last, Signal::EcnRxCe));
            let pauses = [Signal::PfcRxFrames, Signal::PfcTxFrames].map(|signal| reader.ethtool(last, signal, RDMA));
            prop_assert!(scenario != Scenario::Healthy || pauses == [0, 0], "a healthy fabric paused: {pauses:?}");
        }
        // The counter of requests of the first rail stands just before its wrap at the beginning.
        let requests = |snapshot| readers[0].rdma(snapshot, Signal::RoceRxWriteRequests);
        prop_assert!(requests(&first[0]) > 4_000_000_000 && requests(&before[0]) < 1_000_000_000);
    }

    #[test]
    fn a_server_is_the_same_however_often_it_is_read(
        scenario in scenarios(),
        seed: u64,
        reads in prop::collection::btree_set(1..40_000_000_000_u64, 0..200),
    ) {
        let (often, once) = (Bench::new(scenario, seed), Bench::new(scenario, seed));
        let mut readers = often.readers();
        // Pauses above ten seconds are played in longer steps and are left out here.
        let tens = [10, 20, 30, 40].map(|seconds| seconds * SECOND);
        let reads: std::collections::BTreeSet<u64> = reads.into_iter().chain(tens).collect();
        for (i, time) in reads.into_iter().enumerate() {
            often.at(time);
            readers[i % 8].read();
        }
        for time in tens {
            once.at(time);
            once.reader(0).read();
        }
        for (rail, reader) in readers.iter_mut().enumerate() {
            prop_assert_eq!(reader.read(), once.reader(rail).read());
        }
    }

    #[test]
    fn a_long_pause_is_bounded_and_plausible(scenario in scenarios(), seed: u64, hours in 0.01..48.0) {
        let bench = Bench::new(scenario, seed);
        let mut readers = bench.readers();
        let before: Vec<Snapshot> = readers.iter_mut().map(Reader::read).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Hours of a test.
        bench.at((hours * 3600e9) as u64);
        for (reader, before) in readers.iter_mut().zip(&before) {
            let after = reader.read();
            // In two days a 32-bit counter may come round, which no single look can tell.
            if hours < 1.0 {
                reader.assert_plausible(before, &after, hours * 3600.0);
            }
            let sent = reader.ethtool(&after, Signal::BytesTx, None) - reader.ethtool(before, Signal::BytesTx, None);
            prop_assert!(sent > 0 && sent as f64 <= LINE * (hours * 3600.0 + 1.0));
        }
    }
}

#[test]
fn a_clock_that_goes_back_changes_nothing() {
    let bench = Bench::new(Scenario::Healthy, 3);
    let mut reader = bench.reader(0);
    bench.at(5 * SECOND);
    let later = reader.read();
    bench.at(SECOND);
    assert_eq!(reader.read(), later);
}

#[test]
fn seeds_differ() {
    let mut rows = [1, 2].map(|seed| Bench::new(Scenario::Healthy, seed).reader(0).read());
    assert_ne!(rows[0], rows[1]);
    rows[1] = Bench::new(Scenario::Healthy, 1).reader(0).read();
    assert_eq!(rows[0], rows[1]);
}
