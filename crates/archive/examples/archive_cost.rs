//! What the archive costs: writes a simulated day of an 8-port server, and looks things up in it.
//!
//! `cargo run --release -p rocewatch-archive --example archive_cost [HOURS [SCENARIO]]`

// An example measures and prints; it is no part of the daemon.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use archive::{Archive, Epoch, FullRate, Handle, Limits, Now, Query, Record, State, Status, Track, Writer};
use model::{Host, Opened, Port, Read, Source, SourceKind};
use ring::{Row, Window};
use sim::{Scenario, Simulator};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// 2026-11-29, nanoseconds since 1970.
const WALL: i64 = 1_795_910_400_000_000_000;
/// Nanoseconds between two reads of each source, and what a read takes at least.
const CADENCE: [(SourceKind, u64, u64); 6] = [
    (SourceKind::HwCounters, 100 * MS, 60_000),
    (SourceKind::Ethtool, 200 * MS, 250_000),
    (SourceKind::PortCounters, SECOND, 400_000),
    (SourceKind::Link, SECOND, 5_000),
    (SourceKind::Settings, 30 * SECOND, 100_000),
    (SourceKind::Dcb, 30 * SECOND, 80_000),
];
/// How much of the end is pinned at full rate, nanoseconds.
const PINNED: u64 = 120 * SECOND;

struct Opening {
    source: Box<dyn Source>,
    interval: u64,
    takes: u64,
    handle: Handle,
    track: Track,
    row: Vec<u64>,
    last: Vec<Row>,
}

/// Time that this thread has been on a processor: other work on the machine does not show.
struct Stopwatch(Duration);

impl Stopwatch {
    fn start() -> Self {
        Self(Self::read())
    }

    fn elapsed(&self) -> Duration {
        Self::read().saturating_sub(self.0)
    }

    fn read() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).expect("it does not run backwards")
    }
}

/// What a day of writing took.
#[derive(Default)]
struct Cost {
    rows: Duration,
    ticks: Duration,
    longest_tick: Duration,
    /// Values at one a second.
    samples: u64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let hours: u64 = arguments
        .next()
        .map_or(24, |hours| hours.parse().expect("a number of hours"));
    let scenario = arguments
        .next()
        .map_or(Scenario::Healthy, |name| name.parse().expect("a scenario"));
    let folder = tempfile::tempdir().expect("a folder for the archive");
    let seconds = hours * 3600;
    let port = write(folder.path(), scenario, seconds);
    look_up(folder.path(), &port, seconds);
}

fn write(folder: &Path, scenario: Scenario, seconds: u64) -> Port {
    let time = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&time);
    let host = Simulator::new(scenario, 1, move || clock.load(Ordering::Relaxed));
    let mut writer =
        Writer::open(folder, Limits::default(), Epoch([1; 16]), now(0)).expect("the archive opens");
    let ports = host.ports().expect("the simulator lists its ports");
    let mut sources = open(&host, &ports, &mut writer);
    let mut cost = Cost::default();
    let mut noise = 1_u64;
    for at in (0..seconds * SECOND).step_by(100_000_000) {
        time.store(at, Ordering::Relaxed);
        let mut read = Vec::new();
        for (place, source) in sources
            .iter_mut()
            .enumerate()
            .filter(|(_, source)| at % source.interval == 0)
        {
            assert_eq!(source.source.read(&mut source.row), Read::Row);
            read.push((place, source.window(at, &mut noise)));
        }
        let began = Stopwatch::start();
        for (place, window) in &read {
            writer.row(sources[*place].handle, *window, &sources[*place].row);
        }
        cost.rows += began.elapsed();
        if at + PINNED >= seconds * SECOND {
            for (place, window) in read {
                sources[place].remember(window);
            }
        }
        if at % SECOND == 900 * MS {
            let began = Stopwatch::start();
            let status = writer.tick(now(at + 90 * MS));
            assert_eq!(status.state, State::Writing);
            cost.ticks += began.elapsed();
            cost.longest_tick = cost.longest_tick.max(began.elapsed());
        }
    }
    for source in &sources {
        cost.samples += source.row.len() as u64 * (seconds * SECOND / source.interval.max(SECOND));
    }
    pin(&mut writer, &sources);
    let status = writer.finish();
    let pinned = sources
        .iter()
        .map(|source| source.last.len() * source.row.len())
        .sum();
    report(&cost, &status, sizes(folder), seconds, pinned);
    ports[0].clone()
}

fn open(host: &Simulator, ports: &[Port], writer: &mut Writer) -> Vec<Opening> {
    let mut sources = Vec::new();
    for port in ports {
        for (kind, interval, takes) in CADENCE {
            let Opened::Active(source) = host.open(port, kind) else {
                panic!("{kind} does not open")
            };
            let handle = writer.open_track(port, source.schema());
            let track = Track::new(port, source.schema());
            let row = vec![0; source.schema().columns.len()];
            sources.push(Opening {
                source,
                interval,
                takes,
                handle,
                track,
                row,
                last: Vec::new(),
            });
        }
    }
    sources
}

impl Opening {
    /// A read begins up to 60 us late and takes up to a third longer, so that times are no easier than real ones.
    fn window(&self, at: u64, noise: &mut u64) -> Window {
        *noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let began = at + (*noise >> 33) % 60_000;
        Window {
            began,
            ended: began + self.takes + (*noise >> 20) % (self.takes / 3),
        }
    }

    fn remember(&mut self, window: Window) {
        self.last.push(Row {
            number: 0,
            window,
            values: self.row.as_slice().into(),
        });
    }
}

fn now(monotonic: u64) -> Now {
    Now {
        monotonic,
        wall: WALL + monotonic.cast_signed(),
    }
}

fn pin(writer: &mut Writer, sources: &[Opening]) {
    let record = Record {
        id: "full-rate".to_owned(),
        began: WALL,
        ended: None,
        body: Vec::new(),
    };
    let rows: Vec<_> = sources
        .iter()
        .map(|source| FullRate {
            track: &source.track,
            rows: &source.last,
        })
        .collect();
    let began = Stopwatch::start();
    writer.pin(&record, &rows).expect("the pin is written");
    println!("two minutes at full rate: {:.1?} to pin", began.elapsed());
}

/// Bytes of segments and of logs.
fn sizes(folder: &Path) -> (u64, u64) {
    let files = std::fs::read_dir(folder.join("rows")).expect("the archive has rows");
    files
        .map(|file| file.expect("it is readable"))
        .fold((0, 0), |(segments, logs), file| {
            let bytes = file.metadata().expect("it is readable").len();
            match file.path().extension() {
                Some(extension) if extension == "log" => (segments, logs + bytes),
                _ => (segments + bytes, logs),
            }
        })
}

fn report(cost: &Cost, status: &Status, sizes: (u64, u64), seconds: u64, pinned: usize) {
    let share = |taken: Duration| taken.as_secs_f64() / seconds as f64 * 100.0;
    let sealed = cost.samples as f64 * status.recorded.as_secs_f64() / seconds as f64;
    println!(
        "{} samples at 1 s: {:.1} MB sealed, {:.3} bytes a sample, extremes included; {:.1} MB of log",
        cost.samples,
        sizes.0 as f64 / 1e6,
        sizes.0 as f64 / sealed,
        sizes.1 as f64 / 1e6,
    );
    println!(
        "writing: {:.3} % of a core ({:.3} % thinning out, {:.3} % disk and blocks), longest tick {:.1?}",
        share(cost.rows + cost.ticks),
        share(cost.rows),
        share(cost.ticks),
        cost.longest_tick
    );
    println!(
        "pinned at full rate: {:.3} bytes a sample",
        status.pin_bytes as f64 / pinned as f64
    );
}

fn look_up(folder: &Path, port: &Port, seconds: u64) {
    let archive = timed("open the archive", || Archive::open(folder).expect("it opens"));
    assert!(archive.damages().is_empty());
    let end = WALL + (seconds * SECOND).cast_signed();
    let day = Query {
        port: &port.id,
        source: SourceKind::Ethtool,
        columns: &[],
        from: WALL,
        to: end,
    };
    let name = archive
        .tracks()
        .iter()
        .find(|span| span.track.source == SourceKind::Ethtool)
        .expect("a track")
        .track
        .columns[0]
        .name
        .to_string();
    let one = [name.as_str()];
    let found = timed("one counter over all of it", || {
        archive.rows(&Query { columns: &one, ..day })
    });
    println!(
        "  {} rows",
        found.rows.iter().map(|rows| rows.times.len()).sum::<usize>()
    );
    let from = WALL + (seconds * SECOND / 2).cast_signed();
    let minute = Query {
        from,
        to: from + (60 * SECOND).cast_signed(),
        ..day
    };
    timed("one minute of one source", || archive.rows(&minute));
    timed("one minute of everything", || {
        for span in archive.tracks() {
            let (port, source) = (&span.track.port, span.track.source);
            assert!(
                !archive
                    .rows(&Query {
                        port,
                        source,
                        ..minute
                    })
                    .rows
                    .is_empty()
            );
        }
    });
    let pin = timed("open a pin", || {
        Archive::open_pin(folder, "full-rate").expect("it opens")
    });
    let found = timed("all rows of a source of a pin", || pin.rows(&day));
    println!(
        "  {} rows",
        found.rows.iter().map(|rows| rows.times.len()).sum::<usize>()
    );
}

fn timed<T>(what: &str, run: impl Fn() -> T) -> T {
    let mut taken: Vec<Duration> = Vec::new();
    loop {
        let began = Stopwatch::start();
        let done = run();
        taken.push(began.elapsed());
        if taken.len() == 9 {
            taken.sort_unstable();
            println!("{what}: {:.2?} (median of 9; {:.2?} at most)", taken[4], taken[8]);
            return done;
        }
    }
}
