//! Asks who is on the devices when an incident opens. Nobody waits for an answer: that a firmware hangs may be what happened.

use crate::clock::nanos;
use crate::who::{Answer, Asking, Holders};
use archive::Now;
use model::{Host, Port};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A device that has not told within this does not answer. A thousand queue pairs take mlx5 a tenth of a second.
const LIMIT: Duration = Duration::from_secs(5);

/// What asks.
pub(super) struct Inquiry {
    host: Arc<dyn Host>,
    asking: Asking,
    current: Option<Current>,
}

/// The questions about one incident.
struct Current {
    at: Now,
    /// Of each device.
    answers: BTreeMap<String, Option<Answer>>,
}

impl Inquiry {
    pub(super) fn new(host: Arc<dyn Host>) -> Self {
        Self {
            host,
            asking: Asking::default(),
            current: None,
        }
    }

    /// Asks about the RDMA devices of these ports.
    pub(super) fn begin(&mut self, ports: &[Arc<Port>], at: Now) {
        let devices = self.asking.ask(&self.host, ports);
        self.current = Some(Current {
            at,
            answers: devices.into_iter().map(|device| (device, None)).collect(),
        });
    }

    /// What was answered, once: when all of it is there, or no more is waited for.
    pub(super) fn result(&mut self, now: Now) -> Option<Holders> {
        let current = self.current.as_mut()?;
        for (device, answer) in &mut current.answers {
            if answer.is_none() {
                *answer = self.asking.answer(device, Duration::ZERO);
            }
        }
        let over = now.monotonic.saturating_sub(current.at.monotonic) >= nanos(LIMIT);
        if !over && current.answers.values().any(Option::is_none) {
            return None;
        }
        let Current { at, answers } = self.current.take()?;
        Some(Holders::of(at.wall, answers.into_iter()))
    }
}
