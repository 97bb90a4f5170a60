//! What the commands do.

mod agent;
mod capture;
mod counters;
mod daemon;
mod doctor;
mod explain;
mod flows;
mod generate;
mod history;
mod incidents;
mod nccl_env;
mod ports;
mod watch;

use crate::cli::{Command, Demo, Run, Sim, Source};
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Failure;
use model::Host;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Does what the command line asks.
pub(crate) fn execute(command: Command) -> Result<(), Failure> {
    let clock = Clock::start();
    match command {
        Command::Run(options) => run(options, clock),
        Command::Demo(options) => demo(options, clock),
        Command::Sim(options) => simulate(&options),
        Command::Counters(options) => {
            let all = linux::Options {
                every_statistic: true,
                ..linux::Options::default()
            };
            counters::list(&host(&options.source, &all, clock)?, &options, clock)
        }
        Command::Capture(options) => capture::take(&options, clock),
        Command::Doctor(options) => {
            if let Some(check) = &options.explain {
                return doctor::explain(check);
            }
            let host = host(&options.source, &linux::Options::default(), clock)?;
            doctor::examine(&host, &options, clock)
        }
        Command::History(options) => history::show(&options, clock.wall()),
        Command::Events(options) => incidents::events(&options, clock.wall()),
        Command::Incidents(options) => incidents::list(&options),
        Command::Incident(what) => incidents::one(&what),
        Command::Explain(options) => explain::explain(&options.name),
        Command::Generate(what) => generate::generate(&what),
        Command::CheckConfig(options) if is_web_config(&options.file) => {
            crate::web::check(&options.file, clock)?;
            print(&format!("{} is in order\n", options.file.display()))
        }
        Command::CheckConfig(options) => {
            let config = Config::load(Some(&options.file))?;
            if let Some(file) = config.http.web_config() {
                crate::web::check(file, clock)?;
            }
            print(&format!("{} is in order\n", options.file.display()))
        }
        Command::Ports(options) => {
            let host = host(&options.source, &linux::Options::default(), clock)?;
            if options.who {
                ports::who(&host, options.json)
            } else {
                ports::list(&host, options.json, clock)
            }
        }
        Command::NcclEnv(options) => {
            let host = host(&options.source, &linux::Options::default(), clock)?;
            nccl_env::show(&host, &options, clock)
        }
        Command::Watch(options) => {
            let host = host(&options.source, &linux::Options::default(), clock)?;
            watch::run(&host, &options, clock)
        }
    }
}

/// True of a `web.yml`; the configuration itself is TOML.
fn is_web_config(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "yml" || extension == "yaml")
}

fn run(options: Run, clock: Clock) -> Result<(), Failure> {
    let config = Config::load(options.config.as_deref())?;
    let source = &options.source;
    let replayed = source.replay.is_some();
    let wanted = linux::Options {
        every_statistic: config.metrics.shows_unknown(),
        optional_counters: config.sampling.optional_counters,
        ..linux::Options::default()
    };
    linux::raise_descriptor_limit();
    daemon::run(daemon::Daemon {
        host: host(source, &wanted, clock)?,
        config,
        config_file: options.config,
        trees: vec![source.tree.sysfs.clone(), source.tree.procfs.clone()],
        serve: options.serve,
        kernel: linux::release(&source.tree.procfs).filter(|_| !replayed),
        uptime: linux::uptime(&source.tree.procfs).filter(|_| !replayed),
        not_live: replayed.then(|| "The numbers are those of a capture, not of this machine.".to_owned()),
        clock,
    })
}

fn demo(options: Demo, clock: Clock) -> Result<(), Failure> {
    let setup = options.server.setup(options.speed);
    let sim::Setup {
        scenario, seed, nic, ..
    } = setup;
    let faster = match options.speed.get() {
        1 => String::new(),
        times => format!(", {times} times as fast as real time"),
    };
    let notice =
        format!("The numbers are simulated: scenario {scenario} on {nic} NICs, seed {seed}{faster}.");
    let clock = clock.faster(options.speed.get());
    let host = sim::Simulator::with(setup, move || clock.now());
    daemon::run(daemon::Daemon {
        host: Arc::new(host),
        trees: Vec::new(),
        config: Config::load(options.config.as_deref())?,
        config_file: options.config,
        serve: options.serve,
        kernel: None,
        uptime: None,
        not_live: Some(notice),
        clock,
    })
}

/// The simulated server's files as a capture.
fn simulate(options: &Sim) -> Result<(), Failure> {
    let at = options.at;
    let clock = sim::StepClock::default();
    let host = sim::Simulator::with(options.server.setup(sim::Speed::default()), {
        let clock = clock.clone();
        move || clock.now()
    });
    clock.advance(at);
    let title = format!(
        "a simulated server: scenario {}, {} after its begin",
        options.server.scenario,
        humantime::format_duration(at)
    );
    let recording = ::capture::Recording::of_text(&title, &host.sysfs())
        .map_err(|error| Failure::Runtime(format!("the simulated server is not right: {error}")))?;
    capture::store(&recording, &options.file)
}

/// The kernel, a copy of its files, or a capture, as `options` want it.
fn host(source: &Source, options: &linux::Options, clock: Clock) -> Result<Arc<dyn Host>, Failure> {
    if let Some(path) = &source.replay {
        let mut recording = ::capture::load(path).map_err(|error| Failure::Runtime(error.to_string()))?;
        let files = linux::Kernel::recorded(std::mem::take(&mut recording.sys), path);
        let replay = ::capture::Replay::new(files, recording, options.every_statistic, move || clock.now());
        return Ok(Arc::new(replay));
    }
    let options = linux::Options {
        sysfs: source.tree.sysfs.clone(),
        procfs: source.tree.procfs.clone(),
        ..options.clone()
    };
    let kernel = linux::Kernel::new(&options).map_err(|why| no_sysfs(&why))?;
    Ok(Arc::new(kernel))
}

fn no_sysfs(why: &model::Why) -> Failure {
    Failure::Runtime(format!(
        "{why}; name the place where sysfs is mounted with --sysfs"
    ))
}

/// What a command prints for programs.
fn to_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Runtime(format!("cannot write JSON: {error}")))?;
    Ok(text + "\n")
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
