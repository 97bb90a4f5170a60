//! Prints the sysfs of a simulated server: `sysfs [SCENARIO [NIC [PORTS [SECONDS]]]]`.

// An example prints; it is no part of the daemon.
#![allow(clippy::print_stdout)]

use model::Host;
use sim::{Scenario, Setup, Simulator, StepClock};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut setup = Setup::new(Scenario::Healthy, 1);
    if let Some(scenario) = arguments.next() {
        setup.scenario = scenario.parse()?;
    }
    if let Some(nic) = arguments.next() {
        setup.nic = nic.parse()?;
    }
    if let Some(ports) = arguments.next() {
        setup.ports = ports.parse()?;
    }
    let seconds: u64 = arguments.next().map_or(Ok(0), |seconds| seconds.parse())?;

    let clock = StepClock::default();
    let time = clock.clone();
    let server = Simulator::with(setup, move || time.now());
    for _ in 0..seconds {
        clock.advance(Duration::from_secs(1));
        server.ports()?;
    }
    print!("{}", server.sysfs());
    Ok(())
}
