//! A simulated GPU server with 1 to 64 `RoCE` NICs, which answers as the kernel does on a real one.
//!
//! Behind the counters stands a small model of a training job, its fabric, ECN with DCQCN, and PFC; nothing is drawn
//! at random that follows from something else. One setup and one sequence of clock readings always give the same
//! values. `docs/simulation.md` tells what the model is and what it is not.
//!
//! ```
//! use model::Host;
//! use sim::{Scenario, Simulator};
//!
//! let server = Simulator::new(Scenario::Incast, 1, || 0);
//! assert_eq!(server.ports().unwrap().len(), 8);
//! ```
//!
//! # Time
//!
//! The simulator has no time of its own: it plays to where its clock stands, whenever it is asked something. Time passes
//! faster by giving it a faster clock, which must then be the one that its rows are stamped by as well: windows, rates and
//! shares of time agree with each other because both read the same clock. [`Setup::speed`] says how fast that is. Time that
//! nobody waits for is a [`StepClock`].
//!
//! ```
//! use model::{Host, Opened, Read, SourceKind};
//! use sim::{Nic, PortCount, Scenario, Setup, Simulator, StepClock};
//! use std::time::Duration;
//!
//! let clock = StepClock::default();
//! let setup = Setup { nic: Nic::Bnxt, ports: PortCount::new(1)?, ..Setup::new(Scenario::Healthy, 1) };
//! let server = Simulator::with(setup, { let clock = clock.clone(); move || clock.now() });
//! let port = &server.ports().unwrap()[0];
//! let Opened::Active(mut source) = server.open(port, SourceKind::HwCounters) else { panic!() };
//! let mut row = vec![0; source.schema().columns.len()];
//! for _ in 0..60 {
//!     clock.advance(Duration::from_secs(1));
//!     assert_eq!(source.read(&mut row), Read::Row);
//! }
//! # Ok::<(), sim::OutOfRange>(())
//! ```

mod cable;
mod clock;
mod columns;
mod conditions;
mod counted;
mod dcqcn;
mod driver;
mod fabric;
mod holders;
mod job;
mod name;
mod nic;
mod rail;
mod rng;
mod scenario;
mod server;
mod setup;
mod source;
mod sysfs;
mod value;
mod world;

pub use clock::StepClock;
pub use name::UnknownName;
pub use nic::Nic;
pub use scenario::Scenario;
pub use setup::{OutOfRange, PortCount, Setup, Speed};

use model::{Changes, Host, Opened, Port, QueuePairs, SourceKind, Why};
use source::{Columns, RailChanges, Shared};
use std::sync::Arc;
use world::World;

/// The simulated server.
pub struct Simulator {
    setup: Setup,
    shared: Arc<Shared>,
}

impl Simulator {
    /// A server of eight mlx5 ports that plays `scenario` from now on, where `clock` gives monotonic nanoseconds.
    /// Servers of one seed are alike.
    pub fn new(scenario: Scenario, seed: u64, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::with(Setup::new(scenario, seed), clock)
    }

    /// The server of `setup`, from now on, where `clock` gives monotonic nanoseconds of the server's time, which pass as
    /// fast as its speed says.
    pub fn with(setup: Setup, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            setup,
            shared: Arc::new(Shared::new(World::new(setup), Box::new(clock))),
        }
    }

    /// The server's sysfs as it is now: its PCI devices, netdevs and RDMA devices with their counters. A line is
    /// `PATH = CONTENT` for a file, `PATH -> TARGET` for a link, or `PATH ! ERRNO` for a file that cannot be read. Nothing
    /// in it needs an escape.
    #[must_use]
    pub fn sysfs(&self) -> String {
        sysfs::write(&self.shared.now())
    }
}

impl Simulator {
    fn rail(&self, port: &Port) -> Result<usize, Why> {
        server::rail(self.setup, &port.id)
            .ok_or_else(|| Why::new("ENODEV", format!("the simulated server has no port {}", port.id)))
    }
}

impl Host for Simulator {
    fn ports(&self) -> Result<Vec<Port>, String> {
        Ok(server::ports(&self.shared.now()))
    }

    fn open(&self, port: &Port, source: SourceKind) -> Opened {
        match self.rail(port) {
            Ok(rail) => Columns::open(&self.shared, rail, port, source),
            Err(why) => Opened::Failed(why),
        }
    }

    fn queue_pairs(&self, port: &Port) -> Result<QueuePairs, Why> {
        self.rail(port).map(holders::of)
    }

    fn queue_pair_count(&self, port: &Port) -> Option<u64> {
        Some(self.queue_pairs(port).ok()?.seen.len() as u64)
    }

    fn changes(&self) -> Result<Box<dyn Changes>, Why> {
        Ok(Box::new(RailChanges::new(&self.shared)))
    }
}
