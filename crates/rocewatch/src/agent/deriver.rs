//! The thread that follows every ring and keeps the world up to date.

use super::{Event, World};
use crate::clock::Clock;
use crate::service;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often rows are taken in: as often as the fastest source is read by default.
const TICK: Duration = Duration::from_millis(100);

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
    let tick = crate::clock::nanos(TICK);
    let watchdog = service::watchdog_interval().map(crate::clock::nanos);
    let (mut due, mut alive_due) = (0, 0);
    loop {
        match inbox.recv_timeout(clock.until(due)) {
            Ok(event) => {
                let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
                world.apply(event);
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = clock.now();
                world.lock().unwrap_or_else(PoisonError::into_inner).update(now);
                due = now + tick;
                if let Some(interval) = watchdog.filter(|_| now >= alive_due) {
                    service::alive();
                    alive_due = now + interval;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
