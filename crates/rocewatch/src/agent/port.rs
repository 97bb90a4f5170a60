//! One port as the world sees it: its facts, its sources, and what its rows tell.

use super::watch::PortWatch;
use super::{SourceState, SourceView};
use crate::clock::nanos;
use catalog::{Direction, Signal};
use model::{Port, SourceKind};
use signals::PortSignals;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A source that does not open within this no longer keeps the agent from being ready.
pub(super) const OPENING_LIMIT: Duration = Duration::from_secs(5);

/// One port.
pub(crate) struct PortView {
    /// Its facts.
    pub(crate) port: Arc<Port>,
    /// Its position among the node's RDMA ports on Ethernet, by PCI address.
    pub(crate) rail: Option<usize>,
    /// What its rows tell.
    pub(crate) signals: PortSignals,
    /// Its sources, as far as they are asked at all.
    pub(crate) sources: BTreeMap<SourceKind, SourceView>,
    /// What watches it.
    pub(super) watch: PortWatch,
    /// Since when it is known which sources it may have.
    pub(super) watched_at: Option<u64>,
    /// Which source serves which signal is decided.
    settled: bool,
}

impl PortView {
    pub(super) fn new(port: Arc<Port>, rail: Option<usize>, window: Duration, watch: PortWatch) -> Self {
        let signals = PortSignals::new(signals::Options {
            window: nanos(window),
        });
        Self {
            port,
            rail,
            signals,
            sources: BTreeMap::new(),
            watch,
            watched_at: None,
            settled: false,
        }
    }

    /// The same port, whose device went and came back as another.
    pub(super) fn again(self, port: Arc<Port>, rail: Option<usize>) -> Self {
        Self {
            port,
            rail,
            signals: self.signals.again(),
            sources: BTreeMap::new(),
            watch: self.watch.again(),
            watched_at: None,
            settled: false,
        }
    }

    /// The same port, with its facts as they are now.
    pub(super) fn with_facts(self, port: Arc<Port>, rail: Option<usize>) -> Self {
        Self { port, rail, ..self }
    }

    /// True once every source has been opened or has had its time.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Decides which source serves which signal, once every source has been opened or has had its time.
    pub(super) fn settle(&mut self, now: u64) {
        let Some(watched_at) = self.watched_at.filter(|_| !self.settled) else {
            return;
        };
        let opening = self
            .sources
            .values()
            .any(|source| source.state == SourceState::Opening);
        if !opening || now.saturating_sub(watched_at) > nanos(OPENING_LIMIT) {
            self.settled = true;
            self.signals.settle();
        }
    }

    /// True if the link is up; `None` if nobody can tell.
    pub(crate) fn link_up(&self) -> Option<bool> {
        self.signals.reading(Signal::LinkUp, None).map(|up| up != 0)
    }

    /// Negotiated speed; `None` while the link is down.
    pub(crate) fn speed_bits_per_second(&self) -> Option<u64> {
        self.signals
            .reading(Signal::LinkSpeed, None)
            .map(|megabits| megabits * 1_000_000)
    }

    /// Bit p is set if PFC is enabled on priority p.
    pub(crate) fn pfc_mask(&self) -> Option<u64> {
        self.signals.reading(Signal::ConfigPfcEnabled, None)
    }

    /// True while a PFC storm is open.
    pub(crate) fn has_storm(&self, direction: Direction, priority: u8) -> bool {
        self.watch.has_storm(direction, priority)
    }

    /// The priorities that PFC is enabled on.
    pub(crate) fn pfc_priorities(&self) -> Option<Vec<u8>> {
        let mask = self.pfc_mask()?;
        Some((0..8).filter(|priority| mask & (1 << priority) != 0).collect())
    }
}

/// Rails are the node's `RoCE` ports.
pub(super) fn is_rail(port: &Port) -> bool {
    port.has_rdma() && port.link_layer != model::LinkLayer::InfiniBand
}
