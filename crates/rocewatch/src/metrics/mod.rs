//! `/metrics`: what the world holds, as text.
//!
//! The set of series changes seldom, their values once a second. So the set is laid out once, with each series'
//! name and labels written in advance, and an exposition is a walk along it that copies prefixes and prints numbers.
//! It is made at most once for each change of the values, when the first scraper asks, and shared by all.

mod counted;
mod gzip;
mod layout;
pub(crate) mod naming;
mod number;
mod own;
mod series;
mod text;

pub(crate) use counted::{Counted, Shown};
pub(crate) use layout::is_exposed;
pub(crate) use naming::{raw_labels, raw_sources};
pub(crate) use number::Number;
pub(crate) use own::CountedPath;
pub(crate) use text::{Encoding, Format, family_header, prefix};

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
    /// The agent's own metrics as they were last told. Kept for its memory, as the pages are.
    own: String,
    pages: [Page; 4],
    gzip: Gzip,
}

/// An exposition in one format and encoding.
#[derive(Default)]
struct Page {
    /// Of which values it is.
    updated: Option<u64>,
    bytes: Bytes,
}

impl Page {
    /// The page's memory for the next one, unless somebody is still being sent it: memory that was just used is in the
    /// caches, and new memory costs a fault for each 4 KiB.
    fn take_buffer(&mut self) -> Vec<u8> {
        let mut former = std::mem::take(&mut self.bytes);
        if !former.is_unique() {
            // The next page differs by some digits.
            return Vec::with_capacity(former.len() + former.len() / 8);
        }
        // What is left is copied to the front; of nothing at all `Bytes` keeps no memory.
        former.truncate(1);
        let mut buffer = Vec::from(former);
        buffer.clear();
        buffer
    }
}

impl Exposition {
    /// An exposition of an agent that started at this Unix time.
    pub(crate) fn new(config: Metrics, started: f64, archivist: Option<Arc<Archivist>>) -> Self {
        let state = State {
            config,
            layout: Layout::empty(started),
            own: String::new(),
            pages: Default::default(),
            gzip: Gzip::new(),
        };
        Self {
            own: Own::new(started, archivist),
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
        state.layout = Layout::empty(self.started);
        state.pages = Default::default();
    }

    /// The exposition of the newest values.
    pub(crate) fn page(&self, agent: &Agent, format: Format, encoding: Encoding) -> Bytes {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (plain, updated) = self.plain(&mut state, agent, format);
        if encoding == Encoding::Identity {
            return plain;
        }
        let State { pages, gzip, .. } = &mut *state;
        let packed = &mut pages[place(format, encoding)];
        if packed.updated != Some(updated) {
            packed.bytes = gzip.pack(&plain);
            packed.updated = Some(updated);
        }
        packed.bytes.clone()
    }

    /// The page as it is packed or sent, and of which values it is.
    fn plain(&self, state: &mut State, agent: &Agent, format: Format) -> (Bytes, u64) {
        let world = agent.world();
        let updated = world.updated();
        let page = &mut state.pages[place(format, Encoding::Identity)];
        if page.updated != Some(updated) {
            if state.layout.generation() != Some(world.generation()) {
                state.layout = Layout::of(&world, &state.config, self.started);
            }
            let mut buffer = page.take_buffer();
            state.layout.encode(&world, format, &mut buffer);
            drop(world);
            self.own.encode(format, &mut state.own);
            buffer.extend_from_slice(state.own.as_bytes());
            if format == Format::OpenMetrics {
                buffer.extend_from_slice(b"# EOF\n");
            }
            page.bytes = buffer.into();
            page.updated = Some(updated);
        }
        (page.bytes.clone(), updated)
    }
}

fn place(format: Format, encoding: Encoding) -> usize {
    2 * usize::from(format == Format::OpenMetrics) + usize::from(encoding == Encoding::Gzip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let mut buffer = Vec::with_capacity(10_000);
        buffer.extend_from_slice(&[b'x'; 8_000]);
        Page {
            updated: None,
            bytes: buffer.into(),
        }
    }

    #[test]
    fn a_page_that_nobody_is_sent_gives_its_memory_to_the_next() {
        let mut page = page();
        let place = page.bytes.as_ptr();
        let buffer = page.take_buffer();
        assert_eq!(
            (buffer.as_ptr(), buffer.len(), buffer.capacity()),
            (place, 0, 10_000)
        );
    }

    #[test]
    fn a_page_that_is_being_sent_stays_as_it_is() {
        let mut page = page();
        let sent = page.bytes.clone();
        let buffer = page.take_buffer();
        assert!(buffer.is_empty() && buffer.capacity() > 8_000);
        assert_eq!(sent, [b'x'; 8_000][..]);
    }
}
