//! One source of a port as the world sees it: its state, its track, and what is wrong with it.

use super::{Figures, Health, JobId, archivist};
use crate::clock::Clock;
use model::{Port, Schema, SourceKind, Why};
use ring::{Cursor, Row};
use signals::PortSignals;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A read under way for longer than this is a stall. Firmware answers within milliseconds, and a stall has to be
/// told within two seconds, by a deriver that looks once a second.
const STALL: Duration = Duration::from_millis(900);
/// Values of a source that gave no row for this long, or for three of its intervals if that is longer, are left out:
/// a counter that stands still because nobody could read it would look like a fabric gone quiet.
const STALE: Duration = Duration::from_secs(5);

/// One source of a port.
#[allow(clippy::struct_excessive_bools)] // each is a condition of its own, and all combinations occur
pub(crate) struct SourceView {
    job: Arc<JobId>,
    /// How it is.
    pub(crate) state: SourceState,
    health: Arc<Health>,
    /// What it costs and how it keeps its cadence, as of the last update of the world.
    pub(crate) figures: Figures,
    /// Failed reads and openings by reason.
    pub(crate) errors: BTreeMap<&'static str, u64>,
    /// Why the last read gave nothing; `None` while reads succeed.
    pub(crate) failing: Option<Why>,
    /// A read has been under way for longer than a read takes.
    pub(crate) stalled: bool,
    /// It answers, but with values that no longer are those of the hardware.
    pub(crate) frozen: bool,
    /// Counters that stand at the end of their width.
    pub(crate) full: Vec<String>,
    /// Its values are recent enough to be shown.
    pub(crate) fresh: bool,
    /// A row has come since somebody last asked.
    news: bool,
    track: Option<Track>,
}

struct Track {
    schema: Arc<Schema>,
    cursor: Cursor,
    row: Row,
    /// `row` was copied from the ring, and not handed on yet.
    held: bool,
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

    /// Its track, for whoever follows the ring as well.
    pub(super) fn track(&self, port: &Arc<Port>) -> Option<archivist::Track> {
        let track = self.track.as_ref()?;
        Some(archivist::Track {
            job: Arc::clone(&self.job),
            port: Arc::clone(port),
            schema: Arc::clone(&track.schema),
            reader: track.cursor.reader().clone(),
        })
    }

    pub(super) fn new(job: Arc<JobId>, health: Arc<Health>) -> Self {
        Self {
            job,
            state: SourceState::Opening,
            health,
            figures: Figures::default(),
            errors: BTreeMap::new(),
            failing: None,
            stalled: false,
            frozen: false,
            full: Vec::new(),
            fresh: false,
            news: false,
            track: None,
        }
    }

    /// Follows a new track, behind the last row of the former one.
    pub(super) fn open(
        &mut self,
        signals: &mut PortSignals,
        schema: Arc<Schema>,
        reader: &ring::Reader,
        now: u64,
    ) {
        self.drain(signals);
        if let SourceState::Failed(why) = &self.state {
            tracing::info!(device = %self.job.device, source = %self.job.source, "the source works again, after: {why}");
        }
        signals.open(Arc::clone(&schema));
        let row = reader.row();
        let cursor = Cursor::new(reader.clone());
        self.track = Some(Track {
            schema,
            cursor,
            row,
            held: false,
            last: now,
        });
        self.state = SourceState::Active;
        self.failing = None;
    }

    /// There is no track any more, or there never was one.
    pub(super) fn close(&mut self, signals: &mut PortSignals, state: SourceState) {
        self.drain(signals);
        if let SourceState::Failed(why) = &state {
            *self.errors.entry(why.reason).or_default() += 1;
            if !matches!(self.state, SourceState::Failed(_)) {
                tracing::warn!(device = %self.job.device, source = %self.job.source, "the source cannot be opened: {why}");
            }
        }
        if self.track.take().is_some() {
            signals.close(self.job.source);
            self.figures.ring_rows = None;
        }
        self.state = state;
        self.fresh = false;
        self.frozen = false;
        self.full.clear();
    }

    /// Counts a read that gave nothing; true if it is the first for its reason.
    pub(super) fn count_error(&mut self, why: Why) -> bool {
        let count = self.errors.entry(why.reason).or_default();
        *count += 1;
        let first = *count == 1;
        if self.failing.is_none() {
            tracing::warn!(device = %self.job.device, source = %self.job.source, "reading fails: {why}");
        }
        self.failing = Some(why);
        first
    }

    /// Reads give rows again.
    pub(super) fn recover(&mut self) {
        if let Some(why) = self.failing.take() {
            tracing::info!(device = %self.job.device, source = %self.job.source, "reading works again, after: {why}");
        }
    }

    /// True if news of `job` is news of this source.
    pub(super) fn is(&self, job: &JobId) -> bool {
        *self.job == *job
    }

    /// How often rows come, in nanoseconds: never where nothing is read, and nobody knows before the first.
    pub(super) fn interval(&self) -> u64 {
        match self.state {
            SourceState::Opening => 0,
            SourceState::Active => self.figures.interval,
            SourceState::NotApplicable(_) | SourceState::Failed(_) => u64::MAX,
        }
    }

    /// Hands every row that is new to `signals`.
    fn drain(&mut self, signals: &mut PortSignals) {
        self.drain_until(signals, u64::MAX);
    }

    /// Hands every row that is new, and was read by `time`, to `signals`.
    pub(super) fn drain_until(&mut self, signals: &mut PortSignals, time: u64) {
        let Some(track) = &mut self.track else { return };
        loop {
            if !track.held {
                match track.cursor.next(&mut track.row) {
                    ring::Next::Row => track.held = true,
                    ring::Next::Lost(rows) => {
                        tracing::debug!(device = %self.job.device, source = %self.job.source, rows, "rows were overwritten unread");
                        continue;
                    }
                    ring::Next::None => return,
                }
            }
            if track.row.window.ended > time {
                return;
            }
            track.held = false;
            track.last = track.row.window.ended;
            self.news = true;
            signals.row(self.job.source, track.row.window, &track.row.values);
        }
    }

    /// True if a row has come since the last call.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Notices, and tells, when a read hangs and when it no longer does.
    pub(super) fn watch_stall(&mut self, port: &Port, kind: SourceKind, clock: Clock, now: u64) {
        let stalled = self.health.busy_for(now) > clock.real(STALL);
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

    /// Notices, and tells, when values stand still that should move, and when a counter is full.
    pub(super) fn watch_values(&mut self, signals: &PortSignals) {
        let (device, source) = (&self.job.device, self.job.source);
        let frozen = signals.is_frozen(source);
        if frozen != self.frozen {
            self.frozen = frozen;
            if frozen {
                tracing::warn!(%device, %source,
                    "the firmware's counters stand still while traffic passes: it has stopped counting, or its driver has stopped asking; reload the driver when the node is free");
            } else {
                tracing::info!(%device, %source, "the firmware's counters move again");
            }
        }
        if signals.full(source).eq(self.full.iter().map(String::as_str)) {
            return;
        }
        let full: Vec<_> = signals.full(source).map(str::to_owned).collect();
        for counter in full.iter().filter(|counter| !self.full.contains(counter)) {
            tracing::warn!(%device, %source, counter,
                "the counter is full and counts no more until somebody clears it, as perfquery -R does");
        }
        self.full = full;
    }

    /// Takes over what its lane has counted, while there is a track.
    pub(super) fn take_figures(&mut self) {
        if let Some(track) = &self.track {
            let reader = track.cursor.reader();
            let rows = reader.pushed().min(reader.capacity() as u64);
            self.figures = self.health.figures(rows);
        }
    }

    /// True if the answer changed.
    pub(super) fn watch_freshness(&mut self, clock: Clock, now: u64) -> bool {
        let Some(track) = &self.track else { return false };
        let limit = clock.real(STALE).max(3 * self.figures.interval);
        let read = self.figures.samples > 0;
        let fresh = read && now.saturating_sub(track.last) <= limit;
        std::mem::replace(&mut self.fresh, fresh) != fresh
    }
}
