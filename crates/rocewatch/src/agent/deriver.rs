//! The thread that follows every ring and keeps the world up to date.

use super::cadence::on_the_beat;
use super::{Event, World};
use crate::clock::{Clock, nanos};
use crate::service;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Rows are taken in no more often than this, several of a fast source with one wake: what a scrape shows may be so old,
/// and the detectors look at each row by itself all the same. A round costs twice what its rows do.
const SHORTEST: Duration = Duration::from_millis(500);
/// No less often than this either, so that a stall is noticed in time.
const LONGEST: Duration = Duration::from_secs(1);
/// As often as this while sources are being opened, which somebody may be waiting for.
const OPENING: Duration = Duration::from_millis(100);
/// How long after the lanes' beat: by then those that are not held up have read.
const BEHIND: Duration = Duration::from_millis(5);

/// Starts the thread. It ends when nobody is left to tell it anything.
pub(super) fn start(
    world: Arc<Mutex<World>>,
    inbox: Receiver<Event>,
    clock: Clock,
) -> std::io::Result<JoinHandle<()>> {
    let body = move || run(&world, &inbox, clock);
    std::thread::Builder::new()
        .name("deriver".to_owned())
        .stack_size(256 * 1024)
        .spawn(body)
}

fn run(world: &Mutex<World>, inbox: &Receiver<Event>, clock: Clock) {
    let watchdog = service::watchdog_interval().map(nanos);
    let (mut due, mut alive_due) = (0, 0);
    loop {
        match inbox.recv_timeout(clock.until(due)) {
            Ok(event) => {
                let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
                world.apply(event);
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = clock.now();
                let fastest = world.lock().unwrap_or_else(PoisonError::into_inner).update(now);
                due = next_tick(now, fastest);
                if let Some(interval) = watchdog.filter(|_| now >= alive_due) {
                    service::alive();
                    alive_due = now + interval;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// A little behind the beat that follows `now`: that of the fastest source, or a multiple of it.
fn next_tick(now: u64, fastest: u64) -> u64 {
    let tick = match fastest {
        0 => nanos(OPENING),
        beat => beat.saturating_mul(nanos(SHORTEST).div_ceil(beat)),
    };
    let tick = tick.min(nanos(LONGEST));
    on_the_beat(now, tick) + tick + nanos(BEHIND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn rows_are_taken_in_right_behind_the_beat() {
        assert_eq!(next_tick(1_005 * MS, 500 * MS), 1_505 * MS);
        // It was late itself.
        assert_eq!(next_tick(1_490 * MS, 500 * MS), 1_505 * MS);
    }

    #[test]
    fn of_fast_sources_several_rows_are_taken_in_together() {
        assert_eq!(next_tick(1_005 * MS, 100 * MS), 1_505 * MS);
        assert_eq!(next_tick(1_005 * MS, 10 * MS), 1_505 * MS);
        // Of 200 ms three, since two would be more often than wanted.
        assert_eq!(next_tick(1_305 * MS, 200 * MS), 1_805 * MS);
    }

    #[test]
    fn slow_sources_do_not_wake_the_deriver_often() {
        assert_eq!(next_tick(1_005 * MS, 1_000 * MS), 2_005 * MS);
        assert_eq!(next_tick(1_005 * MS, 30_000 * MS), 2_005 * MS);
        assert_eq!(next_tick(1_005 * MS, u64::MAX), 2_005 * MS);
    }

    #[test]
    fn what_is_being_opened_is_looked_for_soon() {
        assert_eq!(next_tick(1_005 * MS, 0), 1_105 * MS);
    }
}
