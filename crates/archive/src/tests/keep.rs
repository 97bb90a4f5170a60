//! Records and pins.

use super::*;
use crate::limits::State;
use crate::memory::{Mood, Rest};
use crate::pin::{FullRate, PinError};
use crate::record::{Record, Refused};
use crate::track::Track;
use ring::Row;

fn record(id: &str, began: i64, ended: Option<i64>) -> Record {
    Record {
        id: id.to_owned(),
        began,
        ended,
        body: format!("{{\"id\":\"{id}\",\"ended\":{}}}", ended.is_some()).into_bytes(),
    }
}

fn records(archive: &Archive, from: i64, to: i64) -> Vec<Record> {
    let (records, damages) = archive.records(from, to).expect("they are of this format");
    assert_eq!(damages, []);
    records
}

fn find(archive: &Archive, id: &str) -> Option<Record> {
    let all = records(archive, i64::MIN, i64::MAX);
    all.into_iter().find(|record| record.id == id)
}

#[test]
fn the_newest_version_of_a_record_counts() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    let put = |server: &mut Server, record| server.writer.put_record(&record).expect("it can be kept");
    put(&mut server, record("flap", 10, Some(20)));
    put(&mut server, record("storm", 30, None));
    server.play();
    assert_eq!(find(&open(&disk), "storm"), Some(record("storm", 30, None)));
    drop(server);
    let mut server = Server::start(&disk, small(), 10);
    put(&mut server, record("storm", 30, Some(50)));
    server.play();
    let archive = open(&disk);
    let ids = |from, to| {
        records(&archive, from, to)
            .into_iter()
            .map(|record| record.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(i64::MIN, i64::MAX), ["flap", "storm"]);
    assert_eq!(ids(20, 29), ["flap"]);
    assert_eq!(ids(50, 99), ["storm"]);
    assert_eq!(ids(51, 99), [""; 0]);
    assert_eq!(find(&archive, "storm"), Some(record("storm", 30, Some(50))));
    assert_eq!(
        server.writer.put_record(&record("a/b", 0, None)),
        Err(Refused::Id)
    );
}

#[test]
fn a_flipped_bit_costs_one_version_of_one_record_and_is_told() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    for number in 0..5 {
        let kept = server
            .writer
            .put_record(&record(&format!("r{number}"), number, None));
        kept.expect("it can be kept");
    }
    server.play();
    let files = disk.files();
    let (name, bytes) = files
        .iter()
        .find(|(name, _)| name.starts_with("records"))
        .expect("records");
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x20;
        let flawed = disk.copy();
        flawed.put(name, flipped);
        let (records, damages) = open(&flawed).records(0, 9).expect("they are of this format");
        assert_eq!((records.len(), damages.len()), (4, 1), "byte {at}");
        let mut server = Server::start(&flawed, small(), 10);
        assert!(
            server
                .writer
                .take_damages()
                .iter()
                .any(|damage| damage.file == *name)
        );
        let kept = server.writer.put_record(&record("new", 7, None));
        kept.expect("it can be kept");
        assert_eq!(server.play().state, State::Writing);
        let (records, _) = open(&flawed).records(0, 9).expect("they are of this format");
        assert_eq!(records.len(), 5, "byte {at}");
    }
}

#[test]
fn records_have_a_limit_of_their_own() {
    let disk = Memory::new();
    let limits = Limits {
        waiting_bytes: 4 << 20,
        ..small()
    };
    let mut server = Server::start(&disk, limits, 0);
    for number in 0..40 {
        let mut large = record(&format!("r{number}"), number, None);
        large.body = vec![b' '; 400_000];
        server.writer.put_record(&large).expect("it can be kept");
        let status = server.play();
        assert!(status.record_bytes <= (4 << 20) + (1 << 20) + 500_000);
    }
    let archive = open(&disk);
    assert_eq!(find(&archive, "r0"), None);
    assert!(find(&archive, "r39").is_some());
    // Rows have theirs.
    assert!(common(&archive).len() >= 28);
}

#[test]
fn records_wait_for_the_disk() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    disk.set(Mood::Full { left: 10 });
    server
        .writer
        .put_record(&record("storm", 1, None))
        .expect("it can be kept");
    assert!(matches!(server.play().state, State::Paused(_)));
    disk.set(Mood::Willing);
    assert_eq!(server.play().state, State::Writing);
    assert!(find(&open(&disk), "storm").is_some());
}

/// Ten rows a second of one source, as a ring has them.
fn full_rate(seconds: std::ops::Range<u64>) -> Vec<Row> {
    let times = seconds.flat_map(|second| (0..10).map(move |tenth| second * 1_000 + tenth * 100));
    times
        .map(|at| Row {
            number: at,
            window: window(at),
            values: row(0, SourceKind::HwCounters, at).into(),
        })
        .collect()
}

fn track() -> Track {
    Track::new(&port(0), &schema(&port(0), SourceKind::HwCounters))
}

fn pin(writer: &mut Writer, id: &str, began: i64, rows: &[Row]) -> Result<(), PinError> {
    let track = track();
    writer.pin(&record(id, began, None), &[FullRate { track: &track, rows }])
}

fn pinned(disk: &Memory, id: &str) -> Vec<u64> {
    let archive = Archive::one_file(disk, &crate::layout::pin(id)).expect("it opens");
    assert_eq!((archive.damages(), find(&archive, id).is_some()), (&[][..], true));
    let mut times = Vec::new();
    for rows in everything(&archive, 0, SourceKind::HwCounters) {
        for (i, time) in rows.times.iter().enumerate() {
            let at = time.window.began / MS;
            let values: Vec<u64> = rows.columns.iter().map(|values| values.values[i]).collect();
            assert_eq!(values, row(0, SourceKind::HwCounters, at));
            times.push(at);
        }
    }
    times
}

#[test]
fn a_pin_has_every_row_and_can_be_brought_up_to_date() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    for end in [60, 120] {
        let rows = full_rate(0..end);
        pin(&mut server.writer, "storm-1", 5, &rows).expect("it is kept");
        let times: Vec<u64> = rows.iter().map(|row| row.number).collect();
        assert_eq!(pinned(&disk, "storm-1"), times);
    }
    assert_eq!(open(&disk).pins(), ["storm-1"]);
}

#[test]
fn a_pin_grows_by_the_rows_that_came_since() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    let track = track();
    let extend = |writer: &mut Writer, rows: &[Row]| {
        let rows = [FullRate { track: &track, rows }];
        writer.extend_pin(&record("storm-1", 5, None), &rows)
    };
    assert!(
        matches!(
            extend(&mut server.writer, &full_rate(60..120)),
            Err(PinError::Disk(_))
        ),
        "there is none to grow"
    );
    pin(&mut server.writer, "storm-1", 5, &full_rate(0..60)).expect("it is kept");
    let rows = [FullRate {
        track: &track,
        rows: &full_rate(60..120),
    }];
    server
        .writer
        .extend_pin(&record("storm-1", 5, Some(7)), &rows)
        .expect("it is kept");
    let times: Vec<u64> = full_rate(0..120).iter().map(|row| row.number).collect();
    assert_eq!(pinned(&disk, "storm-1"), times);
    let archive = Archive::one_file(&disk, &crate::layout::pin("storm-1")).expect("it opens");
    assert_eq!(
        find(&archive, "storm-1").map(|record| record.ended),
        Some(Some(7))
    );
}

#[test]
fn pins_outlive_the_rows_and_have_a_limit_of_their_own() {
    let disk = Memory::new();
    let rows = full_rate(0..60);
    let mut server = Server::start(&disk, small(), 0);
    pin(&mut server.writer, "first", 1, &rows).expect("it is kept");
    let size = server.play().pin_bytes;
    server.play_for(100);
    assert_eq!(pinned(&disk, "first").len(), 600);
    drop(server);
    let limits = Limits {
        pin_bytes: size * 7 / 2,
        ..small()
    };
    let mut server = Server::start(&disk, limits, 200);
    for (began, id) in [(3, "third"), (2, "second"), (4, "fourth")] {
        pin(&mut server.writer, id, began, &rows).expect("it is kept");
    }
    assert_eq!(open(&disk).pins(), ["fourth", "second", "third"]);
    assert!(server.play().pin_bytes <= size * 7 / 2);
}

#[test]
fn a_crash_leaves_the_pin_before_or_the_pin_after() {
    let (before, after) = (full_rate(0..5), full_rate(0..10));
    for change in 0..8 {
        let disk = Memory::new();
        let mut server = Server::start(&disk, small(), 0);
        pin(&mut server.writer, "storm", 1, &before).expect("it is kept");
        disk.set(Mood::Dies {
            after: disk.changes() + change,
            done: 8,
        });
        let done = pin(&mut server.writer, "storm", 1, &after).is_ok();
        for rest in [Rest::Nothing, Rest::Half, Rest::Zeros, Rest::All] {
            let left = disk.after_power_loss(rest);
            let rows = pinned(&left, "storm").len();
            assert!(
                rows == 100 || !done && rows == 50,
                "{rows} rows after {change} changes, {rest:?}"
            );
            let mut server = Server::start(&left, small(), 100);
            assert_eq!(server.play().state, State::Writing);
        }
    }
}

#[test]
fn a_pin_that_the_disk_does_not_take_leaves_the_one_before() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    pin(&mut server.writer, "storm", 1, &full_rate(0..5)).expect("it is kept");
    disk.set(Mood::Full { left: 500 });
    assert!(matches!(
        pin(&mut server.writer, "storm", 1, &full_rate(0..50)),
        Err(PinError::Disk(_))
    ));
    disk.set(Mood::Willing);
    assert_eq!(pinned(&disk, "storm").len(), 50);
    assert_eq!(open(&disk).pins(), ["storm"]);
}
