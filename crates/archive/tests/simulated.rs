//! A simulated server, written at the default cadence and held against what was generated, value by value.

use archive::{Archive, Epoch, Handle, Limits, Now, Query, Rows, State, Writer};
use model::{Host, Opened, PortId, Read, Schema, Source, SourceKind};
use ring::Window;
use sim::{Scenario, Simulator};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// The tour goes through all scenarios in this time, and more.
const SECONDS: u64 = 180;
const CADENCE: [(SourceKind, u64); 6] = [
    (SourceKind::HwCounters, 100 * MS),
    (SourceKind::Ethtool, 200 * MS),
    (SourceKind::PortCounters, SECOND),
    (SourceKind::Link, SECOND),
    (SourceKind::Settings, 30 * SECOND),
    (SourceKind::Dcb, 30 * SECOND),
];

/// One source, and every row that it gave.
struct Watched {
    source: Box<dyn Source>,
    interval: u64,
    handle: Handle,
    rows: Vec<(Window, Vec<u64>)>,
}

fn now(monotonic: u64) -> Now {
    Now {
        monotonic,
        wall: monotonic.cast_signed(),
    }
}

/// Hours of [`a_day_is_what_was_generated`]: a day, unless the environment says otherwise.
const HOURS: &str = "ROCEWATCH_ARCHIVE_HOURS";

/// The newest rows of a second, one of each source.
type Newest = Vec<Option<(Window, Vec<u64>)>>;

/// Two ports at the default cadence, instant by instant.
struct Played {
    time: Arc<AtomicU64>,
    host: Simulator,
}

impl Played {
    fn new() -> Self {
        let time = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&time);
        Self {
            time,
            host: Simulator::new(Scenario::Tour, 2, move || clock.load(Ordering::Relaxed)),
        }
    }

    fn sources(&self) -> Vec<(Box<dyn Source>, u64)> {
        let mut sources = Vec::new();
        for port in self.host.ports().expect("it lists its ports") {
            for (kind, interval) in CADENCE {
                let Opened::Active(source) = self.host.open(&port, kind) else {
                    panic!("{kind} does not open")
                };
                sources.push((source, interval));
            }
        }
        sources
    }

    /// Reads what is due in a second; `row` is told of each.
    fn second(
        &self,
        second: u64,
        sources: &mut [(Box<dyn Source>, u64)],
        mut row: impl FnMut(usize, Window, &[u64]),
    ) {
        for at in (second * SECOND..(second + 1) * SECOND).step_by(100_000_000) {
            self.time.store(at, Ordering::Relaxed);
            for (i, (source, interval)) in sources.iter_mut().enumerate() {
                if at.is_multiple_of(*interval) {
                    let mut values = vec![0; source.schema().columns.len()];
                    assert_eq!(source.read(&mut values), Read::Row);
                    let window = Window {
                        began: at,
                        ended: at + 40_000,
                    };
                    row(i, window, &values);
                }
            }
        }
    }
}

/// The same server is simulated a second time beside the look-up: a day of rows would not fit into memory.
#[test]
#[ignore = "./x archive: a day takes a while"]
fn a_day_is_what_was_generated() {
    let hours = std::env::var(HOURS).map_or(24, |hours| hours.parse().expect("a number of hours"));
    let folder = tempfile::tempdir().expect("a folder");
    let played = Played::new();
    let mut sources = played.sources();
    let mut writer =
        Writer::open(folder.path(), Limits::default(), Epoch([1; 16]), now(0)).expect("it opens");
    let ports = played.host.ports().expect("it lists its ports");
    let handles: Vec<Handle> = sources
        .iter()
        .map(|(source, _)| {
            let port = ports.iter().find(|port| port.id == source.schema().port);
            writer.open_track(port.expect("it is there"), source.schema())
        })
        .collect();
    for second in 0..hours * 3_600 {
        played.second(second, &mut sources, |i, window, row| {
            writer.row(handles[i], window, row)
        });
        assert_eq!(writer.tick(now((second + 1) * SECOND)).state, State::Writing);
    }
    assert_eq!(writer.finish().state, State::Writing);
    let archive = Archive::open(folder.path()).expect("it opens");
    assert_eq!(archive.damages(), []);
    let again = Played::new();
    let mut sources = again.sources();
    let mut compared = 0;
    for hour in 0..hours {
        compared += compare_hour(&archive, hour, &again, &mut sources);
    }
    assert!(compared > hours * 3_600 * 4 * 2, "{compared} rows");
}

/// Holds an hour of an archive against what is generated; gives how many rows there were.
fn compare_hour(
    archive: &Archive,
    hour: u64,
    played: &Played,
    sources: &mut [(Box<dyn Source>, u64)],
) -> u64 {
    let hour = hour * 3_600..(hour + 1) * 3_600;
    let mut found: Vec<_> = sources
        .iter()
        .map(|(source, _)| rows_of(archive, source.schema(), &hour).into_iter())
        .collect();
    let mut compared = 0;
    for second in hour {
        let mut newest: Newest = vec![None; sources.len()];
        played.second(second, sources, |i, window, row| {
            newest[i] = Some((window, row.to_vec()))
        });
        for (found, newest) in found.iter_mut().zip(newest) {
            if let Some(newest) = newest {
                assert_eq!(found.next(), Some(newest), "second {second}");
                compared += 1;
            }
        }
    }
    assert!(found.iter_mut().all(|found| found.next().is_none()));
    compared
}

fn rows_of(archive: &Archive, schema: &Schema, seconds: &std::ops::Range<u64>) -> Vec<(Window, Vec<u64>)> {
    let found = archive.rows(&Query {
        port: &schema.port,
        source: schema.source,
        columns: &[],
        from: (seconds.start * SECOND).cast_signed(),
        to: (seconds.end * SECOND - 1_000).cast_signed(),
    });
    assert_eq!(found.damages, []);
    let mut all = Vec::new();
    for rows in &found.rows {
        for (i, time) in rows.times.iter().enumerate() {
            let row = rows.columns.iter().map(|column| column.values[i]).collect();
            all.push((time.window, row));
        }
    }
    all
}

#[test]
fn every_value_is_what_was_generated() {
    let folder = tempfile::tempdir().expect("a folder");
    let time = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&time);
    let host = Simulator::new(Scenario::Tour, 3, move || clock.load(Ordering::Relaxed));
    let limits = Limits {
        seal: Duration::from_secs(50),
        ..Limits::default()
    };
    let mut writer = Writer::open(folder.path(), limits, Epoch([1; 16]), now(0)).expect("it opens");
    let mut watched = watch(&host, &mut writer);
    for at in (0..SECONDS * SECOND).step_by(100_000_000) {
        time.store(at, Ordering::Relaxed);
        for one in watched.iter_mut().filter(|one| at.is_multiple_of(one.interval)) {
            one.read(at, &mut writer);
        }
        if at % SECOND == 0 {
            assert_eq!(writer.tick(now(at)).state, State::Writing);
        }
    }
    assert_eq!(writer.finish().state, State::Writing);
    let archive = Archive::open(folder.path()).expect("it opens");
    assert_eq!(archive.damages(), []);
    for one in &watched {
        one.check(&archive);
    }
}

fn watch(host: &Simulator, writer: &mut Writer) -> Vec<Watched> {
    let mut watched = Vec::new();
    for port in host.ports().expect("it lists its ports") {
        for (kind, interval) in CADENCE {
            let Opened::Active(source) = host.open(&port, kind) else {
                panic!("{kind} does not open")
            };
            watched.push(Watched {
                handle: writer.open_track(&port, source.schema()),
                source,
                interval,
                rows: Vec::new(),
            });
        }
    }
    watched
}

impl Watched {
    fn read(&mut self, at: u64, writer: &mut Writer) {
        let mut row = vec![0; self.source.schema().columns.len()];
        assert_eq!(self.source.read(&mut row), Read::Row);
        let window = Window {
            began: at,
            ended: at + 40_000,
        };
        writer.row(self.handle, window, &row);
        self.rows.push((window, row));
    }

    /// The newest row of each second.
    fn newest(&self) -> BTreeMap<u64, usize> {
        let seconds = self.rows.iter().enumerate();
        seconds
            .map(|(i, (window, _))| (window.midpoint() / SECOND, i))
            .collect()
    }

    fn check(&self, archive: &Archive) {
        let port: &PortId = &self.source.schema().port;
        let found = archive.rows(&Query {
            port,
            source: self.source.schema().source,
            columns: &[],
            from: i64::MIN,
            to: i64::MAX,
        });
        assert_eq!(found.damages, []);
        let expected: Vec<usize> = self.newest().into_values().collect();
        let kept: usize = found.rows.iter().map(|rows| rows.times.len()).sum();
        assert_eq!(kept, expected.len());
        let places = found
            .rows
            .iter()
            .flat_map(|rows| (0..rows.times.len()).map(move |i| (rows, i)));
        for ((rows, i), newest) in places.zip(expected) {
            let (window, values) = &self.rows[newest];
            assert_eq!(rows.times[i].window, *window);
            let read: Vec<u64> = rows.columns.iter().map(|column| column.values[i]).collect();
            assert_eq!(read, *values);
            self.check_extremes(rows, i, newest);
        }
    }

    /// The extremes enclose the rate of each step of the second, and are no wider than that.
    fn check_extremes(&self, rows: &Rows, i: usize, newest: usize) {
        let second = self.rows[newest].0.midpoint() / SECOND;
        let of_second = |row: usize| self.rows[row].0.midpoint() / SECOND == second;
        let steps: Vec<usize> = (1..=newest).rev().take_while(|row| of_second(*row)).collect();
        for (place, column) in rows.columns.iter().enumerate() {
            let counts = rows.track.columns[place].counts;
            let deltas: Option<Vec<u64>> = steps
                .iter()
                .map(|row| self.rows[*row].1[place].checked_sub(self.rows[row - 1].1[place]))
                .collect();
            let (Some(extremes), Some(deltas), true) = (column.extremes[i], deltas, counts) else {
                assert!(!counts || self.interval >= SECOND || column.extremes[i].is_some());
                continue;
            };
            let rates: Vec<u64> = deltas
                .iter()
                .map(|delta| delta * (SECOND / self.interval))
                .collect();
            let (low, high) = (
                rates.iter().min().expect("a step"),
                rates.iter().max().expect("a step"),
            );
            assert!(extremes.low <= *low && *low - extremes.low <= low / 1_000);
            assert!(extremes.high >= *high && extremes.high - high <= high / 1_000);
        }
    }
}
