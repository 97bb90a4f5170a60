//! Work whose instructions `tests/cost.rs` counts: `cost round|encode|own TREE TIMES`.
//!
//! A round reads every counter of every port on the tree once, puts the rows into rings, and takes them from there into the
//! signals, as lanes and deriver do. `encode` makes the exposition of those ports; `own` is the part of it that the
//! process tells of itself.
#![allow(clippy::disallowed_methods)] // it waits, as a test does

// The daemon's own modules, each as a whole: not all of it is counted, and their tests run elsewhere.
#[allow(dead_code, unused_imports)]
#[path = "../src/agent/mod.rs"]
mod agent;
#[allow(dead_code)]
#[path = "../src/clock.rs"]
mod clock;
#[allow(dead_code, unused_imports)]
#[path = "../src/config/mod.rs"]
mod config;
#[allow(dead_code)]
#[path = "../src/metrics/counted.rs"]
mod counted;
#[allow(dead_code)]
#[path = "../src/event.rs"]
mod event;
// The same.
#[allow(dead_code)]
#[path = "../src/failure.rs"]
mod failure;
#[allow(dead_code)]
#[path = "../src/files.rs"]
mod files;
#[allow(dead_code)]
#[path = "../src/incident.rs"]
mod incident;
#[allow(dead_code)]
#[path = "../src/metrics/layout.rs"]
mod layout;
#[allow(dead_code)]
#[path = "../src/metrics/naming.rs"]
mod naming;
#[allow(dead_code)]
#[path = "../src/metrics/number.rs"]
mod number;
#[allow(dead_code)]
#[path = "../src/metrics/own.rs"]
mod own;
#[allow(dead_code)]
#[path = "../src/metrics/series.rs"]
mod series;
#[allow(dead_code)]
#[path = "../src/service.rs"]
mod service;
#[allow(dead_code)]
#[path = "../src/metrics/text.rs"]
mod text;
#[allow(dead_code, unused_imports)]
#[path = "../src/who/mod.rs"]
mod who;

use agent::Agent;
use clock::Clock;
use config::Config;
use layout::Layout;
use model::{Host, Opened, Port, Read, Source, SourceKind};
use ring::{Cursor, Next, Row, Window, Writer};
use signals::PortSignals;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use text::Format;

/// As often as the daemon reads by default.
const INTERVAL: u64 = 100_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, tree, times] = arguments.as_slice() else {
        return Err("usage: cost round|encode|own TREE TIMES".into());
    };
    let times = times.parse()?;
    let sysfs = linux::Options {
        sysfs: tree.into(),
        ..linux::Options::default()
    };
    let host = linux::Kernel::new(&sysfs).map_err(|why| why.to_string())?;
    match what.as_str() {
        "round" => rounds(&host, times),
        "encode" => encodes(host, times),
        "own" => {
            owns(times);
            Ok(())
        }
        other => Err(format!("there is nothing to count that is called {other}").into()),
    }
}

/// One source of a port with its ring.
struct Track {
    source: Box<dyn Source>,
    kind: SourceKind,
    writer: Writer,
    read: Box<[u64]>,
    cursor: Cursor,
    row: Row,
}

fn rounds(host: &dyn Host, times: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut ports: Vec<_> = host.ports()?.iter().map(|port| open(host, port)).collect();
    for number in 1..=times {
        let at = number * INTERVAL;
        let window = Window {
            began: at,
            ended: at + 50_000,
        };
        for (signals, tracks) in &mut ports {
            for track in tracks {
                track.sample(window, signals)?;
            }
        }
    }
    black_box(&ports);
    Ok(())
}

/// The port's signals, and the sources that are there.
fn open(host: &dyn Host, port: &Port) -> (PortSignals, Vec<Track>) {
    let mut signals = PortSignals::new(signals::Options {
        window: 10 * INTERVAL,
    });
    let mut tracks = Vec::new();
    for kind in SourceKind::ALL {
        let Opened::Active(source) = host.open(port, kind) else {
            continue;
        };
        let columns = source.schema().columns.len();
        let (writer, reader) = ring::channel(columns, 64);
        signals.open(Arc::clone(source.schema()));
        tracks.push(Track {
            source,
            kind,
            writer,
            read: vec![0; columns].into(),
            row: reader.row(),
            cursor: Cursor::new(reader),
        });
    }
    signals.settle();
    (signals, tracks)
}

impl Track {
    fn sample(&mut self, window: Window, signals: &mut PortSignals) -> Result<(), String> {
        match self.source.read(&mut self.read) {
            Read::Row => self.writer.push(window, &self.read),
            other => return Err(format!("{other:?} instead of a row of {}", self.kind)),
        }
        match self.cursor.next(&mut self.row) {
            Next::Row => signals.row(self.kind, self.row.window, &self.row.values),
            other => return Err(format!("{other:?} from the ring")),
        }
        Ok(())
    }
}

fn encodes(host: linux::Kernel, times: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::default();
    // Each source is read once, at once; then all threads rest.
    let once = Duration::from_secs(3600);
    config.sampling.hw_counters = once;
    config.sampling.device_counters = once;
    config.sampling.port_counters = once;
    config.sampling.link = once;
    let clock = Clock::start();
    let agent = Agent::start(Arc::new(host), &config, None, clock)?;
    while agent.world().not_ready(clock.now()).is_some() {
        std::thread::sleep(Duration::from_millis(100));
    }
    // For the deriver to take in the rows.
    std::thread::sleep(Duration::from_secs(1));
    let world = agent.world();
    let mut layout = Layout::of(&world, &config.metrics, 0.0);
    let mut page = Vec::new();
    for _ in 0..times {
        page.clear();
        layout.encode(&world, Format::Text, &mut page);
    }
    black_box(&page);
    Ok(())
}

fn owns(times: u64) {
    let own = own::Own::new(0.0, None);
    let mut page = String::new();
    for _ in 0..times {
        own.encode(Format::Text, &mut page);
    }
    black_box(&page);
}
