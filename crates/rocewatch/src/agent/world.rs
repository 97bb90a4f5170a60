//! The node as its lanes see it: ports, sources with their states, and what the rows tell.

use super::archivist::Track;
use super::port::{OPENING_LIMIT, is_rail};
use super::watch::{PortWatch, Watch};
use super::{Event, EventLog, Findings, Health, JobId, LaneKind, Paced, PortView, SourceState, SourceView};
use crate::clock::{Clock, nanos};
use crate::config::Config;
use model::{Port, PortId, Schema, SourceKind, Why};
use signals::PortSignals;
use signals::detect::Thresholds;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The deriver runs once a second; when it has not for this long something is wrong with it.
const ASLEEP: Duration = Duration::from_secs(10);

/// All that is known now. Written by the deriver, read by the HTTP handlers.
pub(crate) struct World {
    clock: Clock,
    window: Duration,
    ports: BTreeMap<PortId, PortView>,
    watch: Watch,
    generation: u64,
    updated: u64,
    listed_at: Option<u64>,
    listing_error: Option<String>,
    findings: Findings,
    policy: doctor::Policy,
}

impl World {
    pub(super) fn new(config: &Config, uptime: Option<u64>, clock: Clock) -> Self {
        Self {
            clock,
            window: config.sampling.window,
            ports: BTreeMap::new(),
            watch: Watch::new(&config.events.thresholds(), uptime),
            generation: 0,
            updated: 0,
            listed_at: None,
            listing_error: None,
            findings: Findings::default(),
            policy: config.policy(),
        }
    }

    /// Every port, by PCI address.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &PortView> + Clone {
        self.ports.values()
    }

    /// What has happened.
    pub(crate) fn events(&self) -> &EventLog {
        self.watch.log()
    }

    /// Judges what is an event by other thresholds from now on.
    pub(super) fn adjust(&mut self, thresholds: &Thresholds) {
        self.watch.adjust(thresholds, self.ports.values_mut());
    }

    /// What the doctor found.
    pub(crate) fn findings(&self) -> &Findings {
        &self.findings
    }

    /// What the fabric is meant to be.
    pub(crate) fn policy(&self) -> &doctor::Policy {
        &self.policy
    }

    /// Judges the configuration by another policy from the next look on.
    pub(super) fn set_policy(&mut self, policy: doctor::Policy) {
        self.policy = policy;
    }

    /// Takes in what the doctor found; see [`Findings::take`].
    pub(super) fn take_findings(&mut self, found: Vec<doctor::Finding>, anew: bool, now: u64) {
        let changed = self.findings.take(found, anew, now);
        self.generation += u64::from(changed);
    }

    /// Every track that is being read.
    pub(super) fn tracks(&self) -> Vec<Track> {
        let of_port = |view: &PortView| {
            let port = &view.port;
            let tracks = view.sources.values().filter_map(|source| source.track(port));
            tracks.collect::<Vec<_>>()
        };
        self.ports.values().flat_map(of_port).collect()
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
        let opening = self.ports.values().find(|view| !view.is_settled())?;
        Some(format!("the sources of {} are being opened", opening.port.device))
    }

    /// Takes in what a lane or the registry tells.
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Ports(ports) => self.replace_ports(ports),
            Event::Dismissed(port) => self.dismiss(&port),
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
            Event::Paced(paced) => log_pace(&paced),
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
                    view.with_facts(Arc::clone(&port), rail)
                }
                old => {
                    changed = true;
                    log_arrival(&port, old.is_some());
                    if let Some(view) = old.or_else(|| self.watch.find(&port.id)) {
                        view.again(Arc::clone(&port), rail)
                    } else {
                        let watch = PortWatch::new(self.watch.thresholds());
                        PortView::new(Arc::clone(&port), rail, self.window, watch)
                    }
                }
            };
            self.ports.insert(port.id.clone(), view);
        }
        for (_, gone) in before {
            changed = true;
            tracing::warn!(device = %gone.port.device, netdev = gone.port.netdev.as_deref(), "the port is gone");
            // A netdev alone comes and goes with containers and virtual machines.
            if gone.port.has_rdma() {
                self.watch.lose(gone, self.clock.now());
            } else {
                self.watch.dismiss(gone, self.clock.now(), self.clock);
            }
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

    fn dismiss(&mut self, port: &PortId) {
        if let Some(view) = self.ports.remove(port) {
            self.watch.dismiss(view, self.clock.now(), self.clock);
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
        // What was switched off has no values any more; what goes on goes on from where it was.
        for source in SourceKind::ALL {
            if !view.sources.contains_key(&source) {
                view.signals.close(source);
            }
        }
        self.generation += 1;
    }

    fn open_track(&mut self, job: &JobId, schema: Arc<Schema>, reader: &ring::Reader) {
        let now = self.clock.now();
        if let Some((source, signals)) = find(&mut self.ports, job) {
            source.open(signals, schema, reader, now);
            self.generation += 1;
        }
    }

    fn close_track(&mut self, job: &JobId, state: SourceState) {
        if let Some((source, signals)) = find(&mut self.ports, job) {
            source.close(signals, state);
            self.generation += 1;
        }
    }

    fn count_error(&mut self, job: &JobId, why: Why) {
        if find(&mut self.ports, job).is_some_and(|(source, _)| source.count_error(why)) {
            self.generation += 1;
        }
    }

    fn recover(&mut self, job: &JobId) {
        if let Some((source, _)) = find(&mut self.ports, job) {
            source.recover();
        }
    }

    /// Takes in all rows since the last time, and looks who hangs and what happens. True while sources are being
    /// opened.
    pub(super) fn update(&mut self, now: u64) -> bool {
        let mut opening = false;
        let shape = |view: &PortView| (view.signals.layouts(), view.pfc_mask());
        // Before ports settle: a page may have been laid out meanwhile, without the series that they then have.
        let before: Vec<_> = self.ports.values().map(shape).collect();
        for view in self.ports.values_mut() {
            view.settle(now);
            for (kind, source) in &mut view.sources {
                source.watch_stall(&view.port, *kind, self.clock, now);
            }
        }
        let more = self.watch.look(&mut self.ports, now, self.clock);
        let other = before.into_iter().ne(self.ports.values().map(shape));
        self.generation += u64::from(more || other);
        for view in self.ports.values_mut() {
            for (kind, source) in &mut view.sources {
                source.take_figures();
                if source.take_news() {
                    source.watch_values(&view.signals);
                }
                if source.watch_freshness(self.clock, now) {
                    view.signals.set_fresh(*kind, source.fresh);
                }
                opening |= source.interval() == 0;
            }
        }
        self.updated = now;
        opening
    }
}

fn find<'a>(
    ports: &'a mut BTreeMap<PortId, PortView>,
    job: &JobId,
) -> Option<(&'a mut SourceView, &'a mut PortSignals)> {
    let view = ports.get_mut(&job.port)?;
    let source = view.sources.get_mut(&job.source)?;
    source.is(job).then_some((source, &mut view.signals))
}

fn log_pace(paced: &Paced) {
    let job = &paced.dearest;
    let lane = match paced.lane {
        LaneKind::Device => job.device.as_str(),
        LaneKind::Rtnl => "rtnl",
        LaneKind::Module => "module",
        LaneKind::Link => "link",
    };
    // Rounded to what a person reads; the exact interval is a metric.
    let milliseconds = |nanoseconds: u64| Duration::from_millis(nanoseconds.div_ceil(1_000_000));
    let (granted, percent) = (milliseconds(paced.granted), paced.duty * 100.0);
    if paced.granted > paced.wanted {
        tracing::info!(
            lane, dearest = %job.device, source = %job.source,
            "counters are read less often than wanted, every {granted:?}: a read of the dearest source takes {:?}, \
             and reading may take {percent} % of the time",
            milliseconds(paced.cost)
        );
    } else {
        tracing::info!(
            lane,
            "counters are read as often as wanted again, every {granted:?}"
        );
    }
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
