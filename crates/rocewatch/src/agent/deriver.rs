//! The thread that follows every ring and keeps the world up to date.

use super::cadence::on_the_beat;
use super::{Event, World};
use crate::clock::{Clock, nanos};
use crate::service;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Rows are taken in as often as the fastest source is read, but no more often than this, …
const SHORTEST: Duration = Duration::from_millis(100);
/// … and no less often than this, so that a stall is noticed in time.
const LONGEST: Duration = Duration::from_millis(500);
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

/// A little behind the beat that follows `now`.
fn next_tick(now: u64, fastest: u64) -> u64 {
    let tick = fastest.clamp(nanos(SHORTEST), nanos(LONGEST));
    on_the_beat(now, tick) + tick + nanos(BEHIND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn rows_are_taken_in_right_behind_the_beat() {
        assert_eq!(next_tick(1_005 * MS, 100 * MS), 1_105 * MS);
        // It was late itself.
        assert_eq!(next_tick(1_190 * MS, 100 * MS), 1_205 * MS);
    }

    #[test]
    fn slow_sources_do_not_wake_the_deriver_ten_times_a_second_nor_fast_ones_a_hundred_times() {
        assert_eq!(next_tick(1_005 * MS, 30_000 * MS), 1_505 * MS);
        assert_eq!(next_tick(1_005 * MS, 10 * MS), 1_105 * MS);
    }
}
