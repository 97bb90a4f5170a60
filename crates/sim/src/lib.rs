//! A simulated GPU server with eight `RoCE` NICs, which answers as the kernel does on a real one.
//!
//! Behind the counters stands a small model of a training job, its fabric, ECN with DCQCN, and PFC; nothing is drawn
//! at random that follows from something else. One seed and one sequence of clock readings always give the same
//! values. `docs/simulation.md` tells what the model is and what it is not.
//!
//! ```
//! use model::Host;
//! use sim::{Scenario, Simulator};
//!
//! let server = Simulator::new(Scenario::Incast, 1, || 0);
//! assert_eq!(server.ports().unwrap().len(), 8);
//! ```

mod columns;
mod counted;
mod fabric;
mod job;
mod rail;
mod rng;
mod scenario;
mod server;
mod source;
mod world;

pub use scenario::{Scenario, UnknownScenario};

use model::{Changes, Host, Opened, Port, SourceKind, Why};
use source::{CarrierChanges, Columns, Shared};
use std::sync::Arc;
use world::World;

/// The simulated server.
pub struct Simulator {
    shared: Arc<Shared>,
}

impl Simulator {
    /// A server that plays `scenario` from now on, where `clock` gives monotonic nanoseconds. Servers of one seed
    /// are alike.
    pub fn new(scenario: Scenario, seed: u64, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared::new(World::new(scenario, seed), Box::new(clock))),
        }
    }
}

impl Host for Simulator {
    fn ports(&self) -> Result<Vec<Port>, String> {
        let world = self.shared.now();
        Ok(world
            .rails
            .iter()
            .enumerate()
            .map(|(rail, state)| server::port(rail, state))
            .collect())
    }

    fn open(&self, port: &Port, source: SourceKind) -> Opened {
        let Some(rail) = server::rail(&port.id) else {
            return Opened::Failed(Why::new(
                "ENODEV",
                format!("the simulated server has no port {}", port.id),
            ));
        };
        match Columns::open(&self.shared, rail, &port.id, source) {
            Some(columns) => Opened::Active(Box::new(columns)),
            None => Opened::NotApplicable(Why::new(
                "not_on_this_driver",
                format!("{} of the simulated server has no {source}", port.device),
            )),
        }
    }

    fn changes(&self) -> Result<Box<dyn Changes>, Why> {
        Ok(Box::new(CarrierChanges::new(&self.shared)))
    }
}
