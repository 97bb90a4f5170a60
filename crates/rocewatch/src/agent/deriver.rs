//! The thread that follows every ring and keeps the world up to date.

use super::cadence::on_the_beat;
use super::{Event, World};
use crate::clock::{Clock, nanos};
use crate::service;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Rows are taken in once a second, all that came since the last time. The detectors look at each row by itself all the
/// same, and a round costs far more than its rows do: it wakes a thread, and finds every port's state in cold caches.
const INTERVAL: Duration = Duration::from_secs(1);
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
                let opening = world.lock().unwrap_or_else(PoisonError::into_inner).update(now);
                due = next_tick(now, if opening { OPENING } else { INTERVAL });
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
fn next_tick(now: u64, interval: Duration) -> u64 {
    let interval = nanos(interval);
    on_the_beat(now, interval) + interval + nanos(BEHIND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn rows_are_taken_in_right_behind_the_beat() {
        assert_eq!(next_tick(1_005 * MS, INTERVAL), 2_005 * MS);
        // It was late itself.
        assert_eq!(next_tick(1_990 * MS, INTERVAL), 2_005 * MS);
        assert_eq!(next_tick(1_005 * MS, OPENING), 1_105 * MS);
    }
}
