//! Has the detectors look at every sample, tells them what no row says, and takes in what they find.

use super::{EventLog, PortView, SourceView};
use crate::clock::{Clock, nanos};
use crate::event::Subject;
use catalog::Direction;
use model::PortId;
use signals::detect::{
    Detectors, EventChange, EventKind, NodeDetectors, PortFacts, RailTraffic, Thresholds, usual_speed,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Samples that come faster than this are looked at together.
const SHORTEST_STEP: Duration = Duration::from_millis(10);
/// A port whose sources are slow is looked at this often.
const LONGEST_STEP: Duration = Duration::from_secs(1);
/// When the agent was held up, no more looks than this make up for it: about what the rings hold.
const MOST_LOOKS: u64 = 2_000;
/// What a device that is gone is remembered for; after that its event ends, since nobody seems to miss it.
const MISSED: Duration = Duration::from_secs(24 * 3_600);

/// What watches the ports.
pub(super) struct Watch {
    thresholds: Thresholds,
    /// How long the node had been up when the agent's clock read zero; `None` if nobody knows.
    uptime: Option<u64>,
    node: NodeDetectors,
    gone: BTreeMap<PortId, Gone>,
    log: EventLog,
}

/// What watches one port.
pub(super) struct PortWatch {
    detectors: Detectors,
    looked: Option<u64>,
    known_up: bool,
    /// Storms that are open, by direction and priority.
    storms: Vec<(Direction, Option<u8>)>,
}

/// A port whose device is no longer there.
struct Gone {
    view: PortView,
    since: u64,
}

impl PortWatch {
    pub(super) fn new(thresholds: &Thresholds) -> Self {
        Self {
            detectors: Detectors::new(*thresholds),
            looked: None,
            known_up: false,
            storms: Vec::new(),
        }
    }

    /// True while a storm is open.
    pub(super) fn has_storm(&self, direction: Direction, priority: u8) -> bool {
        self.storms.contains(&(direction, Some(priority)))
    }

    /// Remembers whether a storm is open. True if that changed.
    fn heed_storm(&mut self, change: &EventChange) -> bool {
        let event = change.event();
        let Some(direction) = event.direction.filter(|_| event.kind == EventKind::PfcStorm) else {
            return false;
        };
        let storm = (direction, event.priority);
        match change {
            EventChange::Opened(_) => self.storms.push(storm),
            EventChange::Closed(_) => self.storms.retain(|open| *open != storm),
        }
        true
    }

    /// The same detectors for a port that was created anew.
    pub(super) fn again(self) -> Self {
        Self { looked: None, ..self }
    }
}

impl Watch {
    pub(super) fn new(thresholds: &Thresholds, uptime: Option<u64>) -> Self {
        Self {
            thresholds: *thresholds,
            uptime,
            node: NodeDetectors::new(*thresholds),
            gone: BTreeMap::new(),
            log: EventLog::new(),
        }
    }

    pub(super) fn log(&self) -> &EventLog {
        &self.log
    }

    pub(super) fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Judges by other thresholds from now on.
    pub(super) fn adjust<'a>(
        &mut self,
        thresholds: &Thresholds,
        ports: impl Iterator<Item = &'a mut PortView>,
    ) {
        self.thresholds = *thresholds;
        self.node.adjust(*thresholds);
        for view in ports {
            view.watch.detectors.adjust(*thresholds);
        }
        for gone in self.gone.values_mut() {
            gone.view.watch.detectors.adjust(*thresholds);
        }
    }

    /// The device of this port has gone.
    pub(super) fn lose(&mut self, mut view: PortView, now: u64) {
        view.signals = view.signals.again();
        view.sources.clear();
        let id = view.port.id.clone();
        self.gone.insert(id, Gone { view, since: now });
    }

    /// The port before it went, if it had gone.
    pub(super) fn find(&mut self, port: &PortId) -> Option<PortView> {
        self.gone.remove(port).map(|gone| gone.view)
    }

    /// Nobody wants to know of this port any more. True if there are series less.
    pub(super) fn dismiss(&mut self, mut view: PortView, now: u64, clock: Clock) -> bool {
        let subject = Subject::of(&view.port);
        let closed: Vec<_> = view.watch.detectors.close(now).collect();
        for change in &closed {
            self.log.take(&subject, change, wall(clock));
        }
        self.log.forget(&subject)
    }

    /// Takes in the rows of every port sample by sample, and looks. True if there are other series than before.
    pub(super) fn look(&mut self, ports: &mut BTreeMap<PortId, PortView>, now: u64, clock: Clock) -> bool {
        let mut changed = false;
        let usual = usual_speeds(ports.values());
        for (view, usual) in ports.values_mut().zip(usual) {
            for change in view.look(now, usual, self.uptime) {
                changed |= view.watch.heed_storm(&change);
                changed |= self.log.take(&Subject::of(&view.port), &change, wall(clock));
            }
        }
        let rails = ports.values().filter(|view| view.rail.is_some());
        let rails = rails.map(|view| RailTraffic::of(&view.signals));
        for change in self.node.look(now, rails) {
            changed |= self.log.take(&Subject::default(), &change, wall(clock));
        }
        changed | self.look_for_the_gone(now, clock)
    }

    fn look_for_the_gone(&mut self, now: u64, clock: Clock) -> bool {
        let mut changed = false;
        for gone in self.gone.values_mut() {
            let view = &mut gone.view;
            let facts = PortFacts {
                gone: true,
                uptime: self.uptime.map(|uptime| uptime + now),
                ..PortFacts::default()
            };
            for change in view.watch.detectors.look(now, &view.signals, &facts) {
                changed |= self.log.take(&Subject::of(&view.port), &change, wall(clock));
            }
        }
        let missed = |gone: &Gone| now.saturating_sub(gone.since) > nanos(MISSED);
        let forgotten = self.gone.iter().filter(|(_, gone)| missed(gone));
        let forgotten: Vec<PortId> = forgotten.map(|(id, _)| id.clone()).collect();
        for gone in forgotten
            .iter()
            .filter_map(|id| self.gone.remove(id))
            .collect::<Vec<_>>()
        {
            changed |= self.dismiss(gone.view, now, clock);
        }
        changed
    }
}

/// Turns a time of the agent's clock into nanoseconds since 1970, by what the wall clock says now.
fn wall(clock: Clock) -> impl Fn(u64) -> i64 {
    let zero = clock.wall().saturating_sub_unsigned(clock.now());
    move |time| zero.saturating_add_unsigned(time)
}

/// The usual speed of ports like it, for each of these ports.
fn usual_speeds<'a>(ports: impl Iterator<Item = &'a PortView> + Clone) -> Vec<Option<f64>> {
    let model = |view: &'a PortView| (view.port.driver.as_str(), view.port.board.as_deref());
    let mut speeds: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for view in ports.clone() {
        let known = view.signals.speed().filter(|speed| *speed > 0.0);
        speeds.entry(model(view)).or_default().extend(known);
    }
    let usual: BTreeMap<_, _> = speeds
        .into_iter()
        .map(|(model, speeds)| (model, usual_speed(&speeds)))
        .collect();
    ports.map(|view| usual[&model(view)]).collect()
}

impl PortView {
    /// Takes in what has been read until `now`, looks at each sample, and gives what has begun and ended.
    fn look(&mut self, now: u64, usual_speed: Option<f64>, uptime: Option<u64>) -> Vec<EventChange> {
        let mut changes = Vec::new();
        let step = self.sources.values().map(SourceView::interval).min().unwrap_or(0);
        let step = step.clamp(nanos(SHORTEST_STEP), nanos(LONGEST_STEP));
        for at in looks(self.watch.looked, now, step) {
            for source in self.sources.values_mut() {
                source.drain_until(&mut self.signals, at);
            }
            if !self.is_settled() {
                continue;
            }
            self.watch.looked = Some(at);
            self.watch.known_up |= self.link_up() == Some(true);
            let stalled = self.sources.iter().find(|(_, source)| source.stalled);
            let facts = PortFacts {
                uptime: uptime.map(|uptime| uptime + at),
                usual_speed,
                known_up: self.watch.known_up,
                stalled: stalled.map(|(kind, _)| *kind),
                gone: false,
            };
            changes.extend(self.watch.detectors.look(at, &self.signals, &facts));
        }
        changes
    }
}

/// When to look: each `step` since the last look, and now.
fn looks(last: Option<u64>, now: u64, step: u64) -> impl Iterator<Item = u64> {
    let elapsed = last.map_or(0, |last| now.saturating_sub(last));
    let looks = ((elapsed + step / 2) / step).clamp(1, MOST_LOOKS);
    (0..looks).rev().map(move |left| now - left * step)
}

#[cfg(test)]
mod tests {
    use super::looks;

    #[test]
    fn each_sample_is_looked_at_once() {
        let at = |last, now| looks(last, now, 100).collect::<Vec<_>>();
        assert_eq!(at(None, 1_005), [1_005]);
        assert_eq!(at(Some(1_005), 1_105), [1_105]);
        // A look that comes a little late or early is one look.
        assert_eq!(at(Some(1_005), 1_135), [1_135]);
        assert_eq!(at(Some(1_005), 1_065), [1_065]);
        // One that was held up makes up for it.
        assert_eq!(at(Some(1_005), 1_305), [1_105, 1_205, 1_305]);
    }
}
