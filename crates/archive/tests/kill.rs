//! `kill -9` in the middle of writing, again and again, on the file system that there is.

// A test may start itself and kill it, and take its time.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use archive::{Archive, Epoch, Limits, Now, Query, State, Writer};
use model::{DeviceId, Port, PortId, Schema, SourceKind};
use ring::Window;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: u64 = 100;
const SECOND: u64 = 1_000_000_000;
/// What the one that is killed is told by: the folder, and the second to begin with.
const FOLDER: &str = "ARCHIVE_TEST_FOLDER";
const BEGIN: &str = "ARCHIVE_TEST_BEGIN";
/// Recorded seconds that are kept.
const KEPT: u64 = 280;

fn port() -> Port {
    let id = PortId {
        device: DeviceId::pci("0000:1a:00.0"),
        number: 1,
    };
    Port::bare(id, "mlx5_0", "mlx5_core")
}

fn limits() -> Limits {
    Limits {
        recorded: Duration::from_secs(KEPT),
        seal: Duration::from_secs(5),
        sync: Duration::from_secs(2),
        ..Limits::default()
    }
}

fn open(folder: &Path, second: u64) -> Writer {
    Writer::open(folder, limits(), Epoch([1; 16]), now(second)).expect("the archive opens")
}

fn now(second: u64) -> Now {
    Now {
        monotonic: second * SECOND,
        wall: (second * SECOND).cast_signed(),
    }
}

fn row(second: u64) -> Vec<u64> {
    (0..50)
        .map(|column| column * 1_000 + second * second * column)
        .collect()
}

fn play(writer: &mut Writer, seconds: impl Iterator<Item = u64>, mut written: impl FnMut(u64)) {
    let port = port();
    let names = (0..50).map(|column| format!("counter_{column}"));
    let schema = Schema::new(port.id.clone(), &port.driver, SourceKind::Ethtool, names);
    let track = writer.open_track(&port, &schema);
    for second in seconds {
        let window = Window {
            began: second * SECOND,
            ended: second * SECOND,
        };
        writer.row(track, window, &row(second));
        assert_eq!(writer.tick(now(second + 1)).state, State::Writing);
        written(second);
    }
}

/// The one that is killed.
#[test]
#[ignore = "run by the test below"]
fn write_until_killed() {
    let folder = std::env::var(FOLDER).expect("the test below sets it");
    let begin: u64 = std::env::var(BEGIN)
        .expect("the test below sets it")
        .parse()
        .expect("a number");
    play(&mut open(Path::new(&folder), begin), begin.., |second| {
        println!("\nwritten {second}");
    });
}

/// Lets another process write from `begin` on, and kills it when it has written `seconds`, and perhaps more. Gives the
/// last second that it told of.
fn write_and_kill(folder: &Path, begin: u64, seconds: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().expect("this program has a file"))
        .args(["--ignored", "--exact", "write_until_killed", "--nocapture"])
        .env(FOLDER, folder)
        .env(BEGIN, begin.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut last = None;
    let mut told = || {
        let line = lines.next()?.expect("it is text");
        last = line
            .strip_prefix("written ")
            .map(|second| second.parse().expect("a number"))
            .or(last);
        Some(last)
    };
    while told().expect("it goes on until it is killed") < Some(begin + seconds) {}
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    // What it told of before it died.
    while told().is_some() {}
    last.expect("it has told of some")
}

fn seconds(folder: &Path) -> Vec<u64> {
    let archive = Archive::open(folder).expect("it opens");
    let port = port().id;
    let found = archive.rows(&Query {
        port: &port,
        source: SourceKind::Ethtool,
        columns: &[],
        from: i64::MIN,
        to: i64::MAX,
    });
    assert_eq!(found.damages, []);
    let mut seconds = Vec::new();
    for rows in &found.rows {
        for (i, time) in rows.times.iter().enumerate() {
            let second = time.window.began / SECOND;
            let read: Vec<u64> = rows.columns.iter().map(|column| column.values[i]).collect();
            assert_eq!(read, row(second));
            seconds.push(second);
        }
    }
    seconds
}

#[test]
fn a_killed_writer_loses_nothing_that_it_told_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut begin = 0;
    let mut noise = 1_u64;
    for round in 0..ROUNDS {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let told = write_and_kill(folder.path(), begin, (noise >> 33) % 40);
        let found = seconds(folder.path());
        let last = *found.last().expect("there are rows");
        assert!(
            last == told || last == told + 1,
            "round {round}: {last} found, {told} told"
        );
        assert!(
            found.windows(2).all(|pair| pair[0] + 1 == pair[1]),
            "round {round}: {found:?}"
        );
        assert!(
            found[0] <= last.saturating_sub(KEPT - 1),
            "round {round}: {found:?}"
        );
        begin = last + 1;
    }
    play(&mut open(folder.path(), begin), begin..begin + 10, |_| {});
    assert_eq!(seconds(folder.path()).last(), Some(&(begin + 9)));
}
