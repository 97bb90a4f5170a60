//! What a look at a quiet and at a stormy port costs, and how soon a storm is open.
#![allow(missing_docs)] // criterion's macros make undocumented functions
#![allow(clippy::print_stdout)] // the delays are what it is for

#[path = "../tests/detect/onset.rs"]
mod onset;

use criterion::{Criterion, criterion_group, criterion_main};
use model::{Host, Opened, Read, SourceKind};
use ring::Window;
use signals::detect::{Detectors, PortFacts, Thresholds};
use signals::{Options, PortSignals};
use sim::{Scenario, Simulator, StepClock};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const SOURCES: [SourceKind; 5] = [
    SourceKind::Ethtool,
    SourceKind::HwCounters,
    SourceKind::Link,
    SourceKind::Settings,
    SourceKind::Dcb,
];

/// A simulated mlx5 port after 20 s of a scenario, in which rail 5 is the one that storms.
fn port(scenario: Scenario, detectors: &mut Detectors) -> (u64, PortSignals) {
    let clock = StepClock::default();
    let time = clock.clone();
    let host = Simulator::new(scenario, 1, move || time.now());
    let port = host.ports().expect("it lists its ports").swap_remove(5);
    let mut sources: Vec<_> = SOURCES
        .into_iter()
        .filter_map(|kind| match host.open(&port, kind) {
            Opened::Active(source) => Some((kind, source)),
            _ => None,
        })
        .collect();
    let mut signals = PortSignals::new(Options {
        window: 1_000_000_000,
    });
    for (_, source) in &sources {
        signals.open(Arc::clone(source.schema()));
    }
    signals.settle();
    for _ in 0..100 {
        clock.advance(Duration::from_millis(200));
        let now = clock.now();
        for (kind, source) in &mut sources {
            let mut row = vec![0; source.schema().columns.len()];
            if source.read(&mut row) == Read::Row {
                let window = Window {
                    began: now,
                    ended: now,
                };
                signals.row(*kind, window, &row);
            }
        }
        detectors
            .look(now, &signals, &PortFacts::default())
            .for_each(drop);
    }
    (clock.now(), signals)
}

fn look(criterion: &mut Criterion) {
    for scenario in [Scenario::Healthy, Scenario::PfcStorm] {
        let mut detectors = Detectors::new(Thresholds::default());
        let (mut now, signals) = port(scenario, &mut detectors);
        criterion.bench_function(&format!("look at a port, {scenario}"), |b| {
            b.iter(|| {
                now += 100_000_000;
                let changes = detectors.look(now, black_box(&signals), &PortFacts::default());
                changes.count()
            });
        });
    }
}

fn delays(_: &mut Criterion) {
    let mut delays = onset::delays();
    delays.sort_unstable();
    let at = |percent: usize| delays[(delays.len() - 1) * percent / 100] / 1_000_000;
    println!(
        "a storm is open after its onset, simulated time at the default cadence: median {} ms, p99 {} ms, at most {} ms",
        at(50),
        at(99),
        at(100)
    );
}

criterion_group!(benches, look, delays);
criterion_main!(benches);
