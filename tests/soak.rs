//! Hours of a server in minutes: the daemon must not grow.
//!
//! The simulated server's clock, and with it the daemon's, runs 120 times as fast as real time, so that links flap, tracks
//! close and open, logs are written and pages encoded as in a day, while memory, descriptors and threads are watched.

#![allow(clippy::disallowed_methods)] // reads procfs and waits
#![allow(clippy::print_stdout)] // figures for whoever reads the test's output

mod support;

use std::time::{Duration, Instant};
use support::Daemon;

const SPEED: u64 = 120;
/// What the allocator may take for itself between two looks.
const SLACK_KIB: u64 = 1024;

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident_kib: u64,
    descriptors: usize,
    threads: usize,
}

fn held(process: u32) -> Held {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the daemon runs");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {status}"))
    };
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).expect("the daemon runs");
    Held {
        resident_kib: field("VmRSS:"),
        descriptors: descriptors.count(),
        threads: usize::try_from(field("Threads:")).expect("a number of threads"),
    }
}

/// A device that has come back has a thread while the one before is ending; a moment later there are as many as ever.
fn wait_for_threads(process: u32, threads: usize) {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let now = held(process).threads;
        if now == threads {
            return;
        }
        assert!(Instant::now() < end, "{now} threads, of {threads}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Simulated hours, 24 unless the environment says otherwise.
fn hours() -> u64 {
    let hours = std::env::var("ROCEWATCH_SOAK_HOURS").ok();
    hours.map_or(24, |hours| {
        hours.parse().expect("ROCEWATCH_SOAK_HOURS is a number of hours")
    })
}

fn soak(scenario: &str) {
    let speed = SPEED.to_string();
    let daemon = Daemon::start(&["demo", "--scenario", scenario, "--speed", &speed]);
    daemon.wait_until_ready();
    daemon.wait_for("the first values", Duration::from_secs(30), |metrics| {
        metrics.len() > 1000
    });
    let whole = Duration::from_secs(hours() * 3600 / SPEED);
    let (began, mut first) = (Instant::now(), None);
    let mut most = held(daemon.id());
    while began.elapsed() < whole {
        assert!(daemon.scrape().len() > 1000, "{}", daemon.log());
        let now = held(daemon.id());
        // Rings, pages and tables have their size after a third.
        if began.elapsed() > whole / 3 {
            let first = *first.get_or_insert(now);
            most.resident_kib = most.resident_kib.max(now.resident_kib);
            wait_for_threads(daemon.id(), first.threads);
            // A scrape of its own, and one that is being let go.
            assert!(now.descriptors <= first.descriptors + 2, "{now:?}, {first:?}");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    let (first, last) = (first.expect("it took a while"), held(daemon.id()));
    println!(
        "{scenario}: {first:?} after a third, {last:?} after {} h, {} KiB at most",
        hours(),
        most.resident_kib
    );
    assert!(
        last.resident_kib <= first.resident_kib + SLACK_KIB,
        "memory grew from {first:?} to {last:?}"
    );
    let (status, _) = daemon.terminate();
    assert_eq!(status, Some(0));
}

#[test]
#[ignore = "takes minutes: ./x soak"]
fn a_day_of_everything_leaves_nothing_behind() {
    soak("tour");
}

#[test]
#[ignore = "takes minutes: ./x soak"]
fn a_day_after_a_device_that_came_back_leaves_nothing_behind() {
    soak("counter-reset");
}
