//! What the commands do.

mod agent;
mod capture;
mod counters;
mod daemon;
mod explain;
mod generate;
mod ports;

use crate::cli::{Command, Demo, Run, Source};
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Failure;
use model::Host;
use std::io::Write as _;
use std::sync::Arc;

/// Does what the command line asks.
pub(crate) fn execute(command: Command) -> Result<(), Failure> {
    let clock = Clock::start();
    match command {
        Command::Run(options) => run(options, clock),
        Command::Demo(options) => demo(options, clock),
        Command::Counters(options) => counters::list(&host(&options.source, true, clock)?, &options, clock),
        Command::Capture(options) => capture::take(&options, clock),
        Command::Explain(options) => explain::explain(&options.name),
        Command::Generate(what) => generate::generate(&what),
        Command::CheckConfig(options) => {
            Config::load(Some(&options.file))?;
            print(&format!("{} is in order\n", options.file.display()))
        }
        Command::Ports(options) => ports::list(&host(&options.source, false, clock)?, options.json, clock),
    }
}

fn run(options: Run, clock: Clock) -> Result<(), Failure> {
    let config = Config::load(options.config.as_deref())?;
    let source = &options.source;
    let replayed = source.replay.is_some();
    linux::raise_descriptor_limit();
    daemon::run(daemon::Daemon {
        host: host(source, false, clock)?,
        config,
        config_file: options.config,
        serve: options.serve,
        kernel: linux::release(&source.tree.procfs).filter(|_| !replayed),
        not_live: replayed.then(|| "The numbers are those of a capture, not of this machine.".to_owned()),
        clock,
    })
}

fn demo(options: Demo, clock: Clock) -> Result<(), Failure> {
    let notice = format!(
        "The numbers are simulated: scenario {}, seed {}.",
        options.scenario, options.seed
    );
    let host = sim::Simulator::new(options.scenario, options.seed, move || clock.now());
    daemon::run(daemon::Daemon {
        host: Arc::new(host),
        config: Config::default(),
        config_file: None,
        serve: options.serve,
        kernel: None,
        not_live: Some(notice),
        clock,
    })
}

/// The kernel, a copy of its files, or a capture. With `every_statistic`, those of a driver that the catalogue does not
/// know are read too.
fn host(source: &Source, every_statistic: bool, clock: Clock) -> Result<Arc<dyn Host>, Failure> {
    if let Some(path) = &source.replay {
        let mut recording = ::capture::load(path).map_err(|error| Failure::Runtime(error.to_string()))?;
        let files = linux::Kernel::recorded(std::mem::take(&mut recording.sys), path);
        let replay = ::capture::Replay::new(files, recording, every_statistic, move || clock.now());
        return Ok(Arc::new(replay));
    }
    let options = linux::Options {
        sysfs: source.tree.sysfs.clone(),
        every_statistic,
    };
    Ok(Arc::new(
        linux::Kernel::new(&options).map_err(|why| no_sysfs(&why))?,
    ))
}

fn no_sysfs(why: &model::Why) -> Failure {
    Failure::Runtime(format!(
        "{why}; name the place where sysfs is mounted with --sysfs"
    ))
}

/// A closed pipe (`| head`) is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Runtime(format!("cannot write the answer: {error}")))
        }
        _ => Ok(()),
    }
}
