//! The command line.

// Its comments are shown to people as help texts, where backticks would only disturb.
#![allow(clippy::doc_markdown)]

use crate::failure::Failure;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

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

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sample every RoCE port of this server and serve the metrics.
    Run(Run),
    /// The same on a simulated server with eight 400G NICs, for a look at Rocewatch without the hardware.
    Demo(Demo),
    /// List the ports of this server, and what can be read of each.
    Ports(Ports),
    /// Show every counter of a port: value, growth, unit and meaning.
    Counters(Counters),
    /// Write all that can be read of this server's NICs into a file, for a bug report or for a look elsewhere.
    Capture(Capture),
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
    /// The configuration file.
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
    /// What happens on the simulated server: healthy, incast, pfc-storm, link-flap, or tour, which plays all of them.
    #[arg(long, value_name = "NAME", default_value = "tour")]
    pub(crate) scenario: sim::Scenario,
    /// Number that the simulation's chance comes from: the same number gives the same run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// Options of `ports`.
#[derive(Debug, Args)]
pub(crate) struct Ports {
    /// Print JSON for programs.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) source: Source,
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
    /// Directory for what the daemon keeps, made if it is not there. Nothing is kept there yet.
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
