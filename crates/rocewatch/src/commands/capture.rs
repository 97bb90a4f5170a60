//! `rocewatch capture`: everything that can be read of this node's NICs, as a file.

use super::{agent, print};
use crate::agent::{SourceState, SourceView, World};
use crate::cli::Capture;
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Failure;
use crate::files;
use capture::{About, Answer, Key, Place, Reading, Recording};
use model::{Host, Port, Why};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Between the two readings: long enough for a source that is read once in two seconds.
const SPAN: Duration = Duration::from_millis(2200);
/// A device whose files have not been read by then is left out.
const LIMIT: Duration = Duration::from_secs(10);
/// What makes pseudonyms of one machine alike in all its captures, machine-id(5).
const MACHINE_ID: &str = "/etc/machine-id";

/// Reads everything twice and writes it into a new file.
pub(super) fn take(options: &Capture, clock: Clock) -> Result<(), Failure> {
    let config = Config::load(options.config.as_deref())?;
    let kernel = linux::Options {
        sysfs: options.tree.sysfs.clone(),
        every_statistic: true,
        ..linux::Options::default()
    };
    let kernel = Arc::new(linux::Kernel::new(&kernel).map_err(|why| super::no_sysfs(&why))?);
    let host: Arc<dyn Host> = Arc::clone(&kernel) as _;
    let agent = agent::watch(&host, &config, clock)?;
    let ports: Vec<Port> = agent
        .world()
        .ports()
        .map(|view| Port::clone(&view.port))
        .collect();
    let first = readings(&agent.world());
    let sys = kernel.record(&ports, LIMIT);
    agent::pause(SPAN);
    let recording = Recording {
        about: About {
            kernel: linux::release(&options.tree.procfs),
            taken: Some(humantime::format_rfc3339_seconds(clock.started_at()).to_string()),
            rocewatch: Some(env!("CARGO_PKG_VERSION").to_owned()),
            pseudonyms: Some(false),
            ..About::default()
        },
        sys,
        readings: twice(first, readings(&agent.world())),
    };
    let recording = if options.raw {
        recording
    } else {
        key()?.hide(&recording)
    };
    store(&recording, &options.file)?;
    print(&told(&recording, &ports, options))
}

/// Writes a capture into a new file.
pub(super) fn store(recording: &Recording, file: &Path) -> Result<(), Failure> {
    capture::store(recording, file).map_err(|error| Failure::Runtime(cannot(&error)))
}

fn cannot(error: &capture::PackageError) -> String {
    let exists = matches!(error, capture::PackageError::Io { error, .. } if error.kind() == std::io::ErrorKind::AlreadyExists);
    let remedy = if exists {
        "; give a name that is not taken, so that no capture is lost"
    } else {
        ""
    };
    format!("the capture cannot be written: {error}{remedy}")
}

fn told(recording: &Recording, ports: &[Port], options: &Capture) -> String {
    let members = recording.members();
    let privacy = if options.raw {
        "It holds this machine's addresses, GUIDs and names as they are."
    } else {
        "Addresses, GUIDs and names in it are pseudonyms."
    };
    let file = options.file.display();
    format!(
        "{file}: {} ports in {} parts. {privacy}\n\
         To see what it says: rocewatch counters --replay {file}\n\
         To read it before you pass it on: tar --zstd -xf {file} -C FOLDER\n",
        ports.len(),
        members.len()
    )
}

/// The secret of this machine; without one, of this capture.
fn key() -> Result<Key, Failure> {
    let path = Path::new(MACHINE_ID);
    match files::read_text(path) {
        Ok(id) if !id.trim().is_empty() => Ok(Key::new(id.trim().as_bytes())),
        Ok(_) => Err(no_key("it is empty")),
        Err(error) => Err(no_key(&error.to_string())),
    }
}

fn no_key(why: &str) -> Failure {
    Failure::Runtime(format!(
        "pseudonyms need a secret of this machine, and {MACHINE_ID} has none: {why}; \
         make one with systemd-machine-id-setup, or capture addresses as they are with --raw"
    ))
}

type Taken = BTreeMap<Place, (u64, Answer)>;

/// What every source says now, and when it did.
fn readings(world: &World) -> Taken {
    let mut taken = Taken::new();
    for view in world.ports() {
        for (kind, source) in &view.sources {
            let reading = Place::of(&view.port, *kind).zip(answer(source));
            taken.extend(reading);
        }
    }
    taken
}

fn answer(source: &SourceView) -> Option<(u64, Answer)> {
    let answer = match &source.state {
        SourceState::NotApplicable(why) => Answer::NotApplicable(why.clone()),
        SourceState::Failed(why) => Answer::Error(why.clone()),
        SourceState::Opening => Answer::Error(Why::new("ETIMEDOUT", "the source did not answer")),
        SourceState::Active => {
            if let Some(why) = &source.failing {
                return Some((0, Answer::Error(why.clone())));
            }
            let (schema, row) = (source.schema()?, source.newest()?);
            let names = schema.columns.iter().map(|column| column.name.to_string());
            let counters = names.zip(row.values.iter().copied()).collect();
            return Some((row.window.midpoint(), Answer::Row(counters)));
        }
    };
    Some((0, answer))
}

/// One reading of each source, and a second where there is a later one.
fn twice(first: Taken, mut second: Taken) -> BTreeMap<Place, Vec<Reading>> {
    let pair = |(place, (at, answer))| {
        let mut readings = vec![Reading {
            after: Some(Duration::ZERO),
            answer,
        }];
        if let Some((later, answer)) = second.remove(&place).filter(|(later, _)| *later > at) {
            readings.push(Reading {
                after: Some(Duration::from_nanos(later - at)),
                answer,
            });
        }
        (place, readings)
    };
    first.into_iter().map(pair).collect()
}
