//! What it costs to take in a row of a 400G mlx5 port: every total, every meter, every histogram.
#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{Criterion, criterion_group, criterion_main};
use model::{DeviceId, PortId, Schema, SourceKind};
use ring::Window;
use signals::{Options, PortSignals};
use std::hint::black_box;
use std::sync::Arc;

fn row(criterion: &mut Criterion) {
    let names: Vec<String> = catalog::DRIVERS
        .iter()
        .filter(|driver| driver.name == "mlx5_core")
        .flat_map(|driver| driver.entries)
        .flat_map(|entry| {
            (0..8)
                .map(|priority| entry.name.replace("{prio}", &priority.to_string()))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut names = names;
    names.sort();
    names.dedup();
    let port = PortId {
        device: DeviceId::pci("0000:1a:00.0"),
        number: 1,
    };
    let schema = Arc::new(Schema::new(port, "mlx5_core", SourceKind::Ethtool, names));
    let mut signals = PortSignals::new(Options {
        window: 1_000_000_000,
    });
    signals.open(Arc::clone(&schema));
    signals.settle();
    let mut values = vec![0u64; schema.columns.len()];
    let mut now = 0;
    criterion.bench_function(&format!("row of {} columns", values.len()), |b| {
        b.iter(|| {
            now += 200_000_000;
            for value in &mut values {
                *value += 1000;
            }
            signals.row(
                SourceKind::Ethtool,
                Window {
                    began: now,
                    ended: now + 1000,
                },
                black_box(&values),
            );
        });
    });
}

criterion_group!(benches, row);
criterion_main!(benches);
