//! The agent is killed, or the power goes, at every single change of the disk.

use super::*;
use crate::limits::State;
use crate::memory::{Mood, Rest};

const SECONDS: u64 = 40;
/// What the limits keep at least.
const KEPT: u64 = 28;

/// What must be there whatever happens: the seconds that were written, and those that were synced.
#[derive(Clone, Copy, Debug, Default)]
struct Promise {
    written: u64,
    synced: u64,
}

/// Plays until the disk dies.
fn play(disk: &Memory) -> Promise {
    let Ok(writer) = Writer::on(Arc::new(disk.clone()), small(), EPOCH, now(0)) else {
        return Promise::default();
    };
    let mut server = Server::with(writer, 0);
    let mut promise = Promise::default();
    for second in 1..=SECONDS {
        let status = server.play();
        if status.state != State::Writing {
            break;
        }
        promise.written = second;
        // Every second tick syncs, and each is the first chance of what was written a second before.
        if second % 2 == 0 {
            promise.synced = second;
        }
    }
    promise
}

fn must_have(found: &BTreeSet<u64>, until: u64, what: &str) {
    let newest = found.last().map_or(0, |last| last + 1).max(until);
    let from = newest.saturating_sub(KEPT);
    for second in from..until {
        assert!(
            found.contains(&second),
            "{what}: second {second} of {until} is gone"
        );
    }
}

/// Looks at what is left, then lets a new agent go on with it.
fn survives(disk: &Memory, until: u64, what: &str) {
    must_have(&common(&open(disk)), until, what);
    let mut server = Server::start(disk, small(), SECONDS + 10);
    must_have(&common(&open(disk)), until, what);
    let status = server.play_for(12);
    assert_eq!((status.state, status.lost_rows), (State::Writing, 0), "{what}");
    let found = common(&open(disk));
    assert!(
        (SECONDS + 10..SECONDS + 22).all(|second| found.contains(&second)),
        "{what}: new rows are gone"
    );
}

#[test]
fn a_kill_or_a_power_loss_at_any_change_costs_no_more_than_promised() {
    let whole = Memory::new();
    assert_eq!(play(&whole).written, SECONDS);
    let changes = whole.changes();
    assert!(changes > 100, "{changes}");
    for after in 0..changes {
        for (done, rests) in [
            (15, &[Rest::All][..]),
            (8, &[Rest::All, Rest::Nothing, Rest::Half, Rest::Zeros]),
        ] {
            let disk = Memory::new();
            disk.set(Mood::Dies { after, done });
            let promise = play(&disk);
            for rest in rests {
                let promised = if matches!(rest, Rest::All) {
                    promise.written
                } else {
                    promise.synced
                };
                let what = format!("{rest:?} left after {after} changes and {done}/16");
                survives(&disk.after_power_loss(*rest), promised, &what);
            }
        }
    }
}

#[test]
fn a_log_cut_anywhere_keeps_its_whole_frames() {
    let disk = Memory::new();
    let limits = Limits {
        seal: Duration::from_secs(3_600),
        ..small()
    };
    let mut server = Server::start(&disk, limits, 0);
    let mut ends = Vec::new();
    for _ in 0..4 {
        server.play();
        ends.push(disk.files().pop().map_or(0, |(_, bytes)| bytes.len()));
    }
    let (name, bytes) = disk.files().pop().expect("there is a log");
    for length in 0..=bytes.len() {
        let cut = Memory::new();
        cut.put(&name, bytes[..length].to_vec());
        let whole = ends.iter().filter(|end| **end <= length).count() as u64;
        assert_eq!(common(&open(&cut)), (0..whole).collect(), "cut at {length}");
        if length % 16 == 0 {
            let mut server = Server::start(&cut, small(), 100);
            assert_eq!(server.play().state, State::Writing);
            let found = common(&open(&cut));
            assert_eq!(found, (0..whole).chain([100]).collect(), "cut at {length}");
        }
    }
}

#[test]
fn a_segment_cut_anywhere_is_no_obstacle() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    server.play_for(12);
    let files = disk.files();
    let (name, bytes) = files
        .iter()
        .rfind(|(name, _)| is_segment(name))
        .expect("there is a segment");
    for length in (0..bytes.len()).step_by(5) {
        let cut = disk.copy();
        cut.put(name, bytes[..length].to_vec());
        let before = common(&open(&cut));
        let mut server = Server::start(&cut, small(), 100);
        assert_eq!(server.play_for(6).state, State::Writing);
        let expected: BTreeSet<u64> = before.into_iter().chain(100..106).collect();
        assert_eq!(common(&open(&cut)), expected, "cut at {length}");
    }
}
