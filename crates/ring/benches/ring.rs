//! What the ring costs: a push, the newest row, a row by time, one column over a whole ring.
#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ring::{Window, channel};
use std::hint::black_box;

const ROWS: usize = 1024;

fn ring(criterion: &mut Criterion) {
    for columns in [64, 1000] {
        let (mut writer, reader) = channel(columns, ROWS);
        let values = vec![1u64; columns];
        for number in 0..ROWS as u64 {
            writer.push(
                Window {
                    began: number * 1000,
                    ended: number * 1000 + 1,
                },
                &values,
            );
        }
        let mut row = reader.row();
        let mut group = criterion.benchmark_group("ring");
        group.bench_function(BenchmarkId::new("latest", columns), |b| {
            b.iter(|| black_box(reader.latest(&mut row)));
        });
        group.bench_function(BenchmarkId::new("at_or_before", columns), |b| {
            b.iter(|| black_box(reader.at_or_before(black_box(300_000), &mut row)));
        });
        group.bench_function(BenchmarkId::new("column_of_1024_rows", columns), |b| {
            b.iter(|| {
                let mut sum = 0u64;
                reader.column(columns / 2, 0, u64::MAX, |_, value| sum += value);
                black_box(sum)
            });
        });
        group.bench_function(BenchmarkId::new("push", columns), |b| {
            b.iter(|| writer.push(Window::default(), black_box(&values)));
        });
    }
}

criterion_group!(benches, ring);
criterion_main!(benches);
