//! What the simulator costs: plays each scenario at the default cadence on a clock of its own, as fast as it can.

// An example measures and prints; it is no part of the daemon.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use model::{Host, Opened, Read, Source, SourceKind};
use sim::{Scenario, Simulator};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const SECONDS: u64 = 240;
/// Nanoseconds between two reads of `hw_counters`, and of `ethtool`.
const CADENCE: [(SourceKind, u64); 2] = [
    (SourceKind::HwCounters, 100_000_000),
    (SourceKind::Ethtool, 200_000_000),
];

fn main() {
    for scenario in Scenario::ALL {
        let cost = play(scenario);
        println!(
            "{scenario:10} {:.3} % of a core, {:.1} us a read",
            cost.share * 100.0,
            cost.read * 1e6
        );
    }
}

struct Cost {
    share: f64,
    read: f64,
}

fn play(scenario: Scenario) -> Cost {
    let time = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&time);
    let host = Simulator::new(scenario, 1, move || clock.load(Ordering::Relaxed));
    let mut sources = open(&host);
    let mut reads = 0_u32;
    let began = Instant::now();
    for now in (0..SECONDS * 1_000_000_000).step_by(100_000_000) {
        time.store(now, Ordering::Relaxed);
        for (interval, source, row) in &mut sources {
            if now % *interval == 0 {
                assert_eq!(source.read(row), Read::Row);
                reads += 1;
            }
        }
    }
    let taken = began.elapsed().as_secs_f64();
    Cost {
        share: taken / SECONDS as f64,
        read: taken / f64::from(reads),
    }
}

fn open(host: &Simulator) -> Vec<(u64, Box<dyn Source>, Vec<u64>)> {
    let ports = host.ports().expect("the simulator lists its ports");
    let wanted = ports
        .iter()
        .flat_map(|port| CADENCE.map(|(kind, interval)| (port, kind, interval)));
    wanted
        .map(|(port, kind, interval)| {
            let Opened::Active(source) = host.open(port, kind) else {
                panic!("{kind} does not open")
            };
            let row = vec![0; source.schema().columns.len()];
            (interval, source, row)
        })
        .collect()
}
