//! `rocewatch ports`: what there is, and what can be read of it.

use super::{agent, print};
use crate::agent::{PortView, SourceState, SourceView, World};
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Failure;
use crate::http;
use crate::who;
use model::{GidType, Host, PortState};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// How the kernel prints the first part of an IPv4 address in a GID.
const IPV4_IN_GID: &str = "0000:0000:0000:0000:0000:ffff:";

/// A device that has not told within this does not answer. A thousand queue pairs take mlx5 a tenth of a second.
const WHO_LIMIT: Duration = Duration::from_secs(5);

/// Prints every port with its facts and its sources.
pub(super) fn list(host: &Arc<dyn Host>, json: bool, clock: Clock) -> Result<(), Failure> {
    let agent = agent::watch(host, &Config::default(), clock)?;
    let world = agent.world();
    let text = if json {
        super::to_json(&http::ports(&world))?
    } else {
        for_people(&world)
    };
    print(&text)
}

/// Prints who holds queue pairs of each device.
pub(super) fn who(host: &Arc<dyn Host>, json: bool) -> Result<(), Failure> {
    let ports = host.ports().map_err(Failure::Runtime)?;
    let ports: Vec<_> = ports.into_iter().map(Arc::new).collect();
    let devices = who::on(host, &ports, WHO_LIMIT);
    if json {
        return print(&super::to_json(&devices)?);
    }
    let mut out = String::new();
    for device in &devices {
        device.write(&mut out);
    }
    if devices.is_empty() {
        out.push_str("This machine has no RDMA device.\n");
    }
    print(&out)
}

fn for_people(world: &World) -> String {
    if world.ports().next().is_none() {
        return "No port: this machine has no RDMA device and no physical Ethernet port. `rocewatch demo` shows a simulated server.\n"
            .to_owned();
    }
    let mut out = String::new();
    for view in world.ports() {
        describe(view, &mut out);
    }
    out
}

fn describe(view: &PortView, out: &mut String) {
    let port = &view.port;
    let mut heading = vec![format!("{}/{}", port.device, port.id.number)];
    heading.extend(port.netdev.as_ref().map(|netdev| format!("netdev {netdev}")));
    heading.extend(view.rail.map(|rail| format!("rail {rail}")));
    let _ = writeln!(out, "{}", heading.join("  "));
    row(out, "driver", &driver(view));
    row(out, "place", &place(view));
    row(out, "link", &link(view));
    row(out, "RoCE", &roce(view));
    let mut label = "sources";
    for (kind, source) in &view.sources {
        let text = format!(
            "{:<16} {:<15} {}",
            kind.as_str(),
            source.state.as_str().replace('_', " "),
            remark(source)
        );
        row(out, label, &[text.trim_end().to_owned()]);
        label = "";
    }
    out.push('\n');
}

fn row(out: &mut String, label: &str, parts: &[String]) {
    if !parts.is_empty() {
        let _ = writeln!(out, "  {label:<9}{}", parts.join(", "));
    }
}

fn driver(view: &PortView) -> Vec<String> {
    let port = &view.port;
    let mut parts = vec![port.driver.clone()];
    parts.extend(
        port.firmware
            .as_ref()
            .map(|firmware| format!("firmware {firmware}")),
    );
    parts.extend(port.board.as_ref().map(|board| format!("board {board}")));
    parts
}

fn place(view: &PortView) -> Vec<String> {
    let port = &view.port;
    let mut parts = Vec::new();
    if let Some(pci) = &port.pci {
        parts.push(format!("PCI {}", pci.address));
        parts.extend(
            pci.current
                .map(|link| format!("{} GT/s x{}", link.gigatransfers, link.width)),
        );
        let below = pci.max.filter(|max| pci.current.is_some_and(|now| now != *max));
        parts.extend(below.map(|max| format!("capable of {} GT/s x{}", max.gigatransfers, max.width)));
    }
    parts.extend(port.numa_node.map(|node| format!("NUMA node {node}")));
    parts.extend(port.gpu.as_ref().map(|gpu| match gpu.bridges {
        Some(bridges) => {
            format!(
                "nearest GPU {} ({} between)",
                gpu.address,
                counted(bridges.into(), "PCI bridge")
            )
        }
        None => format!("nearest GPU {} (by way of the CPU)", gpu.address),
    }));
    parts
}

fn link(view: &PortView) -> Vec<String> {
    let port = &view.port;
    let mut parts = Vec::new();
    parts.extend(view.link_up().map(|up| if up { "up" } else { "down" }.to_owned()));
    parts.extend(port.state.map(PortState::as_str).map(str::to_owned));
    parts.extend(
        view.speed_bits_per_second()
            .map(|speed| format!("{} Gbit/s", speed as f64 / 1e9)),
    );
    parts.extend(port.mtu.map(|mtu| format!("MTU {mtu}")));
    parts.push(port.link_layer.as_str().to_owned());
    parts
}

fn roce(view: &PortView) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(
        view.pfc_priorities()
            .map(|priorities| match priorities.as_slice() {
                [] => "PFC on no priority".to_owned(),
                [one] => format!("PFC on priority {one}"),
                several => format!(
                    "PFC on priorities {}",
                    several.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
                ),
            }),
    );
    let over_ipv4 = view
        .port
        .gids
        .iter()
        .find(|gid| gid.kind == GidType::V2 && gid.gid.starts_with(IPV4_IN_GID));
    parts.extend(over_ipv4.map(|gid| format!("GID {} is RoCE v2 over IPv4", gid.index)));
    parts
}

fn remark(source: &SourceView) -> String {
    if source.stalled || (source.state == SourceState::Opening) {
        return "does not answer: its driver or firmware hangs, or waits for one that does".to_owned();
    }
    if let Some(why) = source.state.why().or(source.failing.as_ref()) {
        return why.to_string();
    }
    if source.frozen {
        return "its firmware has stopped counting: the values stand still while traffic passes".to_owned();
    }
    match (source.schema(), source.figures.interval) {
        (Some(schema), interval) if interval > 0 => {
            // Rounded to what a person reads; the exact interval is a metric.
            let interval = Duration::from_millis(interval.div_ceil(1_000_000));
            format!(
                "{} every {}",
                counted(schema.columns.len(), "counter"),
                humantime::format_duration(interval)
            )
        }
        (Some(schema), _) => counted(schema.columns.len(), "counter"),
        (None, _) => String::new(),
    }
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
