//! Finds the ports, follows what changes, and hands each source of each port to its lane.

use super::lane::{Assignment, Command, Handle, Lane, Pace, Tools};
use super::readers::{Readers, read_alone, spawn};
use super::{Event, Health, JobId, LaneKind, lane_of};
use crate::clock::{Clock, nanos};
use crate::config::Config;
use model::{Change, Changes, DeviceId, Host, LinkLayer, Port, PortId, SourceKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// After devices changed the ports are listed again at these distances: a driver registers the netdev first and its
/// RDMA device a moment later, and the second has no event of its own.
const SETTLE: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(300),
    Duration::from_secs(2),
    Duration::from_secs(8),
];
/// The longest wait for a change, so that an order is heeded soon.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interval of a source that is off, which is closed at the next listing: a century.
const OFF: u64 = u64::MAX / 6;

/// What the rest of the process asks of the registry.
pub(super) enum Order {
    /// Follow this configuration.
    Reconfigure(Box<Config>),
    /// Close every source and end.
    End,
}

/// Starts the registry's thread.
pub(super) fn start(
    host: Arc<dyn Host>,
    config: Config,
    events: Sender<Event>,
    orders: Receiver<Order>,
    clock: Clock,
) -> std::io::Result<()> {
    let mut registry = Registry {
        lanes: Lanes {
            host: Arc::clone(&host),
            events: events.clone(),
            clock,
            readers: Readers::start()?,
            devices: BTreeMap::new(),
            node: Vec::new(),
        },
        host,
        config,
        events,
        clock,
        watched: BTreeMap::new(),
        epoch: 0,
        listing_due: vec![0],
    };
    spawn("registry", move || registry.run(&orders)).map(drop)
}

struct Registry {
    host: Arc<dyn Host>,
    config: Config,
    events: Sender<Event>,
    clock: Clock,
    lanes: Lanes,
    watched: BTreeMap<PortId, Watched>,
    /// Grows with each port that is taken up.
    epoch: u64,
    /// When the ports are to be listed again.
    listing_due: Vec<u64>,
}

struct Watched {
    port: Arc<Port>,
    sources: Vec<(Arc<JobId>, Arc<Health>)>,
}

impl Watched {
    /// True if `port` is the same, and the same is asked of it.
    fn is_still(&self, port: &Port, config: &Config) -> bool {
        let asked = self.sources.iter().map(|(job, _)| job.source);
        port.same_instance(&self.port) && asked.eq(sources_of(port, config))
    }
}

impl Registry {
    fn run(&mut self, orders: &Receiver<Order>) {
        // Followed before the first listing, so that nothing can change unseen between the two.
        let mut changes = match self.host.changes() {
            Ok(changes) => Some(changes),
            Err(why) => {
                tracing::info!(reason = %why, "changes are found by looking every {:?}", self.config.sampling.discovery);
                None
            }
        };
        let mut found = Vec::new();
        loop {
            if self.listing_is_due() {
                self.list();
            }
            match wait(&mut changes, orders, self.until_listing(), &mut found) {
                Some(Order::Reconfigure(config)) => self.reconfigure(*config),
                Some(Order::End) => return,
                None => self.heed(&mut found),
            }
        }
    }

    fn listing_is_due(&mut self) -> bool {
        let now = self.clock.now();
        let before = self.listing_due.len();
        self.listing_due.retain(|due| *due > now);
        self.listing_due.len() < before
    }

    fn until_listing(&self) -> Duration {
        let due = self.listing_due.iter().min().copied().unwrap_or(0);
        Duration::from_nanos(due.saturating_sub(self.clock.now()))
    }

    fn list_again(&mut self, distances: &[Duration]) {
        let now = self.clock.now();
        self.listing_due.clear();
        self.listing_due
            .extend(distances.iter().map(|distance| now + nanos(*distance)));
        self.listing_due.push(now + nanos(self.config.sampling.discovery));
    }

    fn list(&mut self) {
        if self.listing_due.is_empty() {
            self.list_again(&[]);
        }
        let devices = &self.config.devices;
        let ports = match self.host.ports_but(&|name| devices.excludes(name)) {
            Ok(ports) => ports,
            Err(what) => {
                self.tell(Event::ListingFailed(what));
                return;
            }
        };
        let ports: BTreeMap<_, _> = ports
            .into_iter()
            .filter(|port| devices.watches(&names(port)))
            .map(|port| (port.id.clone(), Arc::new(port)))
            .collect();
        let gone: Vec<_> = self
            .watched
            .iter()
            .filter(|(id, watched)| {
                ports
                    .get(*id)
                    .is_none_or(|port| !watched.is_still(port, &self.config))
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            self.forget(&id);
        }
        self.tell(Event::Ports(ports.values().cloned().collect()));
        for (id, port) in ports {
            if let Some(watched) = self.watched.get_mut(&id) {
                watched.port = port;
            } else {
                self.watch(id, port);
            }
        }
    }

    fn watch(&mut self, id: PortId, port: Arc<Port>) {
        self.epoch += 1;
        let sources: Vec<_> = sources_of(&port, &self.config)
            .map(|source| {
                let job = JobId {
                    port: id.clone(),
                    device: port.device.clone(),
                    source,
                    epoch: self.epoch,
                };
                (Arc::new(job), Arc::new(Health::default()))
            })
            .collect();
        self.tell(Event::Watched {
            port: id.clone(),
            sources: sources.clone(),
        });
        for (job, health) in &sources {
            let assignment = Assignment {
                id: Arc::clone(job),
                port: Arc::clone(&port),
                health: Arc::clone(health),
            };
            self.lanes
                .send(job.source, &id.device, Command::Add(assignment), &self.config);
        }
        self.watched.insert(id, Watched { port, sources });
    }

    fn forget(&mut self, id: &PortId) {
        self.watched.remove(id);
        self.lanes
            .remove(id, self.watched.keys().any(|other| other.device == id.device));
    }

    fn heed(&mut self, found: &mut Vec<Change>) {
        for change in found.drain(..) {
            match change {
                Change::Devices => self.list_again(&SETTLE),
                Change::Link { ifindex } => {
                    self.nudge(Some(ifindex), &[SourceKind::Link, SourceKind::Settings]);
                    // A link that comes may come with another module; one that flaps must not have it read each time.
                    self.ask(Some(ifindex), &[SourceKind::Module], Health::ask_reopen);
                }
                Change::Dcb { ifindex } => self.nudge(Some(ifindex), &[SourceKind::Dcb, SourceKind::Ethtool]),
                Change::Overflow => {
                    tracing::warn!(
                        "the kernel had more changes to report than its buffer holds; looking at everything again"
                    );
                    self.list_again(&SETTLE);
                    self.nudge(
                        None,
                        &[
                            SourceKind::Link,
                            SourceKind::Settings,
                            SourceKind::Dcb,
                            SourceKind::Ethtool,
                        ],
                    );
                }
            }
        }
    }

    /// Has these sources of a netdev (or of all) read at once, and those that did not apply looked at again.
    fn nudge(&self, ifindex: Option<u32>, sources: &[SourceKind]) {
        self.ask(ifindex, sources, |health| {
            health.ask_reread() | health.ask_reopen()
        });
    }

    fn ask(&self, ifindex: Option<u32>, sources: &[SourceKind], ask: impl Fn(&Health) -> bool) {
        for watched in self.watched.values() {
            if ifindex.is_some() && watched.port.ifindex != ifindex {
                continue;
            }
            for (job, health) in &watched.sources {
                if sources.contains(&job.source) && ask(health) {
                    self.lanes.wake(job.source, &watched.port.id.device);
                }
            }
        }
    }

    fn reconfigure(&mut self, config: Config) {
        self.config = config;
        self.lanes.pace(&self.config);
        self.dismiss_unwanted();
        self.list_again(&[Duration::ZERO]);
    }

    /// Lets go of the ports that the configuration leaves out, so that nobody takes them for gone.
    fn dismiss_unwanted(&mut self) {
        let devices = &self.config.devices;
        let unwanted = self
            .watched
            .values()
            .filter(|watched| !devices.watches(&names(&watched.port)));
        let unwanted: Vec<_> = unwanted.map(|watched| watched.port.id.clone()).collect();
        for id in unwanted {
            self.forget(&id);
            self.tell(Event::Dismissed(id));
        }
    }

    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// Waits for a change or an order, at most for `limit`.
fn wait(
    changes: &mut Option<Box<dyn Changes>>,
    orders: &Receiver<Order>,
    limit: Duration,
    found: &mut Vec<Change>,
) -> Option<Order> {
    let Some(stream) = changes else {
        return orders.recv_timeout(limit).ok();
    };
    if let Err(why) = stream.wait(limit.min(PATIENCE), found) {
        tracing::warn!(reason = %why, "changes can no longer be followed; they are found by looking now and then");
        *changes = None;
    }
    orders.try_recv().ok()
}

/// Every name that a person may know the port by.
fn names(port: &Port) -> Vec<&str> {
    let mut names = vec![port.device.as_str()];
    names.extend(port.netdev.as_deref());
    names.extend(port.pci.as_ref().map(|pci| pci.address.as_str()));
    names
}

/// What is to be asked of a port: what is switched on and worth it. Counters of InfiniBand ports are left alone: on some boards they belong to the
/// fabric manager, and every refused read is a line in the kernel's log.
fn sources_of(port: &Port, config: &Config) -> impl Iterator<Item = SourceKind> {
    let (rdma, netdev) = (port.has_rdma(), port.netdev.is_some());
    let ethernet = port.link_layer != LinkLayer::InfiniBand;
    SourceKind::ALL
        .into_iter()
        .filter(|source| config.sampling.interval(*source).is_some())
        .filter(move |source| match lane_of(*source) {
            LaneKind::Device => rdma && ethernet,
            LaneKind::Rtnl | LaneKind::Module | LaneKind::Link => netdev,
        })
}

/// The lanes, made when first needed.
struct Lanes {
    host: Arc<dyn Host>,
    events: Sender<Event>,
    clock: Clock,
    readers: Readers,
    devices: BTreeMap<DeviceId, Handle>,
    node: Vec<(LaneKind, Handle)>,
}

impl Lanes {
    fn find(&self, source: SourceKind, device: &DeviceId) -> Option<&Handle> {
        match lane_of(source) {
            LaneKind::Device => self.devices.get(device),
            kind => self
                .node
                .iter()
                .find(|(known, _)| *known == kind)
                .map(|(_, lane)| lane),
        }
    }

    fn send(&mut self, source: SourceKind, device: &DeviceId, command: Command, config: &Config) {
        if self.find(source, device).is_none() {
            self.start(source, device, config);
        }
        if let Some(lane) = self.find(source, device) {
            lane.send(command);
        }
    }

    fn wake(&self, source: SourceKind, device: &DeviceId) {
        if let Some(lane) = self.find(source, device) {
            lane.send(Command::Wake);
        }
    }

    fn start(&mut self, source: SourceKind, device: &DeviceId, config: &Config) {
        let kind = lane_of(source);
        let (lane, handle) = Lane::new(Tools {
            kind,
            host: Arc::clone(&self.host),
            pace: pace(kind, config),
            events: self.events.clone(),
            clock: self.clock,
        });
        let started = match kind {
            LaneKind::Device => {
                self.readers.add(lane);
                self.devices.insert(device.clone(), handle);
                return;
            }
            LaneKind::Link => {
                self.readers.add(lane);
                Ok(())
            }
            LaneKind::Rtnl => read_alone("rtnl", lane),
            LaneKind::Module => read_alone("module", lane),
        };
        match started {
            Ok(()) => self.node.push((kind, handle)),
            Err(error) => {
                tracing::error!(%error, "no thread for a lane: raise the limit on threads (TasksMax, ulimit -u)");
            }
        }
    }

    /// Takes a port from its lanes. A device lane without a port ends, as soon as the kernel lets go of it.
    fn remove(&mut self, port: &PortId, device_has_more: bool) {
        for (_, lane) in &self.node {
            lane.send(Command::Remove(port.clone()));
        }
        if device_has_more {
            if let Some(lane) = self.devices.get(&port.device) {
                lane.send(Command::Remove(port.clone()));
            }
        } else {
            self.devices.remove(&port.device);
        }
    }

    fn pace(&self, config: &Config) {
        for lane in self.devices.values() {
            lane.send(Command::Pace(Box::new(pace(LaneKind::Device, config))));
        }
        for (kind, lane) in &self.node {
            lane.send(Command::Pace(Box::new(pace(*kind, config))));
        }
    }
}

fn pace(kind: LaneKind, config: &Config) -> Pace {
    let percent = match kind {
        LaneKind::Rtnl | LaneKind::Module => config.sampling.rtnl_duty_percent,
        LaneKind::Device | LaneKind::Link => config.sampling.device_duty_percent,
    };
    Pace {
        duty: percent / 100.0,
        intervals: SourceKind::ALL.map(|source| {
            let interval = config.sampling.interval(source);
            interval.map_or(OFF, |interval| nanos(interval).max(1))
        }),
        rings: config.rings.clone(),
    }
}
