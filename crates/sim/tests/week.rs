//! A week of training on a healthy server: no pause, no drop, no error beyond the bits that every link corrects.

mod support;

use catalog::{Kind, Signal};
use sim::{Nic, Scenario, Setup, Speed};
use std::collections::BTreeSet;
use std::time::Duration;
use support::{Bench, LINE, RDMA, setup};

const HOUR: Duration = Duration::from_secs(3_600);
const TEN_MINUTES: Duration = Duration::from_secs(600);
const WEEK: u32 = 7 * 24;

/// What grows in any training: traffic, the marks of rare collisions with their CNPs, and corrected bits.
fn is_background(signal: Signal) -> bool {
    let name = signal.as_str();
    ["bytes.", "packets.", "ecn.rx_ce", "cnp.", "fec.corrected"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || matches!(
            signal,
            Signal::RoceRxWriteRequests
                | Signal::RoceTxWriteRequests
                | Signal::LinkRxLaneErrors
                | Signal::LinkRxBitsTotal
        )
}

#[test]
fn a_healthy_week_is_quiet_on_every_nic() {
    for nic in Nic::ALL {
        let bench = Bench::new(setup(Scenario::Healthy, 21, nic, 1));
        let mut reader = bench.reader(0);
        let first = reader.read();
        let mut before = first.clone();
        let mut grown = BTreeSet::new();
        for _ in 0..WEEK {
            bench.clock.advance(HOUR);
            let after = reader.read();
            for (kind, source) in &reader.sources {
                let columns = source.schema().columns.iter();
                for ((column, old), new) in columns.zip(&before.0[kind]).zip(&after.0[kind]) {
                    let meaning = column.meaning.expect("the catalogue knows every column");
                    if meaning.entry.kind != Kind::Counter {
                        assert_eq!(old, new, "{} changes", column.name);
                    } else if old != new {
                        grown.insert(meaning.signal());
                    }
                }
            }
            before = after;
        }
        let unexpected: Vec<_> = grown.iter().filter(|signal| !is_background(**signal)).collect();
        assert!(unexpected.is_empty(), "{nic}: {unexpected:?}");
        let packets = reader
            .grew(&first, &before, Signal::PacketsTxRdma, None)
            .expect("every driver has it");
        let share = packets * 4_158.0 / (LINE * 3_600.0 * f64::from(WEEK));
        assert!(
            (0.3..0.5).contains(&share),
            "{nic}: {share} of the line on average"
        );
        let marks = reader.grew(&first, &before, Signal::EcnRxCe, None).unwrap();
        assert!(
            marks / packets < 1e-4,
            "{nic}: {marks} marks on {packets} packets"
        );
    }
}

#[test]
fn ten_minutes_look_alike_at_any_pace_and_speed() {
    let play = |speed: u32, step: Duration| {
        let speed = Speed::new(speed).unwrap();
        let bench = Bench::new(Setup {
            speed,
            ..setup(Scenario::Incast, 22, Nic::Mlx5, 1)
        });
        let mut reader = bench.reader(0);
        let before = reader.read();
        for _ in 0..TEN_MINUTES.as_millis() / step.as_millis() {
            bench.clock.advance(step);
            reader.read();
        }
        let after = reader.read();
        [
            (Signal::BytesTx, None),
            (Signal::EcnRxCe, None),
            (Signal::PfcRxPauseDuration, RDMA),
            (Signal::FecCorrectedBits, None),
        ]
        .map(|(signal, index)| reader.grew(&before, &after, signal, index).unwrap())
    };
    let expected = play(1, Duration::from_secs(1));
    for (speed, seconds) in [(1, 100), (600, 1), (600, 10)] {
        let seen = play(speed, Duration::from_secs(seconds));
        let near = |i: usize, share: f64| (seen[i] / expected[i] - 1.0).abs() < share;
        // A sample of 60 or 100 seconds of the job, in which few dozens of incasts have their say.
        assert!(
            near(0, 0.05) && near(1, 0.5) && near(2, 0.6) && near(3, 1e-3),
            "{speed} times, every {seconds} s: {seen:?}, {expected:?}"
        );
    }
}
