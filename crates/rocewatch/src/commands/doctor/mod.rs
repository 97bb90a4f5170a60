//! `rocewatch doctor`: looks at the node for some seconds, and tells what is wrong.

mod junit;
mod text;

use super::flows::Flows;
use super::{agent, print, to_json};
use crate::agent::{PortView, SourceState, World, facts, looks};
use crate::cli::{Doctor, DoctorFormat, FailOn};
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Failure;
use crate::http::Report;
use ::doctor::{Facts, Finding, Policy, PortWindow, Severity, Verdict};
use model::{Host, Port, SourceKind};
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

/// How long a source may take for its first answer: what is not read is not judged.
const PATIENCE: u64 = 20_000_000_000;
/// Shares of wall time that reading may take meanwhile, in percent.
const DEVICE_DUTY: f64 = 10.0;
const RTNL_DUTY: f64 = 5.0;

/// All that was found.
struct Examination {
    /// `RoCE` ports that were looked at.
    ports: usize,
    /// Sources that should be there and did not answer, with their ports.
    unread: Vec<String>,
    findings: Vec<Finding>,
    verdicts: Vec<Verdict>,
}

impl Examination {
    /// Every severity that was found.
    fn severities(&self) -> impl Iterator<Item = Severity> + '_ {
        let findings = self.findings.iter().map(Finding::severity);
        findings.chain(self.verdicts.iter().map(|verdict| verdict.check.severity))
    }
}

/// Tells the long story of a check.
pub(super) fn explain(check: &str) -> Result<(), Failure> {
    let Some(text) = ::doctor::explain(check) else {
        let likeness = |id: &str| strsim::jaro_winkler(check, id);
        let ids = ::doctor::CHECKS.iter().map(|check| check.id);
        let nearest = ids.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        return Err(Failure::Usage(format!(
            "there is no check {check:?}; the nearest is {:?}, and docs/checks.md lists all",
            nearest.unwrap_or_default()
        )));
    };
    print(&text)
}

/// Looks, and prints what was found.
pub(super) fn examine(host: &Arc<dyn Host>, options: &Doctor, clock: Clock) -> Result<(), Failure> {
    let config = Config::load(options.config.as_deref())?;
    let found = look(host, options, &config, clock)?;
    let text = match options.format {
        DoctorFormat::Text => text::of(&found, wants_colour()),
        DoctorFormat::Json => {
            let report = Report::of(&found.findings, &found.verdicts, found.unread.clone());
            to_json(&report)?
        }
        DoctorFormat::Junit => junit::of(&found),
    };
    print(&text)?;
    match status(found.severities().max(), options.fail_on) {
        0 => Ok(()),
        status => Err(Failure::Ended {
            status,
            message: None,
        }),
    }
}

fn look(
    host: &Arc<dyn Host>,
    options: &Doctor,
    config: &Config,
    clock: Clock,
) -> Result<Examination, Failure> {
    let agent = agent::watch_for(PATIENCE, host, &eager(config), clock)?;
    let ports: Vec<Port> = agent
        .world()
        .ports()
        .map(|view| Port::clone(&view.port))
        .collect();
    if !ports.iter().any(Port::has_rdma) {
        return Ok(Examination {
            ports: 0,
            unread: Vec::new(),
            findings: Vec::new(),
            verdicts: Vec::new(),
        });
    }
    let earlier = looks(&agent.world(), clock.now());
    let flows = Flows::count(host, ports.clone());
    let setup = host.setup(&ports);
    agent::pause(options.watch);
    let mut facts = facts(&agent.world(), &setup, &earlier, clock.now());
    let windows = facts.ports.iter_mut().filter_map(|port| port.window.as_mut());
    windows.for_each(|window| flows.tell(window));
    let unread = unread(&agent.world());
    Ok(judge(&facts, unread, &config.policy()))
}

/// For some seconds a look may cost more than what goes on all day.
fn eager(config: &Config) -> Config {
    let mut config = config.clone();
    let sampling = &mut config.sampling;
    sampling.device_duty_percent = sampling.device_duty_percent.max(DEVICE_DUTY);
    sampling.rtnl_duty_percent = sampling.rtnl_duty_percent.max(RTNL_DUTY);
    // Twice while it looks, or there is no rate.
    sampling.aer = sampling.aer.map(|interval| interval.min(Duration::from_secs(1)));
    config
}

/// The sources that were not read, though their ports ought to have them.
fn unread(world: &World) -> Vec<String> {
    let of_port = |view: &PortView| {
        let silent = view.sources.iter().filter(|(_, source)| {
            let is_there = !matches!(source.state, SourceState::NotApplicable(_));
            is_there && !source.fresh
        });
        let name = |kind: SourceKind| format!("{kind} of {}", view.port.device);
        silent.map(|(kind, _)| name(*kind)).collect::<Vec<_>>()
    };
    world
        .ports()
        .filter(|view| view.port.has_rdma())
        .flat_map(of_port)
        .collect()
}

fn judge(facts: &Facts, unread: Vec<String>, policy: &Policy) -> Examination {
    let windows: Vec<PortWindow> = facts
        .ports
        .iter()
        .filter_map(|port| port.window.clone())
        .collect();
    Examination {
        unread,
        ports: facts.ports.iter().filter(|port| port.is_roce()).count(),
        findings: ::doctor::findings(facts, policy),
        verdicts: ::doctor::verdicts(&windows, policy),
    }
}

/// Colour is for a terminal, unless `NO_COLOR` says no (<https://no-color.org>).
fn wants_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The exit status: 2 for errors, 1 for less, 0 if nothing is as bad as `fail_on`.
fn status(worst: Option<Severity>, fail_on: FailOn) -> u8 {
    let least = match fail_on {
        FailOn::Note => Severity::Note,
        FailOn::Warning => Severity::Warning,
        FailOn::Error => Severity::Error,
        FailOn::Never => return 0,
    };
    match worst.filter(|worst| *worst >= least) {
        None => 0,
        Some(Severity::Error) => 2,
        Some(Severity::Warning | Severity::Note) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_that_of_the_worst() {
        for (worst, fail_on, right) in [
            (None, FailOn::Note, 0),
            (Some(Severity::Note), FailOn::Warning, 0),
            (Some(Severity::Note), FailOn::Note, 1),
            (Some(Severity::Warning), FailOn::Warning, 1),
            (Some(Severity::Warning), FailOn::Error, 0),
            (Some(Severity::Error), FailOn::Warning, 2),
            (Some(Severity::Error), FailOn::Never, 0),
        ] {
            assert_eq!(status(worst, fail_on), right, "{worst:?} {fail_on:?}");
        }
    }
}
