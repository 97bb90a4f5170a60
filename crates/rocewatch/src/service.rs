//! Words to the service manager: ready, reloading, alive, stopping. Without one (`NOTIFY_SOCKET` unset) they go nowhere.

use sd_notify::NotifyState;
use std::time::Duration;

/// Everything that was found is being sampled, and the address is open.
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is being read again; `ready` follows.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "no monotonic time for the service manager"),
    }
}

/// The daemon is about to end.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Still alive; to be said at least as often as [`watchdog_interval`] asks.
pub(crate) fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// How often to say [`alive`]: half of what the service manager allows. `None` if it does not watch.
pub(crate) fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager did not take the message");
    }
}
