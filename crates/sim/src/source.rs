//! Sources and changes: the model behind the traits of a host.

use crate::columns::{Cell, DRIVER, cells};
use crate::server;
use crate::world::{RAILS, World};
use model::{Change, Changes, PortId, Read, Schema, Source, SourceKind, Why};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The server, its clock, and who waits for it.
pub(crate) struct Shared {
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// When the scenario began.
    origin: u64,
    world: Mutex<World>,
    flipped: Condvar,
}

impl Shared {
    pub(crate) fn new(world: World, clock: Box<dyn Fn() -> u64 + Send + Sync>) -> Self {
        let origin = clock();
        Self {
            clock,
            origin,
            world: Mutex::new(world),
            flipped: Condvar::new(),
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
        let before = flips(world);
        world.play((self.clock)().saturating_sub(self.origin));
        if flips(world) != before {
            self.flipped.notify_all();
        }
    }
}

/// How often each carrier came and went.
fn flips(world: &World) -> [u64; RAILS] {
    std::array::from_fn(|rail| {
        let counted = &world.rails[rail].counted;
        crate::columns::whole(counted.carrier_up + counted.carrier_down)
    })
}

/// One source of one NIC.
pub(crate) struct Columns {
    shared: Arc<Shared>,
    rail: usize,
    schema: Arc<Schema>,
    cells: Vec<Cell>,
}

impl Columns {
    /// `None` if the NIC does not have the source.
    pub(crate) fn open(shared: &Arc<Shared>, rail: usize, port: &PortId, source: SourceKind) -> Option<Self> {
        let cells = cells(source);
        if cells.is_empty() {
            return None;
        }
        let names = cells.iter().map(|cell| cell.name.as_str());
        let schema = Arc::new(Schema::new(port.clone(), DRIVER, source, names));
        Some(Self {
            shared: Arc::clone(shared),
            rail,
            schema,
            cells,
        })
    }
}

impl Source for Columns {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        let world = self.shared.now();
        let rail = &world.rails[self.rail];
        for (value, cell) in row.iter_mut().zip(&self.cells) {
            *value = cell.read(rail);
        }
        Read::Row
    }
}

/// Carriers that come and go.
pub(crate) struct CarrierChanges {
    shared: Arc<Shared>,
    seen: [u64; RAILS],
}

/// How often the model is looked at while nobody reads it.
const LOOK: Duration = Duration::from_millis(100);

impl CarrierChanges {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let seen = flips(&shared.now());
        Self {
            shared: Arc::clone(shared),
            seen,
        }
    }

    /// Adds the links that changed since the last look.
    fn take(&mut self, now: [u64; RAILS], found: &mut Vec<Change>) -> bool {
        let before = std::mem::replace(&mut self.seen, now);
        let changed = (0..RAILS).filter(|rail| before[*rail] != now[*rail]);
        let length = found.len();
        found.extend(changed.map(|rail| Change::Link {
            ifindex: server::ifindex(rail),
        }));
        found.len() > length
    }
}

impl Changes for CarrierChanges {
    fn wait(&mut self, timeout: Duration, found: &mut Vec<Change>) -> Result<(), Why> {
        let shared = Arc::clone(&self.shared);
        let mut world = shared.now();
        let mut left = timeout;
        while !self.take(flips(&world), found) && !left.is_zero() {
            let look = left.min(LOOK);
            let (woken, waited) = shared
                .flipped
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
