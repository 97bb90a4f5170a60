//! The command line.

// Its comments are shown to people as help texts, where backticks would only disturb.
#![allow(clippy::doc_markdown)]

use crate::failure::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Watches what the RoCEv2 fabric does to this GPU server: PFC pause, ECN marks, CNPs, utilization.
#[derive(Debug, Parser)]
#[command(
    name = "rocewatch",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the packaged daemon keeps its archive.
const ARCHIVE: &str = "/var/lib/rocewatch/archive";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sample every RoCE port of this server and serve the metrics.
    Run(Run),
    /// The same on a simulated server with eight 400G NICs, for a look at Rocewatch without the hardware.
    Demo(Demo),
    /// Write the sysfs of a simulated server as a capture, for tests of other tools.
    Sim(Sim),
    /// List the ports of this server, and what can be read of each.
    Ports(Ports),
    /// Show every counter of a port: value, growth, unit and meaning.
    Counters(Counters),
    /// Tell what is wrong with this server's RoCE configuration and traffic, why it matters, and what mends it.
    ///
    /// Ends with status 0 if nothing is wrong, 1 for warnings, 2 for errors; see --fail-on.
    Doctor(Doctor),
    /// Run a command, and tell what every port did meanwhile; ends with the command's exit status.
    Watch(Watch),
    /// Tell NCCL, UCX and gloo how to use this server's RoCE ports, as lines for a shell; or check what is set.
    NcclEnv(NcclEnv),
    /// Write all that can be read of this server's NICs into a file, for a bug report or for a look elsewhere.
    Capture(Capture),
    /// Tell what happened: what was unlike the hour before, or every value, from the archive that the daemon keeps.
    History(History),
    /// List what happened: PFC storms, CNP spikes, links that flapped, and all else that the detectors saw.
    Events(Events),
    /// List the incidents whose full-rate rows are kept.
    Incidents(Incidents),
    /// Show all there is to say of an incident on one page, or copy it into a file.
    #[command(subcommand)]
    Incident(Incident),
    /// Tell what a counter, a signal or a metric means, for every driver that has it.
    Explain(Explain),
    /// Check a configuration file and name every mistake in it.
    CheckConfig(CheckConfig),
    /// Make shell completions and manual pages, for packages.
    #[command(subcommand)]
    Generate(Generate),
}

/// What to make.
#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print completions for a shell.
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write manual pages, rocewatch.1 and one for each command.
    Man {
        /// The folder to write them into, made if it is not there.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Options of `counters`.
#[derive(Debug, Args)]
pub(crate) struct Counters {
    /// RDMA device, netdev or PCI address; without it, all ports.
    #[arg(value_name = "PORT")]
    pub(crate) port: Option<String>,
    /// Show counters that are 0 as well.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show them again and again until interrupted.
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// Options of `watch`.
#[derive(Debug, Args)]
#[command(override_usage = "rocewatch watch [OPTIONS] -- COMMAND [ARGUMENT]...")]
pub(crate) struct Watch {
    /// The command, behind --.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(crate) command: Vec<OsString>,
    /// Tell it in JSON. The report goes to standard error in any case: standard output is the command's.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report into a file as well, in JSON, for --baseline.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Compare with an earlier run: where this one is worse and the command succeeded, end with status 123.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// Options of `nccl-env`.
#[derive(Debug, Args)]
pub(crate) struct NcclEnv {
    /// Compare what is set in this environment, or in NCCL's file, with what the NICs do. Ends with status 1 if something is wrong.
    #[arg(long)]
    pub(crate) check: bool,
    /// The same of the environment that this process was started with.
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Print JSON for programs.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// Options of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// As in rx_prio3_pause_duration, pfc.rx_pause_duration or rocewatch_pfc_pause_seconds_total.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Options of `check-config`.
#[derive(Debug, Args)]
pub(crate) struct CheckConfig {
    /// The configuration file; one that ends in .yml is a web configuration (--web-config).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Configuration file (TOML). Without one every port is found and watched.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Configuration file (TOML), as run takes it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: Simulated,
    /// How many times as fast as real time simulated time passes, 1 to 10080: a week in a minute.
    #[arg(long, value_name = "N", default_value_t = sim::Speed::default())]
    pub(crate) speed: sim::Speed,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// A server to simulate.
#[derive(Debug, Args)]
pub(crate) struct Simulated {
    /// What happens on it; tour plays a choice of the others one after the other.
    #[arg(long, value_name = "NAME", default_value_t = sim::Scenario::Tour, value_parser = named::<_, sim::Scenario>(sim::Scenario::ALL.map(sim::Scenario::as_str)))]
    pub(crate) scenario: sim::Scenario,
    /// Whose NICs it has.
    #[arg(long, value_name = "NAME", default_value_t = sim::Nic::default(), value_parser = named::<_, sim::Nic>(sim::Nic::ALL.map(sim::Nic::as_str)))]
    pub(crate) nic: sim::Nic,
    /// How many of them, 1 to 64.
    #[arg(long, value_name = "N", default_value_t = sim::PortCount::default())]
    pub(crate) ports: sim::PortCount,
    /// Number that the simulation's chance comes from: the same number gives the same run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Simulated {
    /// The server, whose clock runs at `speed`.
    pub(crate) fn setup(&self, speed: sim::Speed) -> sim::Setup {
        sim::Setup {
            scenario: self.scenario,
            seed: self.seed,
            nic: self.nic,
            ports: self.ports,
            speed,
        }
    }
}

/// One of these names, all of which the help lists.
fn named<const N: usize, T>(names: [&'static str; N]) -> impl TypedValueParser<Value = T> + use<N, T>
where
    T: FromStr<Err: std::error::Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// Options of `sim`.
#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// The file to write, FILE.tar.zst. It must not be there yet.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) server: Simulated,
    /// How far into the scenario, as in 90s or 2h.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    pub(crate) at: Duration,
}

/// Options of `ports`.
#[derive(Debug, Args)]
pub(crate) struct Ports {
    /// Tell who holds queue pairs of each device instead: process, container, pod.
    #[arg(long)]
    pub(crate) who: bool,
    /// Print JSON for programs.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Tell the long story of one check, as in pfc_off, and look at nothing.
    #[arg(long, value_name = "CHECK")]
    pub(crate) explain: Option<String>,
    /// For people or for programs.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = DoctorFormat::Text)]
    pub(crate) format: DoctorFormat,
    /// From which severity on the exit status is not 0.
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t = FailOn::Warning)]
    pub(crate) fail_on: FailOn,
    /// Watch the traffic for so long.
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = humantime::parse_duration)]
    pub(crate) watch: Duration,
    /// Configuration file (TOML): its section `policy` says what this fabric is meant to be.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// How the doctor's answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// By severity, with the evidence and what mends it.
    Text,
    /// All of it.
    Json,
    /// JUnit XML: a test case for each check.
    Junit,
}

/// What ends the doctor with a status other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Anything.
    Note,
    /// Warnings and errors.
    Warning,
    /// Errors alone.
    Error,
    /// Nothing.
    Never,
}

/// Options of `history`.
#[derive(Debug, Args)]
pub(crate) struct History {
    /// Around this time, as in 03:12, "yesterday 03:12", -2h or RFC 3339.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["since", "until"], allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
    /// So long before and after it.
    #[arg(long, value_name = "TIME", default_value = "2m", requires = "at", value_parser = humantime::parse_duration)]
    pub(crate) window: Duration,
    /// From this time on.
    #[arg(long, value_name = "TIME", default_value = "-15m", allow_hyphen_values = true)]
    pub(crate) since: String,
    /// Up to this time.
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    pub(crate) until: String,
    /// Of this port alone: RDMA device, netdev or PCI address.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<String>,
    /// But for tables: of this counter or signal alone, as in rx_prio3_pause or pfc.rx_frames.
    #[arg(long, value_name = "NAME")]
    pub(crate) signal: Option<String>,
    /// But for tables: one value in so long [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) step: Option<Duration>,
    /// Table: every counter that left the range of the hour before, in the order in which they did.
    #[arg(long, conflicts_with = "all")]
    pub(crate) what_moved: bool,
    /// Table: show what moved as usual as well.
    #[arg(long)]
    pub(crate) all: bool,
    /// For people or for programs.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = HistoryFormat::Table)]
    pub(crate) format: HistoryFormat,
    /// The archive: DIR/archive of the daemon's --state DIR, or a copy of it.
    #[arg(long, value_name = "DIR", default_value = ARCHIVE)]
    pub(crate) archive: PathBuf,
}

/// Options of `events`.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// That went on at this time or later, as in 03:12, "yesterday 03:12", -2h or RFC 3339.
    #[arg(long, value_name = "TIME", default_value = "-24h", allow_hyphen_values = true)]
    pub(crate) since: String,
    /// That had begun by this time.
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    pub(crate) until: String,
    /// Of this port alone: RDMA device or netdev.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<String>,
    /// Of this kind alone, as in pfc_storm.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(signals::detect::EventKind::ALL.map(signals::detect::EventKind::as_str)))]
    pub(crate) kind: Option<String>,
    /// Print JSON for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// The archive: DIR/archive of the daemon's --state DIR, or a copy of it.
    #[arg(long, value_name = "DIR", default_value = ARCHIVE)]
    pub(crate) archive: PathBuf,
}

/// Options of `incidents`.
#[derive(Debug, Args)]
pub(crate) struct Incidents {
    /// Print JSON for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// The archive: DIR/archive of the daemon's --state DIR, or a copy of it.
    #[arg(long, value_name = "DIR", default_value = ARCHIVE)]
    pub(crate) archive: PathBuf,
}

/// What to do with an incident.
#[derive(Debug, Subcommand)]
pub(crate) enum Incident {
    /// Tell on one page what happened: verdict, timeline, what moved first, what each port did.
    Show {
        #[command(flatten)]
        which: IncidentFile,
        /// Print JSON for programs.
        #[arg(long)]
        json: bool,
    },
    /// Copy it into one file, which `incident show FILE` reads on any machine.
    Export {
        #[command(flatten)]
        which: IncidentFile,
        /// The file to write. It must not be there yet.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// An incident.
#[derive(Debug, Args)]
pub(crate) struct IncidentFile {
    /// As `incidents` lists it, `last`, or a file that was exported.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The archive: DIR/archive of the daemon's --state DIR, or a copy of it.
    #[arg(long, value_name = "DIR", default_value = ARCHIVE)]
    pub(crate) archive: PathBuf,
}

/// How history is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// What was unlike the hour before, with its course.
    Table,
    /// Every value, one a line.
    Csv,
    /// Every value, by counter.
    Json,
    /// Every value as a row, for DuckDB, pandas and the like; to a file.
    Parquet,
    /// The series of /metrics with their times, for promtool tsdb create-blocks-from openmetrics.
    Openmetrics,
}

/// Options of `capture`.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// The file to write, FILE.tar.zst. It must not be there yet.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Keep addresses, GUIDs and names as they are, instead of putting pseudonyms.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Configuration file (TOML): devices that it leaves out are left out here too.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tree: Tree,
}

/// What is looked at.
#[derive(Debug, Args)]
pub(crate) struct Source {
    #[command(flatten)]
    pub(crate) tree: Tree,
    /// Read a capture, FILE.tar.zst or the folder of one, as if it were this machine.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sysfs", "procfs"])]
    pub(crate) replay: Option<PathBuf>,
}

/// Where the kernel's files are.
#[derive(Debug, Args)]
pub(crate) struct Tree {
    /// Where sysfs is mounted; a copied tree works too, without what only the kernel can answer.
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub(crate) sysfs: PathBuf,
    /// Where procfs is mounted.
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    pub(crate) procfs: PathBuf,
}

/// Where the daemon listens and keeps its state.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to serve on [default: 127.0.0.1:14791].
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// TLS and passwords, in a web.yml as Prometheus and its exporters have it [default: none of either].
    #[arg(long, value_name = "FILE")]
    pub(crate) web_config: Option<PathBuf>,
    /// Directory to keep history in, made if it is not there. Without one, history is the last minutes in memory.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// The command line of this process. Help and version are printed and end the process with status 0.
pub(crate) fn parse() -> Result<Command, Failure> {
    match Cli::try_parse() {
        Ok(cli) => Ok(cli.command),
        Err(error) if error.use_stderr() => {
            let text = error.render().to_string();
            Err(Failure::Usage(
                text.trim().trim_start_matches("error: ").to_owned(),
            ))
        }
        Err(error) => error.exit(),
    }
}
