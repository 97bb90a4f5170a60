//! `rocewatch watch -- COMMAND…`: runs a command, and tells what every port did meanwhile.

mod baseline;
mod child;
mod happened;
mod judge;
mod observer;
mod report;
#[cfg(test)]
mod tests;
mod text;

use super::flows::Flows;
use super::{agent, to_json};
use crate::agent::{Agent, PortView, SourceState, SourceView, World};
use crate::cli::Watch;
use crate::clock::{Clock, nanos};
use crate::config::Config;
use crate::failure::Failure;
use crate::files;
use child::Watched;
use doctor::{Look, PortWindow};
use happened::Happened;
use jiff::Timestamp;
use model::{Host, Port, SourceKind};
use observer::{Observer, View};
use report::{Finding, FindingKind, PortReport, Report};
use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// How often the ports are looked at: as often as rows are taken in, so that no sampling interval is missed.
const LOOK: Duration = Duration::from_millis(100);
/// How often a look is taken whether every counter has been read since the command ended.
const POLL: Duration = Duration::from_millis(20);
/// A source that has not been read within this after the end is told to be late. It spans the interval that is granted to
/// a NIC that needs 20 ms for its statistics.
const LIMIT: Duration = Duration::from_secs(10);
/// Rocewatch itself failed: as of env(1) and timeout(1).
const CANNOT: u8 = 125;
/// The command succeeded, and is worse than the baseline.
const REGRESSION: u8 = 123;

/// Sources that count traffic. The others are of states, or minutes apart.
const COUNTING: [SourceKind; 5] = [
    SourceKind::Ethtool,
    SourceKind::HwCounters,
    SourceKind::DeviceCounters,
    SourceKind::PortCounters,
    SourceKind::Link,
];

/// Runs the command; ends with its status.
pub(super) fn run(host: &Arc<dyn Host>, options: &Watch, clock: Clock) -> Result<(), Failure> {
    let earlier = options.baseline.as_deref().map(baseline::load).transpose()?;
    let agent = agent::watch(host, &Config::default(), clock).map_err(cannot)?;
    wait_for_rows(&agent, 0, clock, || {
        agent::pause(POLL);
        true
    });
    let started = clock.wall();
    let run = follow(host, &agent, &options.command, clock)?;
    let rails = judge::rails(&run.ports);
    let mut findings = judge::findings(&run.ports, rails.as_ref());
    findings.extend(run.late);
    let report = Report {
        shape: report::SHAPE,
        rocewatch: env!("CARGO_PKG_VERSION").to_owned(),
        command: options
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        started: Timestamp::from_nanosecond(started.into())
            .unwrap_or_default()
            .to_string(),
        seconds: run.seconds,
        exit_status: run.status,
        verdict: judge::verdict(&run.ports, &findings, &run.happened.events),
        explanations: judge::explanations(&run.windows),
        baseline: earlier.map(|earlier| baseline::compare(&earlier, &run.ports, run.seconds)),
        ports: run.ports,
        rails,
        findings,
        events: run.happened.events,
        further_events: run.happened.more,
    };
    tell(&report, options)?;
    let regressed = report
        .baseline
        .is_some_and(|baseline| !baseline.regressions.is_empty());
    match (run.status, regressed) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::Ended {
            status: REGRESSION,
            message: None,
        }),
        (status, _) => Err(Failure::Ended {
            status,
            message: None,
        }),
    }
}

/// What a command and the ports have done.
struct Run {
    status: u8,
    seconds: f64,
    ports: Vec<PortReport>,
    windows: Vec<PortWindow>,
    late: Vec<Finding>,
    happened: Happened,
}

/// Runs the command and watches the ports until it has ended, and every counter has been read behind its end.
fn follow(host: &Arc<dyn Host>, agent: &Agent, command: &[OsString], clock: Clock) -> Result<Run, Failure> {
    let (mut observer, mut happened, before, ports) = {
        let world = agent.world();
        let ports = world.ports().map(|view| Port::clone(&view.port)).collect();
        (
            Observer::begin(views(&world)),
            Happened::begin(world.events()),
            looks(&world, clock),
            ports,
        )
    };
    let flows = Flows::count(host, ports);
    let began = clock.now();
    let mut watched = Watched::start(command)?;
    let mut due = began + nanos(LOOK);
    let status = loop {
        if let Some(status) = watched.wait(clock.until(due))? {
            break child::status_of(status);
        }
        if clock.now() >= due {
            let world = agent.world();
            observer.look(views(&world));
            happened.look(world.events());
            due = clock.now() + nanos(LOOK);
        }
    };
    let ended = clock.now();
    wait_for_rows(agent, ended, clock, || watched.pause(POLL));
    let world = agent.world();
    observer.look(views(&world));
    happened.look(world.events());
    let mut windows = windows(&before, &looks(&world, clock));
    for window in &mut windows {
        flows.tell(window);
    }
    let seconds = (ended - began) as f64 / 1e9;
    Ok(Run {
        status,
        seconds,
        ports: observer.end(seconds),
        windows,
        late: late(&world, ended),
        happened,
    })
}

fn looks(world: &World, clock: Clock) -> Vec<Look> {
    let now = clock.now();
    let look = |view: &PortView| Look::at(now, &view.port, &view.signals);
    world.ports().map(look).collect()
}

/// What lies between two looks at each port.
fn windows(before: &[Look], after: &[Look]) -> Vec<PortWindow> {
    let between = |later: &Look| {
        before
            .iter()
            .find_map(|earlier| PortWindow::between(earlier, later))
    };
    after.iter().filter_map(between).collect()
}

fn views(world: &World) -> impl Iterator<Item = View<'_>> {
    world.ports().map(|view| View {
        port: &view.port,
        rail: view.rail,
        signals: &view.signals,
    })
}

/// Waits until every counter has been read after `since`; not for ever, and only as long as `pause` says yes.
fn wait_for_rows(agent: &Agent, since: u64, clock: Clock, mut pause: impl FnMut() -> bool) {
    let limit = clock.now() + nanos(LIMIT);
    while clock.now() < limit && !late(&agent.world(), since).is_empty() {
        if !pause() {
            return;
        }
    }
}

/// The sources that count and have not been read, and taken in, since then.
fn late(world: &World, since: u64) -> Vec<Finding> {
    let of_port = |view: &PortView| {
        let since = since + refresh(&view.port.driver);
        let sources = COUNTING
            .iter()
            .filter_map(|kind| Some((kind, view.sources.get(kind)?)));
        let late: Vec<_> = sources
            .filter(|(_, source)| is_late(source, since, world.updated()))
            .map(|(kind, _)| kind.as_str())
            .collect();
        (!late.is_empty()).then(|| Finding {
            kind: FindingKind::NotMeasured,
            device: Some(view.port.device.clone()),
            says: format!(
                "{} could not be read behind the end: what it counted last is missing",
                late.join(", ")
            ),
        })
    };
    world.ports().filter_map(of_port).collect()
}

fn is_late(source: &SourceView, since: u64, updated: u64) -> bool {
    match source.state {
        SourceState::NotApplicable(_) => false,
        SourceState::Opening | SourceState::Failed(_) => true,
        SourceState::Active => {
            let newest = source.newest();
            newest.is_none_or(|row| row.window.began < since || row.window.ended > updated)
        }
    }
}

/// How old a driver's own copy of its counters may be, in nanoseconds.
fn refresh(driver: &str) -> u64 {
    let files = catalog::DRIVERS
        .iter()
        .filter(|file| file.bound_as.contains(&driver));
    let slowest = files.map(|file| file.refresh_ms).max();
    u64::from(slowest.unwrap_or(0)) * 1_000_000
}

/// Tells it on standard error: standard output is the command's.
fn tell(report: &Report, options: &Watch) -> Result<(), Failure> {
    let json = to_json(report)?;
    if let Some(file) = &options.save {
        files::write(file, json.as_bytes())
            .map_err(|error| Failure::Runtime(format!("{}: {error}", file.display())))?;
    }
    let text = if options.json { json } else { text::write(report) };
    // Whoever closed standard error does not want to know.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    Ok(())
}

/// Rocewatch itself failed.
fn cannot(failure: impl std::fmt::Display) -> Failure {
    Failure::Ended {
        status: CANNOT,
        message: Some(failure.to_string()),
    }
}
