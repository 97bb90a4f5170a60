//! What the simulator costs: plays servers at the default cadence on a clock of its own, as fast as it can, and then a
//! week of one in steps of an hour.
//!
//! `cargo run --release -p rocewatch-sim --example sim_cost`

// An example measures and prints; it is no part of the daemon.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use model::{Host, Opened, Read, Source, SourceKind};
use sim::{Nic, PortCount, Scenario, Setup, Simulator, StepClock};
use std::time::{Duration, Instant};

const SECONDS: u64 = 240;
const STEP: Duration = Duration::from_millis(100);
/// Steps between two reads of `hw_counters`, and of `ethtool`.
const CADENCE: [(SourceKind, u64); 2] = [(SourceKind::HwCounters, 1), (SourceKind::Ethtool, 2)];

fn main() {
    for scenario in Scenario::ALL {
        print(Setup::new(scenario, 1));
    }
    for nic in Nic::ALL {
        print(Setup {
            nic,
            ..Setup::new(Scenario::Tour, 1)
        });
    }
    for ports in [1, 64] {
        print(Setup {
            ports: PortCount::new(ports).expect("a possible number of ports"),
            ..Setup::new(Scenario::Tour, 1)
        });
    }
    println!("a week in steps of an hour: {:.1} s", week().as_secs_f64());
}

fn print(setup: Setup) {
    let Setup {
        scenario, nic, ports, ..
    } = setup;
    let cost = play(setup);
    println!(
        "{scenario:18} {nic:5} {ports:2} ports: {:.3} % of a core, {:.1} us a read",
        cost.share * 100.0,
        cost.read * 1e6
    );
}

struct Cost {
    share: f64,
    read: f64,
}

fn server(setup: Setup) -> (StepClock, Simulator) {
    let clock = StepClock::default();
    let time = clock.clone();
    (clock, Simulator::with(setup, move || time.now()))
}

fn play(setup: Setup) -> Cost {
    let (clock, host) = server(setup);
    let mut sources = open(&host);
    let mut reads = 0_u32;
    let began = Instant::now();
    for step in 0..SECONDS * 10 {
        for (interval, source, row) in &mut sources {
            if step % *interval == 0 {
                // A NIC in reset refuses.
                assert_ne!(source.read(row), Read::SchemaChanged, "the columns never change");
                reads += 1;
            }
        }
        clock.advance(STEP);
    }
    let taken = began.elapsed().as_secs_f64();
    Cost {
        share: taken / SECONDS as f64,
        read: taken / f64::from(reads),
    }
}

fn open(host: &Simulator) -> Vec<(u64, Box<dyn Source>, Vec<u64>)> {
    let ports = host.ports().expect("the simulator lists its ports");
    let wanted = ports
        .iter()
        .flat_map(|port| CADENCE.map(|(kind, interval)| (port, kind, interval)));
    wanted
        .map(|(port, kind, interval)| {
            let Opened::Active(source) = host.open(port, kind) else {
                panic!("{kind} does not open")
            };
            let row = vec![0; source.schema().columns.len()];
            (interval, source, row)
        })
        .collect()
}

fn week() -> Duration {
    let (clock, host) = server(Setup::new(Scenario::Healthy, 1));
    let began = Instant::now();
    for _ in 0..7 * 24 {
        clock.advance(Duration::from_secs(3_600));
        host.ports().expect("the simulator lists its ports");
    }
    began.elapsed()
}
