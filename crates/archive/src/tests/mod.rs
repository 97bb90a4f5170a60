//! The archive as a whole, on a disk that does what a test wants.

mod clocks;
mod crash;
mod damage;
mod full;
mod keep;
mod meanwhile;
mod property;
mod retention;
mod together;

use crate::archive::Archive;
use crate::files::Disk;
use crate::limits::{Limits, Status};
use crate::memory::Memory;
use crate::query::{Query, Rows};
use crate::time::{Epoch, Now};
use crate::writer::{Handle, Writer};
use model::{ABSENT, DeviceId, Port, PortId, Schema, SourceKind};
use ring::Window;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// Wall time at which the monotonic clock read zero, nanoseconds since 1970.
const WALL: i64 = 1_795_910_400_000_000_000;
const EPOCH: Epoch = Epoch([7; 16]);
/// Milliseconds within a second at which a source is read; one is read twice a second.
const READS: [(SourceKind, &[u64]); 2] = [
    (SourceKind::HwCounters, &[200, 700]),
    (SourceKind::Ethtool, &[300]),
];
const PORTS: u32 = 2;
const NAMES: [&str; 4] = ["steady", "bursty", "still", "now and then"];

/// Small enough that a minute of rows goes through all there is.
fn small() -> Limits {
    Limits {
        bytes: 1 << 20,
        recorded: Duration::from_secs(28),
        record_bytes: 4 << 20,
        pin_bytes: 1 << 20,
        waiting_bytes: 1 << 20,
        sync: Duration::from_secs(2),
        seal: Duration::from_secs(4),
    }
}

fn port(number: u32) -> Port {
    let id = PortId {
        device: DeviceId::pci(&format!("0000:{number}a:00.0")),
        number: 1,
    };
    Port {
        netdev: Some(format!("eth{number}")),
        ..Port::bare(id, &format!("mlx5_{number}"), "mlx5_core")
    }
}

fn schema(port: &Port, source: SourceKind) -> Schema {
    Schema::new(port.id.clone(), &port.driver, source, NAMES)
}

fn is_log(name: &str) -> bool {
    name.strip_suffix(".log").is_some()
}

fn is_segment(name: &str) -> bool {
    name.strip_suffix(".segment").is_some()
}

/// What a counter reads at a millisecond: everything follows from the time, so a reader can tell what is right.
fn value(port: u32, source: SourceKind, column: usize, at: u64) -> u64 {
    let seed = u64::from(port) * 1_000 + source as u64 * 100;
    match column {
        0 => seed + at * 50_000_000,
        1 => seed + at / 10 * 7 + at * at % 1_000 * 1_000_000,
        2 => seed,
        _ if at.is_multiple_of(5) && (at / 1_000).is_multiple_of(3) => ABSENT,
        _ => seed + at / 9_000,
    }
}

fn row(port: u32, source: SourceKind, at: u64) -> Vec<u64> {
    (0..NAMES.len())
        .map(|column| value(port, source, column, at))
        .collect()
}

fn window(at: u64) -> Window {
    Window {
        began: at * MS,
        ended: at * MS,
    }
}

fn now(second: u64) -> Now {
    Now {
        monotonic: second * SECOND,
        wall: WALL + (second * SECOND).cast_signed(),
    }
}

/// A server whose sources are read into an archive.
struct Server {
    writer: Writer,
    tracks: Vec<(u32, SourceKind, &'static [u64], Handle)>,
    /// The next second.
    second: u64,
}

impl Server {
    fn start(disk: &Memory, limits: Limits, second: u64) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        Self::with(
            Writer::on(disk, limits, EPOCH, now(second)).expect("the archive opens"),
            second,
        )
    }

    fn with(mut writer: Writer, second: u64) -> Self {
        let mut tracks = Vec::new();
        for number in 0..PORTS {
            let port = port(number);
            for (source, reads) in READS {
                let handle = writer.open_track(&port, &schema(&port, source));
                tracks.push((number, source, reads, handle));
            }
        }
        Self {
            writer,
            tracks,
            second,
        }
    }

    /// Reads all sources for a second, and writes at its end.
    fn play(&mut self) -> Status {
        for (port, source, reads, handle) in &self.tracks {
            for read in *reads {
                let at = self.second * 1_000 + read;
                self.writer.row(*handle, window(at), &row(*port, *source, at));
            }
        }
        self.second += 1;
        self.writer.tick(now(self.second)).clone()
    }

    fn play_for(&mut self, seconds: u64) -> Status {
        let mut status = self.writer.status().clone();
        for _ in 0..seconds {
            status = self.play();
        }
        status
    }
}

/// Everything in an archive: the seconds that each track has rows of. Each value is held against what it should be.
fn seconds(archive: &Archive) -> Vec<BTreeSet<u64>> {
    let mut all = Vec::new();
    for number in 0..PORTS {
        for (source, reads) in READS {
            let mut found = BTreeSet::new();
            for rows in everything(archive, number, source) {
                check(&rows, number, source, reads, &mut found);
            }
            all.push(found);
        }
    }
    all
}

fn everything(archive: &Archive, number: u32, source: SourceKind) -> Vec<Rows> {
    let port = port(number).id;
    let query = Query {
        port: &port,
        source,
        columns: &[],
        from: i64::MIN,
        to: i64::MAX,
    };
    archive.rows(&query).rows
}

fn check(rows: &Rows, number: u32, source: SourceKind, reads: &[u64], found: &mut BTreeSet<u64>) {
    assert_eq!(rows.epoch, EPOCH);
    for (i, time) in rows.times.iter().enumerate() {
        let at = time.window.began / MS;
        assert_eq!(time.window, window(at));
        assert_eq!(time.wall, WALL + (at * MS).cast_signed());
        assert_eq!(
            Some(&(at % 1_000)),
            reads.last(),
            "the newest row of a second is kept"
        );
        assert!(found.insert(at / 1_000), "second {} is there twice", at / 1_000);
        let read: Vec<u64> = rows.columns.iter().map(|values| values.values[i]).collect();
        assert_eq!(read, row(number, source, at));
        check_extremes(rows, i, at, reads.len());
    }
}

/// The extremes of the steady column, whose rate never changes.
fn check_extremes(rows: &Rows, i: usize, at: u64, reads: usize) {
    let steady = rows.columns[0].extremes[i];
    if reads == 1 {
        assert_eq!(steady, None);
        return;
    }
    let rate = 50_000_000_000;
    let extremes = steady.expect("the source is read twice a second");
    assert!(
        extremes.low <= rate && rate <= extremes.high,
        "second {}",
        at / 1_000
    );
    assert!(extremes.high - extremes.low <= rate / 500);
}

/// The seconds that every track has.
fn common(archive: &Archive) -> BTreeSet<u64> {
    let all = seconds(archive);
    let first = all.first().cloned().unwrap_or_default();
    all.iter().fold(first, |common, track| {
        common.intersection(track).copied().collect()
    })
}

fn open(disk: &Memory) -> Archive {
    Archive::on(disk).expect("it opens")
}
