//! A real Prometheus scrapes the real binary, and a query gives the right rate.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

#[path = "../support/prometheus.rs"]
mod prometheus;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tree.rs"]
mod tree;

use prometheus::Prometheus;
use std::fs::OpenOptions;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::Daemon;

/// Adds to a counter's file 100 times a second, by the clock, so that its rate is known.
fn advance(file: &Path, from: u64, per_second: u64, end: &AtomicBool) {
    let mut file = OpenOptions::new()
        .write(true)
        .open(file)
        .expect("the counter is there");
    let began = Instant::now();
    while !end.load(Ordering::Relaxed) {
        let elapsed = u64::try_from(began.elapsed().as_micros()).expect("a test is short");
        let value = from + elapsed * per_second / 1_000_000;
        file.rewind()
            .and_then(|()| file.write_all(format!("{value}\n").as_bytes()))
            .expect("the counter can be written");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "needs Debian's prometheus: ./x test"]
fn prometheus_sees_the_right_rate() {
    let tree = tree::lay_out("mlx5");
    let counter = tree
        .path()
        .join("class/infiniband/mlx5_1/ports/1/hw_counters/np_cnp_sent");
    let end = Arc::new(AtomicBool::new(false));
    let writer = {
        let end = Arc::clone(&end);
        // As many digits from the first to the last value: a reader never sees half of an old one.
        std::thread::spawn(move || advance(&counter, 1_000_000, 5_000, &end))
    };
    let daemon = Daemon::start(&["run", "--sysfs", tree.path().to_str().expect("paths are text")]);
    daemon.wait_until_ready();
    let prometheus = Prometheus::scraping(daemon.address());
    prometheus.wait_for("count_over_time(rocewatch_cnp_sent_total[30s])", |samples| {
        samples.iter().any(|(_, n)| *n >= 20.0)
    });
    let rates = prometheus.query("rate(rocewatch_cnp_sent_total{device=\"mlx5_1\"}[15s])");
    end.store(true, Ordering::Relaxed);
    writer.join().expect("the writer ends");
    assert_eq!(rates.len(), 1, "{rates:?}");
    assert!((rates[0].1 - 5_000.0).abs() < 150.0, "{rates:?}");
    let still = prometheus.query("rate(rocewatch_cnp_sent_total{device=\"mlx5_0\"}[15s])");
    assert_eq!(still.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(), [0.0]);
}

#[test]
#[ignore = "needs Debian's prometheus: ./x test"]
fn prometheus_takes_every_line_of_the_demo() {
    let daemon = Daemon::start(&["demo"]);
    daemon.wait_until_ready();
    let prometheus = Prometheus::scraping(daemon.address());
    prometheus.wait_for("up", |samples| samples.iter().any(|(_, up)| *up > 0.5));
    let scraped = prometheus.wait_for("scrape_samples_scraped", |samples| {
        samples.iter().any(|(_, n)| *n > 1000.0)
    });
    let shown = daemon.scrape().len() as f64;
    assert!(
        (scraped[0].1 - shown).abs() < shown * 0.05,
        "{} taken, {shown} shown",
        scraped[0].1
    );
    prometheus.wait_for(
        "histogram_quantile(0.99, rate(rocewatch_sampled_utilization_ratio_bucket[10s]))",
        |samples| samples.len() == 16 && samples.iter().all(|(_, quantile)| (0.0..=1.0).contains(quantile)),
    );
}
