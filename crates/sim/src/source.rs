//! Sources and changes: the model behind the traits of a host.

use crate::columns::{Cell, cells};
use crate::rail::Rail;
use crate::server;
use crate::world::World;
use model::{Change, Changes, Opened, Port, Read, Schema, Source, SourceKind, Why};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The server, its clock, and who waits for it.
pub(crate) struct Shared {
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// When the scenario began.
    origin: u64,
    world: Mutex<World>,
    changed: Condvar,
}

impl Shared {
    pub(crate) fn new(world: World, clock: Box<dyn Fn() -> u64 + Send + Sync>) -> Self {
        let origin = clock();
        Self {
            clock,
            origin,
            world: Mutex::new(world),
            changed: Condvar::new(),
        }
    }

    /// The server as it is now.
    pub(crate) fn now(&self) -> MutexGuard<'_, World> {
        // A panic elsewhere leaves the model between two steps at worst, which is a server all the same.
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        self.catch_up(&mut world);
        world
    }

    fn catch_up(&self, world: &mut World) {
        let before = changes(world);
        world.play((self.clock)().saturating_sub(self.origin));
        if changes(world) != before {
            self.changed.notify_all();
        }
    }
}

/// How much has changed so far.
fn changes(world: &World) -> u32 {
    let of = |mark: Mark| mark.flips + mark.registrations;
    world.rails.iter().map(|rail| of(Mark::of(rail))).sum()
}

/// What tells that something has changed on a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// How often the carrier came and went.
    flips: u32,
    registrations: u32,
}

impl Mark {
    fn of(rail: &Rail) -> Self {
        Self {
            flips: rail.carrier_up + rail.carrier_down,
            registrations: rail.driver.registrations(),
        }
    }
}

/// One source of one NIC.
pub(crate) struct Columns {
    shared: Arc<Shared>,
    rail: usize,
    /// The RDMA device that it was opened on.
    registrations: u32,
    schema: Arc<Schema>,
    cells: Vec<Cell>,
}

impl Columns {
    /// Opens a source of the NIC of `rail`.
    pub(crate) fn open(shared: &Arc<Shared>, rail: usize, port: &Port, kind: SourceKind) -> Opened {
        let world = shared.now();
        let cells = cells(world.setup, kind);
        if cells.is_empty() {
            return Opened::NotApplicable(Why::new(
                "not_on_this_driver",
                format!("{} of the simulated server has no {kind}", port.device),
            ));
        }
        let driver = &world.rails[rail].driver;
        let registrations = driver.registrations();
        if let Some(why) = driver.refuses(kind, registrations) {
            return Opened::Failed(why);
        }
        let names = cells.iter().map(|cell| cell.name.as_str());
        let schema = Arc::new(Schema::new(
            port.id.clone(),
            world.setup.nic.make().driver,
            kind,
            names,
        ));
        Opened::Active(Box::new(Self {
            shared: Arc::clone(shared),
            rail,
            registrations,
            schema,
            cells,
        }))
    }
}

impl Source for Columns {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        let world = self.shared.now();
        let rail = &world.rails[self.rail];
        if let Some(why) = rail.driver.refuses(self.schema.source, self.registrations) {
            return Read::Missing(why);
        }
        for (value, cell) in row.iter_mut().zip(&self.cells) {
            *value = cell.read(rail);
        }
        Read::Row
    }
}

/// Carriers and RDMA devices that come and go.
pub(crate) struct RailChanges {
    shared: Arc<Shared>,
    seen: Vec<Mark>,
}

/// How often the model is looked at while nobody reads it.
const LOOK: Duration = Duration::from_millis(100);

impl RailChanges {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let seen = shared.now().rails.iter().map(Mark::of).collect();
        Self {
            shared: Arc::clone(shared),
            seen,
        }
    }

    /// Adds what changed since the last look.
    fn take(&mut self, world: &World, found: &mut Vec<Change>) -> bool {
        let length = found.len();
        for (rail, (seen, state)) in self.seen.iter_mut().zip(&world.rails).enumerate() {
            let before = std::mem::replace(seen, Mark::of(state));
            if before.flips != seen.flips {
                let ifindex = server::ifindex(rail);
                found.push(Change::Link { ifindex });
            }
            if before.registrations != seen.registrations {
                found.push(Change::Devices);
            }
        }
        found.len() > length
    }
}

impl Changes for RailChanges {
    fn wait(&mut self, timeout: Duration, found: &mut Vec<Change>) -> Result<(), Why> {
        let shared = Arc::clone(&self.shared);
        let mut world = shared.now();
        let mut left = timeout;
        while !self.take(&world, found) && !left.is_zero() {
            let look = left.min(LOOK);
            let (woken, waited) = shared
                .changed
                .wait_timeout(world, look)
                .unwrap_or_else(PoisonError::into_inner);
            world = woken;
            shared.catch_up(&mut world);
            if waited.timed_out() {
                left -= look;
            }
        }
        Ok(())
    }
}
