//! `/metrics`: what the world holds, as text.
//!
//! The set of series changes seldom, their values ten times a second. So the set is laid out once, with each series'
//! name and labels written in advance, and an exposition is a walk along it that copies prefixes and prints numbers.
//! It is made at most once for each change of the values, when the first scraper asks, and shared by all.

mod gzip;
mod layout;
mod number;
mod own;
mod series;
mod text;

pub(crate) use text::{Encoding, Format};

use crate::agent::{Agent, Archivist};
use crate::config::Metrics;
use bytes::Bytes;
use gzip::Gzip;
use layout::Layout;
use own::Own;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes expositions and keeps the newest.
pub(crate) struct Exposition {
    own: Own,
    started: f64,
    state: Mutex<State>,
}

struct State {
    config: Metrics,
    layout: Layout,
    /// Of which values the pages are.
    updated: u64,
    pages: [Option<Bytes>; 4],
    buffer: Vec<u8>,
    gzip: Gzip,
}

impl Exposition {
    /// An exposition of an agent that started at this Unix time.
    pub(crate) fn new(config: Metrics, started: f64, archivist: Option<Arc<Archivist>>) -> Self {
        let state = State {
            config,
            layout: Layout::empty(),
            updated: 0,
            pages: Default::default(),
            buffer: Vec::new(),
            gzip: Gzip::new(),
        };
        Self {
            own: Own::new(archivist),
            started,
            state: Mutex::new(state),
        }
    }

    /// The agent's own metrics.
    pub(crate) fn own(&self) -> &Own {
        &self.own
    }

    /// Follows a new configuration.
    pub(crate) fn reconfigure(&self, config: Metrics) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.config = config;
        state.layout = Layout::empty();
        state.pages = Default::default();
    }

    /// The exposition of the newest values.
    pub(crate) fn page(&self, agent: &Agent, format: Format, encoding: Encoding) -> Bytes {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let world = agent.world();
        if state.updated != world.updated() {
            state.updated = world.updated();
            state.pages = Default::default();
        }
        let plain_at = place(format, Encoding::Identity);
        if state.pages[plain_at].is_none() {
            if state.layout.generation() != Some(world.generation()) {
                state.layout = Layout::of(&world, &state.config, self.started);
            }
            state.buffer.clear();
            state.layout.encode(&world, format, &mut state.buffer);
            drop(world);
            self.own.encode(format, &mut state.buffer);
            if format == Format::OpenMetrics {
                state.buffer.extend_from_slice(b"# EOF\n");
            }
            state.pages[plain_at] = Some(Bytes::copy_from_slice(&state.buffer));
        }
        let plain = state.pages[plain_at].clone().unwrap_or_default();
        match encoding {
            Encoding::Identity => plain,
            Encoding::Gzip => state.pages[place(format, encoding)]
                .get_or_insert_with(|| state.gzip.pack(&plain))
                .clone(),
        }
    }
}

fn place(format: Format, encoding: Encoding) -> usize {
    2 * usize::from(format == Format::OpenMetrics) + usize::from(encoding == Encoding::Gzip)
}
