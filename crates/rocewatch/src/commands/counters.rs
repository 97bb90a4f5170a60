//! `rocewatch counters`: every counter of a port with its meaning, its value, and how fast it grows.

use super::{agent, print, to_json};
use crate::agent::{PortView, World};
use crate::cli::Counters;
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Failure;
use catalog::Width;
use model::delta::{self, Delta};
use model::{ABSENT, Column, Host, SourceKind};
use ring::Row;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// The span over which growth is measured: long enough for a source that is read once in two seconds.
const SPAN: Duration = Duration::from_millis(2200);
/// Clears a terminal and goes to its top (ECMA-48).
const CLEAR: &str = "\x1b[2J\x1b[H";

type Rows = BTreeMap<(String, SourceKind), Row>;

/// One counter as programs get it.
#[derive(Serialize)]
struct Counter<'a> {
    device: &'a str,
    port: u32,
    source: &'static str,
    #[serde(rename = "counter")]
    name: &'a str,
    value: u64,
    /// Absent for what does not count, and for what began anew meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
}

/// Prints the counters of the ports that were asked for.
pub(super) fn list(host: &Arc<dyn Host>, options: &Counters, clock: Clock) -> Result<(), Failure> {
    let mut config = Config::default();
    // Who asks for every counter wants those of queue pairs too, where somebody has the kernel keep some.
    config.sampling.qp_counters = Some(Duration::from_secs(1));
    let agent = agent::watch(host, &config, clock)?;
    let mut before = newest(&agent.world());
    loop {
        agent::pause(SPAN);
        let world = agent.world();
        let now = newest(&world);
        if options.source.replay.is_some() {
            // What a capture read once stands still here, and nobody knows how fast it counted.
            before.retain(|key, row| now.get(key).is_some_and(|later| later.values != row.values));
        }
        let ports: Vec<_> = world
            .ports()
            .filter(|view| is_asked_for(view, options.port.as_deref()))
            .collect();
        if ports.is_empty() {
            return Err(nothing_there(&world, options.port.as_deref()));
        }
        let counters: Vec<_> = ports
            .iter()
            .flat_map(|view| of_port(view, &before, &now))
            .collect();
        let text = if options.json {
            to_json(&counters)?
        } else {
            let clear = if options.watch { CLEAR } else { "" };
            format!("{clear}{}", for_people(&counters, options.all))
        };
        print(&text)?;
        if !options.watch {
            return Ok(());
        }
        drop(world);
        before = now;
    }
}

/// The newest row of every source.
fn newest(world: &World) -> Rows {
    let of_view = |view: &PortView| {
        let id = view.port.id.to_string();
        let rows = view
            .sources
            .iter()
            .filter_map(move |(kind, source)| Some(((id.clone(), *kind), source.newest()?)));
        rows.collect::<Vec<_>>()
    };
    world.ports().flat_map(of_view).collect()
}

fn is_asked_for(view: &PortView, name: Option<&str>) -> bool {
    let port = &view.port;
    let known = [
        Some(port.device.as_str()),
        port.netdev.as_deref(),
        port.pci.as_ref().map(|pci| pci.address.as_str()),
    ];
    name.is_none_or(|name| known.contains(&Some(name)))
}

fn nothing_there(world: &World, name: Option<&str>) -> Failure {
    let devices: Vec<_> = world.ports().map(|view| view.port.device.as_str()).collect();
    Failure::Runtime(match name {
        Some(name) if !devices.is_empty() => {
            format!("there is no port {name:?}; there are {}", devices.join(", "))
        }
        _ => "this machine has no RDMA device and no physical Ethernet port".to_owned(),
    })
}

fn of_port<'a>(view: &'a PortView, before: &'a Rows, now: &'a Rows) -> impl Iterator<Item = Counter<'a>> {
    let id = view.port.id.to_string();
    view.sources.iter().flat_map(move |(kind, source)| {
        let key = (id.clone(), *kind);
        let (then, row) = (before.get(&key), now.get(&key));
        let columns = source.schema().map_or(&[][..], |schema| &schema.columns);
        columns.iter().enumerate().filter_map(move |(at, column)| {
            let value = *row?.values.get(at)?;
            (value != ABSENT).then(|| Counter {
                device: &view.port.device,
                port: view.port.id.number,
                source: kind.as_str(),
                name: &column.name,
                value,
                per_second: row.zip(then).and_then(|(now, then)| rate(column, at, then, now)),
                signal: column.meaning.map(|meaning| meaning.signal().as_str()),
                unit: column.meaning.map(|meaning| meaning.entry.unit.as_str()),
                meaning: column.meaning.map(|meaning| meaning.entry.meaning),
            })
        })
    })
}

/// By the real time between the reads, as everywhere.
fn rate(column: &Column, at: usize, then: &Row, now: &Row) -> Option<f64> {
    if !column.counts {
        return None;
    }
    let (before, after) = (*then.values.get(at)?, *now.values.get(at)?);
    let elapsed = now
        .window
        .midpoint()
        .checked_sub(then.window.midpoint())
        .filter(|elapsed| *elapsed > 0)?;
    let width = column.meaning.map_or(Width::FULL, |meaning| meaning.entry.width);
    match delta::step(before, after, width, elapsed) {
        Delta::Grew(grew) if before != ABSENT => Some(grew as f64 * 1e9 / elapsed as f64),
        _ => None,
    }
}

/// Counters that have counted, or all of them.
fn for_people(counters: &[Counter<'_>], all: bool) -> String {
    let mut out = String::new();
    let mut heading = String::new();
    for counter in counters.iter().filter(|counter| all || counter.value != 0) {
        let place = format!("{}/{}  {}", counter.device, counter.port, counter.source);
        if place != heading {
            let _ = writeln!(out, "{}{place}", if heading.is_empty() { "" } else { "\n" });
            heading = place;
        }
        let rate = counter
            .per_second
            .map(|rate| format!("{rate:.0}/s"))
            .unwrap_or_default();
        let unit = counter.unit.unwrap_or_default();
        let meaning = counter.meaning.unwrap_or("not in the catalogue");
        let _ = writeln!(
            out,
            "  {:<34} {:>20} {rate:>14}  {unit:<12} {meaning}",
            counter.name, counter.value
        );
    }
    let hidden = counters.iter().filter(|counter| counter.value == 0).count();
    if !all && hidden > 0 {
        let _ = writeln!(out, "\n{hidden} counters are 0; --all shows them too");
    }
    out
}
