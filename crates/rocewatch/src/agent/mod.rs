//! Sampling: who reads what, when, on which thread, and what becomes of it.
//!
//! ```text
//! registry ──commands──▶ lanes ──rows──▶ rings ◀──cursors── deriver ──▶ World ◀── /metrics, API, `ports`
//!    ▲ changes             └────────────events───────────────▲
//! ```
//! A lane never waits for anybody but the kernel: it hands rows over in rings and all else in a channel.

mod archivist;
mod cadence;
mod deriver;
mod events;
mod examiner;
mod health;
mod incidents;
mod inquiry;
mod lane;
mod port;
mod readers;
mod registry;
mod restraint;
mod source;
mod watch;
mod world;

pub(crate) use archivist::{Archivist, Describe, News};
pub(crate) use events::{Change, EventLog};
pub(crate) use examiner::{Findings, facts, looks};
pub(crate) use health::{Figures, Health, READ_TIME_BOUNDS, ReadTimes};
pub(crate) use port::PortView;
pub(crate) use source::{SourceState, SourceView};
pub(crate) use world::World;

use crate::clock::Clock;
use crate::config::Config;
use model::{Host, Port, PortId, Schema, SourceKind, Why};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What lanes and the registry tell the deriver.
enum Event {
    /// The ports there are now.
    Ports(Vec<Arc<Port>>),
    /// Nobody wants to know of this port any more.
    Dismissed(PortId),
    /// The ports could not be listed; those known stay.
    ListingFailed(String),
    /// A port is watched through these sources, all that it may have, from now on.
    Watched {
        port: PortId,
        sources: Vec<(Arc<JobId>, Arc<Health>)>,
    },
    /// The source has a new track.
    Opened {
        job: Arc<JobId>,
        schema: Arc<Schema>,
        reader: ring::Reader,
    },
    /// The source cannot be read.
    Closed { job: Arc<JobId>, state: SourceState },
    /// A read gave nothing.
    Missed { job: Arc<JobId>, why: Why },
    /// A read gave a row again.
    Recovered { job: Arc<JobId> },
    /// A lane reads at another pace than was last told.
    Paced(Paced),
}

/// How a lane keeps within its share of time.
struct Paced {
    lane: LaneKind,
    /// The source whose reads cost the most.
    dearest: Arc<JobId>,
    /// What a read of it costs, in nanoseconds.
    cost: u64,
    /// The shortest interval that any source of the lane is granted, in nanoseconds.
    granted: u64,
    /// The shortest that is wanted.
    wanted: u64,
    /// The share, 0..=1.
    duty: f64,
}

/// One source of one port, for as long as the device stays the same instance: what a hung lane still has to say of a
/// device that was unplugged must not be taken for news of the one plugged in since.
#[derive(Debug, PartialEq, Eq)]
struct JobId {
    port: PortId,
    /// The name that people know the device by.
    device: String,
    source: SourceKind,
    epoch: u64,
}

/// The running agent: threads that end with the process, and the world as they see it.
pub(crate) struct Agent {
    world: Arc<Mutex<World>>,
    registry: Sender<registry::Order>,
    deriver: JoinHandle<()>,
    /// Has the doctor look at once; `None` where it does not look by itself.
    examine: Option<Sender<()>>,
}

impl Agent {
    /// Starts watching `host`, which had been up for `uptime` nanoseconds when the clock read zero, if that is known.
    ///
    /// # Errors
    /// If the system has no thread left to give.
    pub(crate) fn start(
        host: Arc<dyn Host>,
        config: &Config,
        uptime: Option<u64>,
        clock: Clock,
    ) -> std::io::Result<Self> {
        let (events, inbox) = channel();
        let (registry, orders) = channel();
        let world = Arc::new(Mutex::new(World::new(config, uptime, clock)));
        let deriver = deriver::start(Arc::clone(&world), inbox, clock)?;
        registry::start(host, config.clone(), events, orders, clock)?;
        Ok(Self {
            world,
            registry,
            deriver,
            examine: None,
        })
    }

    /// Has every row, event and incident written into the archive in `folder` from now on.
    ///
    /// # Errors
    /// Another process writes it, or another version of this program did.
    pub(crate) fn archive(
        &self,
        host: Arc<dyn Host>,
        folder: PathBuf,
        limits: archive::Limits,
        epoch: archive::Epoch,
        describe: Describe,
        clock: Clock,
    ) -> Result<Archivist, archive::OpenError> {
        let world = Arc::clone(&self.world);
        Archivist::start(folder, limits, epoch, host, world, describe, clock)
    }

    /// Has the doctor look at the node from now on: at once, when something changes, and every hour.
    ///
    /// # Errors
    /// If the system has no thread left to give.
    pub(crate) fn examine(&mut self, host: Arc<dyn Host>, clock: Clock) -> std::io::Result<()> {
        let (sender, signs) = channel();
        let examiner = examiner::Examiner {
            host,
            world: Arc::clone(&self.world),
            clock,
        };
        readers::spawn("doctor", move || examiner.run(&signs))?;
        self.examine = Some(sender);
        Ok(())
    }

    /// Has every source closed, each as soon as the kernel lets go of its lane.
    pub(crate) fn end(&self) {
        let _ = self.registry.send(registry::Order::End);
    }

    /// True once every source is closed: the deriver lives as long as there is a lane.
    pub(crate) fn has_ended(&self) -> bool {
        self.deriver.is_finished()
    }

    /// The world now. The lock is held by the deriver for microseconds at a time and by no lane ever.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a new configuration: which devices are watched, how often, and what is an event.
    pub(crate) fn reconfigure(&self, config: &Config) {
        {
            let mut world = self.world();
            world.adjust(&config.events.thresholds());
            world.set_policy(config.policy());
        }
        if let Some(examine) = &self.examine {
            // The thread lives as long as the process.
            let _ = examine.send(());
        }
        if self
            .registry
            .send(registry::Order::Reconfigure(Box::new(config.clone())))
            .is_err()
        {
            tracing::error!("the thread that lists the ports has ended; restart the daemon");
        }
    }
}

/// What is read one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneKind {
    /// One per device: a firmware that hangs holds up its own device alone.
    Device,
    /// One for the node: the kernel serialises these reads by its rtnl lock anyhow.
    Rtnl,
    /// One for the node: modules are under that lock too, but slow, and would use up the time of the others.
    Module,
    /// One for the node: answers from memory, at once, whatever hangs.
    Link,
}

fn lane_of(source: SourceKind) -> LaneKind {
    match source {
        SourceKind::HwCounters
        | SourceKind::DeviceCounters
        | SourceKind::PortCounters
        | SourceKind::Hwmon
        | SourceKind::Verbs
        | SourceKind::QpCounters => LaneKind::Device,
        SourceKind::Ethtool | SourceKind::Settings | SourceKind::Dcb => LaneKind::Rtnl,
        SourceKind::Module => LaneKind::Module,
        SourceKind::Link | SourceKind::Aer => LaneKind::Link,
    }
}
