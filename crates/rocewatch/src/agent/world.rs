//! The node as its lanes see it: ports, sources with their states, and what the rows tell.

use super::{Event, Health, JobId};
use crate::clock::{Clock, nanos};
use catalog::Signal;
use model::{Port, PortId, Schema, SourceKind, Why};
use ring::{Cursor, Row};
use signals::PortSignals;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A read under way for longer than this is a stall. Firmware answers within milliseconds, and a stall has to be
/// told within two seconds.
const STALL: Duration = Duration::from_secs(1);
/// Values of a source that gave no row for this long, or for three of its intervals if that is longer, are left out:
/// a counter that stands still because nobody could read it would look like a fabric gone quiet.
const STALE: Duration = Duration::from_secs(5);
/// The deriver runs ten times a second; when it has not for this long something is wrong with it.
const ASLEEP: Duration = Duration::from_secs(10);
/// A source that does not open within this no longer keeps the agent from being ready.
const OPENING_LIMIT: Duration = Duration::from_secs(5);

/// All that is known now. Written by the deriver, read by the HTTP handlers.
pub(crate) struct World {
    clock: Clock,
    window: Duration,
    ports: BTreeMap<PortId, PortView>,
    generation: u64,
    updated: u64,
    listed_at: Option<u64>,
    listing_error: Option<String>,
}

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
    /// Since when it is known which sources it may have.
    watched_at: Option<u64>,
    /// Which source serves which signal is decided.
    settled: bool,
}

/// One source of a port.
pub(crate) struct SourceView {
    job: Arc<JobId>,
    /// How it is.
    pub(crate) state: SourceState,
    /// Its live figures.
    pub(crate) health: Arc<Health>,
    /// Failed reads and openings by reason.
    pub(crate) errors: BTreeMap<&'static str, u64>,
    /// Why the last read gave nothing; `None` while reads succeed.
    pub(crate) failing: Option<Why>,
    /// A read has been under way for longer than a read takes.
    pub(crate) stalled: bool,
    /// Its values are recent enough to be shown.
    pub(crate) fresh: bool,
    track: Option<Track>,
}

struct Track {
    schema: Arc<Schema>,
    cursor: Cursor,
    row: Row,
    last: u64,
}

/// The states of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceState {
    /// Nobody knows yet.
    Opening,
    /// It is being read.
    Active,
    /// There is nothing to read, and why.
    NotApplicable(Why),
    /// It should work but does not, and why.
    Failed(Why),
}

impl SourceState {
    /// The word for labels and people.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Active => "active",
            Self::NotApplicable(_) => "not_applicable",
            Self::Failed(_) => "failed",
        }
    }

    /// Why it is not active.
    pub(crate) fn why(&self) -> Option<&Why> {
        match self {
            Self::Opening | Self::Active => None,
            Self::NotApplicable(why) | Self::Failed(why) => Some(why),
        }
    }
}

impl SourceView {
    /// The columns that are read, if any are.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        self.track.as_ref().map(|track| &*track.schema)
    }

    /// Its newest row as it was read.
    pub(crate) fn newest(&self) -> Option<Row> {
        let reader = self.track.as_ref()?.cursor.reader();
        let mut row = reader.row();
        reader.latest(&mut row).then_some(row)
    }

    /// Rows that its ring holds, and the bytes of the ring.
    pub(crate) fn ring(&self) -> Option<(u64, usize)> {
        let reader = self.track.as_ref()?.cursor.reader();
        Some((reader.pushed().min(reader.capacity() as u64), reader.bytes()))
    }
}

impl World {
    pub(super) fn new(window: Duration, clock: Clock) -> Self {
        Self {
            clock,
            window,
            ports: BTreeMap::new(),
            generation: 0,
            updated: 0,
            listed_at: None,
            listing_error: None,
        }
    }

    /// Every port, by PCI address.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &PortView> + Clone {
        self.ports.values()
    }

    /// Changes whenever other series than before may have to be shown.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Changes whenever values may have changed.
    pub(crate) fn updated(&self) -> u64 {
        self.updated
    }

    /// True once the ports have been listed.
    pub(crate) fn is_listed(&self) -> bool {
        self.listed_at.is_some()
    }

    /// Why the ports could not be listed the last time, if they could not.
    pub(crate) fn listing_error(&self) -> Option<&str> {
        self.listing_error.as_deref()
    }

    /// For how long nothing has been derived, if that is too long.
    pub(crate) fn sleeping_for(&self, now: u64) -> Option<Duration> {
        let asleep = Duration::from_nanos(now.saturating_sub(self.updated));
        (asleep > ASLEEP).then_some(asleep)
    }

    /// What is still missing before everything that can be sampled is being sampled.
    pub(crate) fn not_ready(&self, now: u64) -> Option<String> {
        let Some(listed_at) = self.listed_at else {
            return Some(match &self.listing_error {
                Some(error) => format!("the ports cannot be listed: {error}"),
                None => "the ports are being listed".to_owned(),
            });
        };
        if now.saturating_sub(listed_at) > nanos(OPENING_LIMIT) {
            return None;
        }
        let opening = self.ports.values().find(|view| !view.settled)?;
        Some(format!("the sources of {} are being opened", opening.port.device))
    }

    /// Takes in what a lane or the registry tells.
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Ports(ports) => self.replace_ports(ports),
            Event::ListingFailed(what) => {
                if self.listing_error.is_none() {
                    tracing::warn!("the ports cannot be listed: {what}");
                }
                self.listing_error = Some(what);
            }
            Event::Watched { port, sources } => self.start_watching(&port, sources),
            Event::Opened { job, schema, reader } => self.open_track(&job, schema, &reader),
            Event::Closed { job, state } => self.close_track(&job, state),
            Event::Missed { job, why } => self.count_error(&job, why),
            Event::Recovered { job } => self.recover(&job),
        }
    }

    fn replace_ports(&mut self, ports: Vec<Arc<Port>>) {
        if let Some(error) = self.listing_error.take() {
            tracing::info!("the ports can be listed again, after: {error}");
        }
        let first = self.listed_at.is_none();
        self.listed_at.get_or_insert_with(|| self.clock.now());
        let mut before = std::mem::take(&mut self.ports);
        let mut rails = 0;
        let mut changed = false;
        for port in ports {
            let rail = is_rail(&port).then(|| {
                rails += 1;
                rails - 1
            });
            let view = match before.remove(&port.id) {
                Some(view) if view.port.same_instance(&port) => {
                    changed |= view.port != port || view.rail != rail;
                    PortView {
                        port: Arc::clone(&port),
                        rail,
                        ..view
                    }
                }
                old => {
                    changed = true;
                    log_arrival(&port, old.is_some());
                    PortView::new(Arc::clone(&port), rail, self.window)
                }
            };
            self.ports.insert(port.id.clone(), view);
        }
        for gone in before.values() {
            changed = true;
            tracing::warn!(device = %gone.port.device, netdev = gone.port.netdev.as_deref(), "the port is gone");
        }
        if first && self.ports.is_empty() {
            tracing::warn!(
                "no port found: this node has no RDMA device and no physical Ethernet port; watching for one to appear"
            );
        }
        if changed {
            self.generation += 1;
        }
    }

    fn start_watching(&mut self, port: &PortId, sources: Vec<(Arc<JobId>, Arc<Health>)>) {
        let Some(view) = self.ports.get_mut(port) else {
            return;
        };
        view.watched_at = Some(self.clock.now());
        view.sources = sources
            .into_iter()
            .map(|(job, health)| (job.source, SourceView::new(job, health)))
            .collect();
        self.generation += 1;
    }

    fn open_track(&mut self, job: &JobId, schema: Arc<Schema>, reader: &ring::Reader) {
        let Some((view, signals)) = find(&mut self.ports, job) else {
            return;
        };
        // The rows of the former track come first.
        view.drain(signals);
        if let SourceState::Failed(why) = &view.state {
            tracing::info!(device = %job.device, source = %job.source, "the source works again, after: {why}");
        }
        signals.open(Arc::clone(&schema));
        let row = reader.row();
        view.track = Some(Track {
            schema,
            cursor: Cursor::new(reader.clone()),
            row,
            last: self.clock.now(),
        });
        view.state = SourceState::Active;
        view.failing = None;
        self.generation += 1;
    }

    fn close_track(&mut self, job: &JobId, state: SourceState) {
        let Some((view, signals)) = find(&mut self.ports, job) else {
            return;
        };
        view.drain(signals);
        if let SourceState::Failed(why) = &state {
            *view.errors.entry(why.reason).or_default() += 1;
            if !matches!(view.state, SourceState::Failed(_)) {
                tracing::warn!(device = %job.device, source = %job.source, "the source cannot be opened: {why}");
            }
        }
        if view.track.take().is_some() {
            signals.close(job.source);
        }
        view.state = state;
        view.fresh = false;
        self.generation += 1;
    }

    fn count_error(&mut self, job: &JobId, why: Why) {
        let Some((view, _)) = find(&mut self.ports, job) else {
            return;
        };
        let count = view.errors.entry(why.reason).or_default();
        *count += 1;
        if *count == 1 {
            self.generation += 1;
        }
        if view.failing.is_none() {
            tracing::warn!(device = %job.device, source = %job.source, "reading fails: {why}");
        }
        view.failing = Some(why);
    }

    fn recover(&mut self, job: &JobId) {
        let Some((view, _)) = find(&mut self.ports, job) else {
            return;
        };
        if let Some(why) = view.failing.take() {
            tracing::info!(device = %job.device, source = %job.source, "reading works again, after: {why}");
        }
    }

    /// Takes in all rows since the last time, and looks who hangs.
    pub(super) fn update(&mut self, now: u64) {
        for view in self.ports.values_mut() {
            let before = view.signals.layouts();
            view.settle(now);
            for (kind, source) in &mut view.sources {
                source.drain(&mut view.signals);
                source.watch_stall(&view.port, *kind, now);
                if source.watch_freshness(now) {
                    view.signals.set_fresh(*kind, source.fresh);
                }
            }
            if view.signals.layouts() != before {
                self.generation += 1;
            }
        }
        self.updated = now;
    }
}

fn find<'a>(
    ports: &'a mut BTreeMap<PortId, PortView>,
    job: &JobId,
) -> Option<(&'a mut SourceView, &'a mut PortSignals)> {
    let view = ports.get_mut(&job.port)?;
    let source = view.sources.get_mut(&job.source)?;
    (*source.job == *job).then_some((source, &mut view.signals))
}

/// Rails are the node's `RoCE` ports.
fn is_rail(port: &Port) -> bool {
    port.has_rdma() && port.link_layer != model::LinkLayer::InfiniBand
}

fn log_arrival(port: &Port, again: bool) {
    tracing::info!(
        device = %port.device,
        netdev = port.netdev.as_deref(),
        driver = %port.driver,
        pci = port.pci.as_ref().map(|pci| pci.address.as_str()),
        "{}",
        if again { "the port was created anew" } else { "found a port" }
    );
}

impl PortView {
    fn new(port: Arc<Port>, rail: Option<usize>, window: Duration) -> Self {
        let signals = PortSignals::new(signals::Options {
            window: nanos(window),
        });
        Self {
            port,
            rail,
            signals,
            sources: BTreeMap::new(),
            watched_at: None,
            settled: false,
        }
    }
}

impl SourceView {
    fn new(job: Arc<JobId>, health: Arc<Health>) -> Self {
        Self {
            job,
            state: SourceState::Opening,
            health,
            errors: BTreeMap::new(),
            failing: None,
            stalled: false,
            fresh: false,
            track: None,
        }
    }

    fn drain(&mut self, signals: &mut PortSignals) {
        let Some(track) = &mut self.track else { return };
        loop {
            match track.cursor.next(&mut track.row) {
                ring::Next::Row => {
                    track.last = track.row.window.ended;
                    signals.row(self.job.source, track.row.window, &track.row.values);
                }
                ring::Next::Lost(rows) => {
                    tracing::debug!(device = %self.job.device, source = %self.job.source, rows, "rows were overwritten unread");
                }
                ring::Next::None => return,
            }
        }
    }

    fn watch_stall(&mut self, port: &Port, kind: SourceKind, now: u64) {
        let stalled = self.health.busy_for(now) > nanos(STALL);
        if stalled == self.stalled {
            return;
        }
        self.stalled = stalled;
        let (device, netdev) = (&port.device, port.netdev.as_deref());
        if stalled {
            tracing::warn!(%device, netdev, source = %kind,
                "the source does not answer: its driver or firmware hangs, and with it whatever else is read on the same lane");
        } else {
            tracing::info!(%device, netdev, source = %kind, "the source answers again");
        }
    }

    /// True if the answer changed.
    fn watch_freshness(&mut self, now: u64) -> bool {
        let Some(track) = &self.track else { return false };
        let limit = nanos(STALE).max(3 * self.health.interval.load(Relaxed));
        let read = self.health.samples.load(Relaxed) > 0;
        let fresh = read && now.saturating_sub(track.last) <= limit;
        std::mem::replace(&mut self.fresh, fresh) != fresh
    }
}

impl PortView {
    /// True once every source has been opened or has had its time.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Decides which source serves which signal, once every source has been opened or has had its time.
    fn settle(&mut self, now: u64) {
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

    /// The present value of a setting or gauge of the port, in the driver's unit.
    fn setting(&self, signal: Signal) -> Option<u64> {
        let slot = self
            .signals
            .slots()
            .iter()
            .position(|slot| slot.signal == signal && slot.index.is_none())?;
        self.signals.value(slot)
    }

    /// True if the link is up; `None` if nobody can tell.
    pub(crate) fn link_up(&self) -> Option<bool> {
        self.setting(Signal::LinkUp).map(|up| up != 0)
    }

    /// Negotiated speed; `None` while the link is down.
    pub(crate) fn speed_bits_per_second(&self) -> Option<u64> {
        self.setting(Signal::LinkSpeed)
            .map(|megabits| megabits * 1_000_000)
    }

    /// Bit p is set if PFC is enabled on priority p.
    pub(crate) fn pfc_mask(&self) -> Option<u64> {
        self.setting(Signal::ConfigPfcEnabled)
    }

    /// The priorities that PFC is enabled on.
    pub(crate) fn pfc_priorities(&self) -> Option<Vec<u8>> {
        let mask = self.pfc_mask()?;
        Some((0..8).filter(|priority| mask & (1 << priority) != 0).collect())
    }
}
