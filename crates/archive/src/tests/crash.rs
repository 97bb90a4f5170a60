//! The agent is killed, or the power goes, at every single change of the disk.

use super::*;
use crate::limits::State;
use crate::memory::{Mood, Rest};

const SECONDS: u64 = 40;

/// Segments that take two seals each, of which none is let go of.
fn lasting() -> Limits {
    Limits {
        recorded: Duration::from_secs(28 * 6),
        ..small()
    }
}

/// What must be there whatever happens: the seconds that were written, and those that were synced.
#[derive(Clone, Copy, Debug, Default)]
struct Promise {
    written: u64,
    synced: u64,
}

/// Plays until the disk dies.
fn play(disk: &Memory, limits: Limits) -> Promise {
    let Ok(writer) = Writer::on(Arc::new(disk.clone()), limits, EPOCH, now(0)) else {
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
        // At least every second tick syncs.
        promise.synced = second - 1;
    }
    promise
}

fn must_have(disk: &Memory, limits: Limits, until: u64, what: &str) {
    let found = common(&open(disk));
    let newest = found.last().map_or(0, |last| last + 1).max(until);
    let from = newest.saturating_sub(limits.recorded.as_secs());
    for second in from..until {
        assert!(
            found.contains(&second),
            "{what}: second {second} of {until} is gone"
        );
    }
}

/// Looks at what is left, then lets a new agent go on with it.
fn survives(disk: &Memory, limits: Limits, until: u64, what: &str) {
    must_have(disk, limits, until, what);
    let mut server = Server::start(disk, limits, SECONDS + 10);
    must_have(disk, limits, until, what);
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
    let all = [Rest::All, Rest::Nothing, Rest::Half, Rest::Zeros];
    // Torn late, so that some blocks of a seal are there, and torn in the middle.
    for (done, limits, rests) in [(15, small(), &all[..1]), (8, lasting(), &all)] {
        let whole = Memory::new();
        assert_eq!(play(&whole, limits).written, SECONDS);
        let changes = whole.changes();
        assert!(changes > 90, "{changes}");
        for after in 0..changes {
            let disk = Memory::new();
            disk.set(Mood::Dies { after, done });
            let promise = play(&disk, limits);
            for rest in rests {
                let kill = matches!(rest, Rest::All);
                let promised = if kill { promise.written } else { promise.synced };
                let what = format!("{rest:?} left after {after} changes and {done}/16");
                survives(&disk.after_power_loss(*rest), limits, promised, &what);
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
