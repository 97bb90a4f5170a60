//! An agent for the moment that a command needs it.

use crate::agent::{Agent, PortView, SourceState, SourceView};
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Failure;
use model::Host;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A source that has not answered by then is shown as one that does not answer.
const LIMIT: u64 = 3_000_000_000;
const POLL: Duration = Duration::from_millis(20);

/// Watches `host`, and returns when every source has been opened and read once, or has had its time.
pub(super) fn watch(host: &Arc<dyn Host>, config: &Config, clock: Clock) -> Result<Agent, Failure> {
    let agent = Agent::start(Arc::clone(host), config, None, clock)
        .map_err(|error| Failure::Runtime(format!("cannot start a thread: {error}")))?;
    while clock.now() < LIMIT && !has_answered(&agent) {
        pause(POLL);
    }
    let error = agent.world().listing_error().map(str::to_owned);
    error.map_or(Ok(agent), |error| Err(Failure::Runtime(error)))
}

/// Waits; for commands only, which nobody has to stop in between.
pub(super) fn pause(duration: Duration) {
    let (_keep, never) = channel::<()>();
    let _ = never.recv_timeout(duration);
}

fn has_answered(agent: &Agent) -> bool {
    let world = agent.world();
    let read =
        |source: &SourceView| source.state != SourceState::Active || source.fresh || source.failing.is_some();
    let answered = |view: &PortView| view.is_settled() && view.sources.values().all(read);
    world.listing_error().is_some() || (world.is_listed() && world.ports().all(answered))
}
