//! A week of training on a healthy server: no pause, no drop, no error beyond the bits that every link corrects.

mod support;

use catalog::{Kind, Signal};
use sim::{Nic, Scenario};
use std::collections::BTreeSet;
use std::time::Duration;
use support::{Bench, LINE, RDMA, setup};

const HOUR: Duration = Duration::from_secs(3_600);
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
fn ten_minutes_look_alike_at_any_pace() {
    // In steps of the model, and in those of an accelerated run, which count for several each.
    let pace = |step: Duration| {
        let bench = Bench::new(setup(Scenario::Healthy, 22, Nic::Mlx5, 1));
        let mut reader = bench.reader(0);
        let before = reader.read();
        let mut left = Duration::from_secs(600);
        while !left.is_zero() {
            bench.clock.advance(step.min(left));
            left -= step.min(left);
            reader.read();
        }
        let after = reader.read();
        [
            (Signal::BytesTx, None),
            (Signal::PfcRxPauseDuration, RDMA),
            (Signal::FecCorrectedBits, None),
        ]
        .map(|(signal, index)| reader.grew(&before, &after, signal, index).unwrap())
    };
    let (slow, fast) = (pace(Duration::from_secs(1)), pace(Duration::from_secs(100)));
    assert!((fast[0] / slow[0] - 1.0).abs() < 0.03, "{slow:?} {fast:?}");
    assert!((slow[1] + fast[1]).abs() < 1.0);
    assert!((fast[2] / slow[2] - 1.0).abs() < 1e-6, "{slow:?} {fast:?}");
}
