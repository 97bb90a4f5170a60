//! What the commands do.

mod agent;
mod counters;
mod daemon;
mod explain;
mod ports;

use crate::cli::{Command, Demo, Run, Tree};
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
        Command::Counters(options) => counters::list(&kernel(&options.tree)?, &options, clock),
        Command::Explain(options) => explain::explain(&options.name),
        Command::CheckConfig(options) => {
            Config::load(Some(&options.file))?;
            print(&format!("{} is in order\n", options.file.display()))
        }
        Command::Ports(options) => ports::list(&kernel(&options.tree)?, options.json, clock),
    }
}

fn run(options: Run, clock: Clock) -> Result<(), Failure> {
    let config = Config::load(options.config.as_deref())?;
    let host = open(&linux::Options {
        optional_counters: config.sampling.optional_counters,
        ..of(&options.tree)
    })?;
    daemon::run(daemon::Daemon {
        host,
        config,
        config_file: options.config,
        serve: options.serve,
        kernel: linux::release(&options.tree.procfs),
        simulated: None,
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
        simulated: Some(notice),
        clock,
    })
}

/// The kernel, which is only looked at.
fn kernel(tree: &Tree) -> Result<Arc<dyn Host>, Failure> {
    open(&of(tree))
}

fn of(tree: &Tree) -> linux::Options {
    linux::Options {
        sysfs: tree.sysfs.clone(),
        ..linux::Options::default()
    }
}

fn open(options: &linux::Options) -> Result<Arc<dyn Host>, Failure> {
    match linux::Kernel::new(options) {
        Ok(kernel) => Ok(Arc::new(kernel)),
        Err(why) => Err(Failure::Runtime(format!(
            "{why}; name the place where sysfs is mounted with --sysfs"
        ))),
    }
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
