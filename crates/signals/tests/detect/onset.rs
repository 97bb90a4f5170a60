//! How long after its onset a storm is open, whenever it begins between two samples.
//!
//! The benchmark prints what the test bounds.

use model::{DeviceId, PortId, Schema, SourceKind};
use ring::Window;
use signals::detect::{Detectors, EventChange, EventKind, PortFacts, Thresholds};
use signals::{Options, PortSignals};
use std::sync::Arc;

const MS: u64 = 1_000_000;
/// The default cadence of `ethtool -S`, and of looking.
const CADENCE: u64 = 200 * MS;
const LOOK: u64 = 100 * MS;
/// A read takes up to this much longer than the one before.
const JITTER: u64 = 5 * MS;
const ONSET: u64 = 10_000 * MS;

/// Nanoseconds from the onset of a storm to the look that opens it, for onsets at every millisecond of an interval.
pub(crate) fn delays() -> Vec<u64> {
    (0..CADENCE / MS).map(|ms| delay(ONSET + ms * MS)).collect()
}

fn delay(onset: u64) -> u64 {
    let port = PortId {
        device: DeviceId::pci("0000:1a:00.0"),
        number: 1,
    };
    let names = ["rx_prio3_pause_duration"];
    let mut signals = PortSignals::new(Options { window: 1_000 * MS });
    signals.open(Arc::new(Schema::new(
        port,
        "mlx5_core",
        SourceKind::Ethtool,
        names,
    )));
    signals.settle();
    let mut detectors = Detectors::new(Thresholds::default());
    for tick in 1.. {
        let now = tick * LOOK;
        if now.is_multiple_of(CADENCE) {
            // Reads are late by what others on the lane take, differently each time.
            let began = now - JITTER + tick.wrapping_mul(7_919) % 5 * MS;
            let paused = began.saturating_sub(onset) / 1_000;
            let window = Window { began, ended: began };
            signals.row(SourceKind::Ethtool, window, &[132_000_000 + paused]);
        }
        let mut changes = detectors.look(now, &signals, &PortFacts::default());
        if let Some(change) = changes.next() {
            assert!(matches!(&change, EventChange::Opened(event) if event.kind == EventKind::PfcStorm));
            return now - onset;
        }
    }
    unreachable!("a storm without end is told")
}
