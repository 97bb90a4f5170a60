//! Writing and reading, with nothing in the way.

use super::*;
use crate::damage::OpenError;
use crate::limits::State;
use std::num::NonZeroU64;
use std::path::Path;

fn lasting() -> Limits {
    Limits {
        recorded: Duration::from_secs(3_600),
        ..small()
    }
}

#[test]
fn what_was_written_is_found_at_every_moment_and_once() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, lasting(), 0);
    for second in 1..=42 {
        assert_eq!(server.play().state, State::Writing);
        let archive = open(&disk);
        assert_eq!(common(&archive), (0..second).collect());
        assert_eq!(archive.damages(), []);
    }
    assert!(disk.files().iter().any(|(name, _)| is_segment(name)));
    assert!(disk.files().iter().any(|(name, _)| is_log(name)));
}

#[test]
fn a_restart_goes_on_where_the_last_run_ended() {
    let disk = Memory::new();
    for start in [0, 7, 20] {
        let mut server = Server::start(&disk, lasting(), start);
        server.play_for(5);
        assert_eq!(server.writer.take_damages(), []);
    }
    assert_eq!(common(&open(&disk)), (0..5).chain(7..12).chain(20..25).collect());
}

#[test]
fn the_second_that_is_not_over_is_written_at_the_end() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, lasting(), 0);
    server.play_for(2);
    for (port, source, reads, handle) in &server.tracks {
        for read in *reads {
            server
                .writer
                .row(*handle, window(2_000 + read), &row(*port, *source, 2_000 + read));
        }
    }
    assert_eq!(server.writer.finish().state, State::Writing);
    assert_eq!(common(&open(&disk)), (0..3).collect());
}

#[test]
fn columns_and_times_are_picked() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, lasting(), 0);
    server.play_for(20);
    let archive = open(&disk);
    let port = port(1).id;
    let found = archive.rows(&Query {
        port: &port,
        source: SourceKind::Ethtool,
        columns: &["still", "no such counter", "steady"],
        from: WALL + 2_300 * MS.cast_signed(),
        to: WALL + 18_299 * MS.cast_signed(),
    });
    assert_eq!(found.damages, []);
    let times: Vec<u64> = found
        .rows
        .iter()
        .flat_map(|rows| rows.times.iter().map(|time| time.window.began / SECOND))
        .collect();
    assert_eq!(times, (2..18).collect::<Vec<_>>());
    for rows in &found.rows {
        let columns: Vec<usize> = rows.columns.iter().map(|values| values.column).collect();
        assert_eq!(columns, [2, 0]);
    }
}

#[test]
fn a_change_of_the_schema_is_another_track() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, lasting(), 0);
    server.play_for(6);
    let port = port(0);
    let old = server.tracks.remove(0);
    server.writer.close_track(old.3);
    let new = Schema::new(port.id.clone(), &port.driver, old.1, ["still", "steady"]);
    let handle = server.writer.open_track(&port, &new);
    for second in 6..12 {
        server.writer.row(handle, window(second * 1_000), &[5, second]);
        server.play();
    }
    let archive = open(&disk);
    let rows = everything(&archive, 0, SourceKind::HwCounters);
    let shape: Vec<_> = rows
        .iter()
        .map(|rows| (rows.track.columns.len(), rows.times.len()))
        .collect();
    assert_eq!(shape, [(4, 6), (2, 6)]);
    let spans = archive.tracks();
    let of_port: Vec<_> = spans
        .iter()
        .filter(|span| span.track.port == port.id && span.track.source == SourceKind::HwCounters)
        .collect();
    assert_eq!(of_port.len(), 2);
    assert!(of_port[0].last < of_port[1].first);
    assert_eq!([of_port[0].rows, of_port[1].rows], [6, 6]);
}

#[test]
fn steps_have_the_last_value_and_the_extremes() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, lasting(), 0);
    server.play_for(20);
    let port = port(0).id;
    let ten = NonZeroU64::new(10 * SECOND).expect("not zero");
    for (source, newest) in [(SourceKind::HwCounters, 700), (SourceKind::Ethtool, 300)] {
        let query = Query {
            port: &port,
            source,
            columns: &["steady", "still"],
            from: i64::MIN,
            to: i64::MAX,
        };
        let (stepped, damages) = open(&disk).stepped(&query, ten);
        assert_eq!((stepped.len(), damages.len()), (2, 0));
        let steady = &stepped[0].steps;
        let places: Vec<_> = steady
            .iter()
            .map(|step| ((step.at - WALL) / SECOND.cast_signed(), step.rows))
            .collect();
        assert_eq!(places, [(0, 10), (10, 10)]);
        assert_eq!(steady[1].last, value(0, source, 0, 19_000 + newest));
        let extremes = steady[1].extremes.expect("it counts");
        assert!(extremes.low <= 50_000_000_000 && extremes.high >= 50_000_000_000);
        assert!(extremes.high < 50_100_000_000);
        let still = stepped[1].steps[1].extremes.expect("it counts");
        assert_eq!((still.low, still.high), (0, 0));
    }
}

fn real(folder: &Path, second: u64) -> Result<Writer, OpenError> {
    Writer::open(folder, lasting(), EPOCH, now(second))
}

#[test]
fn a_folder_has_one_writer_and_any_number_of_readers() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::with(real(folder.path(), 0).expect("it opens"), 0);
    for second in 1..=15 {
        assert_eq!(server.play().state, State::Writing);
        assert_eq!(
            common(&Archive::open(folder.path()).expect("it opens")),
            (0..second).collect()
        );
    }
    assert!(matches!(real(folder.path(), 15), Err(OpenError::Locked)));
    drop(server);
    let mut server = Server::with(real(folder.path(), 15).expect("it opens"), 15);
    server.play();
    assert_eq!(
        common(&Archive::open(folder.path()).expect("it opens")),
        (0..16).collect()
    );
}

#[test]
fn readers_that_come_at_any_moment_find_all_that_was_written_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    let written = std::sync::atomic::AtomicU64::new(0);
    let order = std::sync::atomic::Ordering::SeqCst;
    let mut server = Server::with(real(&path, 0).expect("it opens"), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for second in 1..=200 {
                assert_eq!(server.play().state, State::Writing);
                written.store(second, order);
            }
        });
        loop {
            let before = written.load(order);
            let found = common(&Archive::open(&path).expect("it opens"));
            assert!(found.len() as u64 >= before, "{} of {before}", found.len());
            assert_eq!(found, (0..found.len() as u64).collect());
            if before == 200 {
                break;
            }
        }
    });
}

#[test]
fn a_reader_keeps_what_it_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = small();
    let writer = Writer::open(folder.path(), limits, EPOCH, now(0)).expect("it opens");
    let mut server = Server::with(writer, 0);
    server.play_for(30);
    let archive = Archive::open(folder.path()).expect("it opens");
    let before = common(&archive);
    server.play_for(60);
    assert_eq!(
        common(&archive),
        before,
        "what was evicted since is still there for this reader"
    );
    assert!(!common(&Archive::open(folder.path()).expect("it opens")).contains(&0));
}

#[test]
fn a_folder_that_is_not_there_is_an_empty_archive_to_a_writer_and_an_error_to_a_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("not/there");
    assert!(matches!(Archive::open(&missing), Err(OpenError::Io { .. })));
    assert!(matches!(Archive::open(folder.path()), Err(OpenError::None(_))));
    assert!(real(&missing, 0).is_ok());
    assert_eq!(Archive::open(&missing).expect("it opens").tracks(), []);
}
