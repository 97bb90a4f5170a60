//! `rocewatch nccl-env`: the right settings of NCCL for this node, each with its reason; `--check`: whether those that are set
//! are right.

mod advice;
mod check;
mod environment;
mod filter;
mod node;
#[cfg(test)]
mod tests;

use super::{agent, print, to_json};
use crate::agent::{Agent, PortView};
use crate::cli::NcclEnv;
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Failure;
use crate::files;
use advice::Advice;
use check::{Checked, State};
use doctor::PortFacts;
use environment::Environment;
use linux::Processes;
use model::{Host, Port, Why};
use node::Node;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Where NCCL looks for what the environment does not have.
const FILE: &str = "/etc/nccl.conf";
/// Names another file in its place.
const OTHER_FILE: &str = "NCCL_CONF_FILE";

/// The answer for programs.
#[derive(Serialize)]
struct Answer<'a> {
    variables: &'a [Advice],
    left_out: Vec<LeftOut<'a>>,
}

#[derive(Serialize)]
struct LeftOut<'a> {
    device: &'a str,
    port: u32,
    why: &'a str,
}

/// Prints what is right, or checks what is set.
pub(super) fn show(host: &Arc<dyn Host>, options: &NcclEnv, clock: Clock) -> Result<(), Failure> {
    let agent = agent::watch(host, &Config::default(), clock)?;
    let replayed = options.source.replay.is_some();
    let processes = Processes::open(&options.source.tree.procfs).map_err(|why| no_procfs(&why));
    let default_netdev = match &processes {
        Ok(processes) if !replayed => processes.default_netdev(options.pid),
        _ => None,
    };
    let node = Node::new(facts(host, &agent), default_netdev);
    if options.check || options.pid.is_some() {
        let processes = processes?;
        let environment = set(options, &processes)?;
        let netdevs = processes.netdevs(options.pid).filter(|_| !replayed);
        let checked = check::check(&node, &environment, netdevs.as_deref());
        return tell_checked(&checked, options.json);
    }
    let variables = advice::advise(&node);
    if !options.json {
        return print(&for_shells(&node, &variables));
    }
    let left_out = node.left_out.iter().map(|(facts, why)| LeftOut {
        device: &facts.port.device,
        port: facts.port.id.number,
        why,
    });
    print(&to_json(&Answer {
        variables: &variables,
        left_out: left_out.collect(),
    })?)
}

fn facts(host: &Arc<dyn Host>, agent: &Agent) -> Vec<PortFacts> {
    let ports: Vec<Port> = agent.world().ports().map(|view| (*view.port).clone()).collect();
    // May wait for rtnl, so nothing is held meanwhile.
    let setup = host.setup(&ports);
    let world = agent.world();
    let read = |view: &PortView| PortFacts::read(&view.port, &view.signals, &setup, None);
    world.ports().map(read).collect()
}

/// What is set for the process that was asked about, or for this one.
fn set(options: &NcclEnv, processes: &Processes) -> Result<Environment, Failure> {
    let mut environment = Environment::default();
    let root = if let Some(pid) = options.pid {
        let variables = processes.environment(pid).map_err(|why| no_environment(&why))?;
        environment.add(&format!("the environment of process {pid}"), variables);
        options.source.tree.procfs.join(format!("{pid}/root"))
    } else {
        let variables = std::env::vars_os().map(|(name, value)| {
            let text = |word: OsString| word.to_string_lossy().into_owned();
            (text(name), text(value))
        });
        environment.add("the environment", variables);
        PathBuf::from("/")
    };
    let file = environment
        .get(OTHER_FILE)
        .map_or(FILE, |(file, _)| file)
        .to_owned();
    if let Ok(text) = files::read_text(&root.join(file.trim_start_matches('/'))) {
        environment.add(&file, environment::of_file(&text));
    }
    Ok(environment)
}

fn no_procfs(why: &Why) -> Failure {
    Failure::Runtime(format!(
        "{why}; name the place where procfs is mounted with --procfs"
    ))
}

fn no_environment(why: &Why) -> Failure {
    let remedy = match why.reason {
        "EACCES" | "EPERM" => "run it as the process's user or as root",
        _ => "name a process that runs",
    };
    Failure::Runtime(format!("{why}; {remedy}"))
}

/// Lines that a shell can read: reasons are comments.
fn for_shells(node: &Node, variables: &[Advice]) -> String {
    let mut out = String::from(
        "# What NCCL (and RCCL, UCX, gloo) should be told on this node. To use it: . <(rocewatch nccl-env)\n",
    );
    for (facts, why) in &node.left_out {
        let _ = writeln!(
            out,
            "# not {}/{}: {}",
            one_line(&facts.port.device),
            facts.port.id.number,
            one_line(why)
        );
    }
    for advice in variables {
        let _ = writeln!(out, "\n# {}", one_line(&advice.why));
        let _ = match &advice.value {
            Some(value) => writeln!(out, "export {}={}", advice.name, quoted(value)),
            None => writeln!(out, "# {} is left as it is", advice.name),
        };
    }
    out
}

/// Nothing of a comment may become a command.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// A value as a shell reads it back, whatever is in it.
fn quoted(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=:,._-^/".contains(&byte);
    if !value.is_empty() && value.bytes().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

fn tell_checked(checked: &[Checked], json: bool) -> Result<(), Failure> {
    if json {
        print(&to_json(&checked)?)?;
    } else {
        print(&for_people(checked))?;
    }
    let wrong = checked.iter().any(|checked| checked.state == State::Wrong);
    if wrong {
        return Err(Failure::Ended {
            status: 1,
            message: None,
        });
    }
    Ok(())
}

fn for_people(checked: &[Checked]) -> String {
    let mut out = String::new();
    for checked in checked {
        let state = match checked.state {
            State::Right => "right",
            State::Doubtful => "doubtful",
            State::Wrong => "WRONG",
            State::Unknown => "unknown",
        };
        let value = checked
            .value
            .as_ref()
            .map_or("(not set)".to_owned(), |value| format!("={value}"));
        let _ = writeln!(out, "{state:<9} {}{value}", checked.name);
        let place = checked.place.as_ref().map(|place| format!(" [{place}]"));
        let _ = writeln!(out, "          {}{}", checked.says, place.unwrap_or_default());
    }
    out
}
