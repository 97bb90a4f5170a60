//! What a read costs once it is warm.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // one test measures, and says what

use crate::netns::{self, ip, port};
use crate::{allocations, dcb, ethtool, settings};
use model::{Opened, Read, Source};
use std::time::Instant;

fn sources(netdev: &str) -> Vec<Box<dyn Source>> {
    let ctx = netns::context("/sys".as_ref(), true);
    let port = port(netdev);
    [
        ethtool::open(&ctx, &port),
        settings::open(&ctx, &port),
        dcb::open(&ctx, &port),
    ]
    .into_iter()
    .filter_map(|opened| match opened {
        Opened::Active(source) => Some(source),
        Opened::NotApplicable(_) | Opened::Failed(_) => None,
    })
    .collect()
}

fn read_often(source: &mut dyn Source, times: u32) -> u64 {
    let mut row = vec![0; source.schema().columns.len()];
    assert_eq!(source.read(&mut row), Read::Row);
    allocations::during(|| {
        for _ in 0..times {
            assert_eq!(source.read(&mut row), Read::Row);
        }
    })
}

#[test]
fn a_warm_read_allocates_nothing() {
    netns::within(|| {
        ip("link add a0 type veth peer name a1");
        let mut sources = sources("a0");
        assert_eq!(sources.len(), 2, "statistics and settings");
        for source in &mut sources {
            assert_eq!(read_often(&mut **source, 100), 0, "{}", source.schema().source);
        }
    });
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn a_warm_read_of_a_nic_allocates_nothing() {
    let mut sources = sources("rail0");
    assert_eq!(sources.len(), 3);
    for source in &mut sources {
        assert_eq!(read_often(&mut **source, 100), 0, "{}", source.schema().source);
    }
}

#[test]
#[ignore = "measures: cargo test --release -- --ignored --nocapture nanoseconds"]
fn nanoseconds() {
    netns::within(|| {
        ip("link add a0 type veth peer name a1");
        for mut source in sources("a0") {
            let name = source.schema().source;
            let columns = source.schema().columns.len();
            read_often(&mut *source, 1000);
            let mut best = u128::MAX;
            for _ in 0..20 {
                let began = Instant::now();
                read_often(&mut *source, 2000);
                best = best.min(began.elapsed().as_nanos() / 2001);
            }
            println!("{name}: {columns} columns, {best} ns a read");
        }
    });
}
