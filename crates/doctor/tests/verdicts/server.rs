//! A simulated server, looked at twice.

use doctor::{Facts, Look, PortFacts, PortWindow};
use model::{Host, Opened, Port, Read, Source, SourceKind};
use ring::Window;
use signals::{Options, PortSignals};
use sim::{Nic, PortCount, Scenario, Setup, Simulator, StepClock};
use std::sync::Arc;
use std::time::Duration;

const SOURCES: [SourceKind; 6] = [
    SourceKind::HwCounters,
    SourceKind::Ethtool,
    SourceKind::PortCounters,
    SourceKind::Link,
    SourceKind::Settings,
    SourceKind::Dcb,
];
const TICK: Duration = Duration::from_millis(200);

struct Rail {
    port: Port,
    sources: Vec<Box<dyn Source>>,
    signals: PortSignals,
}

/// What is known of each rail of a server that was watched from `begin` on, for `seconds`.
pub(crate) fn watch(scenario: Scenario, nic: Nic, begin: u64, seconds: u64) -> Facts {
    let clock = StepClock::default();
    let host = {
        let clock = clock.clone();
        let setup = Setup {
            nic,
            ports: PortCount::new(8).expect("a possible number"),
            ..Setup::new(scenario, 7)
        };
        Simulator::with(setup, move || clock.now())
    };
    let mut rails: Vec<_> = host
        .ports()
        .expect("the simulator lists its ports")
        .into_iter()
        .map(|port| Rail::new(&host, port))
        .collect();
    let mut play = |seconds: u64| {
        for _ in 0..seconds * 5 {
            clock.advance(TICK);
            for rail in &mut rails {
                rail.read(clock.now(), &host);
            }
        }
        let look = |rail: &Rail| Look::at(clock.now(), &rail.port, &rail.signals);
        rails.iter().map(look).collect::<Vec<_>>()
    };
    let earlier = play(begin);
    let later = play(seconds);
    let setup = host.setup(&[]);
    let ports = rails.iter().zip(earlier.iter().zip(&later));
    let facts = |(rail, (a, b)): (&Rail, _)| {
        let window = PortWindow::between(a, b).expect("the second is later");
        PortFacts::read(&rail.port, &rail.signals, &setup, Some(window))
    };
    Facts {
        ports: ports.map(facts).collect(),
        node: setup.node.clone(),
    }
}

impl Rail {
    fn new(host: &Simulator, port: Port) -> Self {
        let mut signals = PortSignals::new(Options {
            window: 1_000_000_000,
        });
        let open = |kind| match host.open(&port, kind) {
            Opened::Active(source) => Some(source),
            _ => None,
        };
        let sources: Vec<_> = SOURCES.into_iter().filter_map(open).collect();
        for source in &sources {
            signals.open(Arc::clone(source.schema()));
        }
        signals.settle();
        Self {
            port,
            sources,
            signals,
        }
    }

    fn read(&mut self, now: u64, host: &Simulator) {
        for source in &mut self.sources {
            let kind = source.schema().source;
            let mut row = vec![0; source.schema().columns.len()];
            let answered = source.read(&mut row) == Read::Row;
            if answered {
                let window = Window {
                    began: now,
                    ended: now,
                };
                self.signals.row(kind, window, &row);
            } else if let Opened::Active(again) = host.open(&self.port, kind) {
                // A source that was of a device before its reset is opened anew.
                self.signals.open(Arc::clone(again.schema()));
                *source = again;
            }
            self.signals.set_fresh(kind, answered);
        }
    }
}
