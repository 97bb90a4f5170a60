//! The shapes of the API's answers. Only these types are serialised; what the agent works with never is.

mod archive;
mod events;
mod history;

pub(crate) use events::{EventPage, Incident, IncidentPage};
pub(crate) use history::History;

use super::refusal::Refusal;
use crate::agent::{News, PortView, SourceView, World};
use crate::clock::Clock;
use serde::Serialize;

/// An answer as JSON.
pub(super) fn json(answer: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(answer).map_err(|error| Refusal::fault(format!("cannot write JSON: {error}")))
}

/// Why there is no other answer, and what to do.
#[derive(Serialize)]
pub(crate) struct Error {
    pub(crate) error: String,
}

/// The agent itself.
#[derive(Serialize)]
pub(crate) struct Status {
    version: &'static str,
    #[serde(flatten)]
    facts: AgentFacts,
    started: String,
    uptime_seconds: f64,
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_ready_because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    listing_error: Option<String>,
    /// Absent if the agent keeps none.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<archive::Archive>,
    sources: Vec<SourceStatus>,
}

/// What does not change while the agent runs.
#[derive(Serialize)]
pub(crate) struct AgentFacts {
    /// Release of the kernel that is watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kernel: Option<String>,
    /// Set if the numbers are not of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_live: Option<String>,
    /// How far the daemon is locked in.
    pub(crate) sandbox: &'static str,
}

#[derive(Serialize)]
struct SourceStatus {
    device: String,
    port: u32,
    #[serde(flatten)]
    source: Source,
}

/// One port, its facts and its sources.
#[derive(Serialize)]
pub(crate) struct Port {
    id: String,
    device: String,
    #[serde(rename = "port")]
    number: u32,
    netdev: Option<String>,
    driver: String,
    firmware: Option<String>,
    board: Option<String>,
    guid: Option<String>,
    pci: Option<Pci>,
    numa_node: Option<u32>,
    gpu: Option<Gpu>,
    rail: Option<usize>,
    link_layer: &'static str,
    state: Option<&'static str>,
    link_up: Option<bool>,
    speed_bits_per_second: Option<u64>,
    mtu: Option<u32>,
    /// Priorities with PFC enabled: the lossless ones, `RoCE`'s among them.
    pfc_priorities: Option<Vec<u8>>,
    gids: Vec<Gid>,
    sources: Vec<Source>,
}

#[derive(Serialize)]
struct Pci {
    address: String,
    link: Option<PcieLink>,
    max_link: Option<PcieLink>,
}

#[derive(Serialize)]
struct PcieLink {
    gigatransfers_per_second: f32,
    width: u8,
}

#[derive(Serialize)]
struct Gpu {
    address: String,
    /// Absent if NIC and GPU meet only in the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pci_bridges_between: Option<u8>,
}

#[derive(Serialize)]
struct Gid {
    index: u32,
    #[serde(rename = "gid")]
    address: String,
    #[serde(rename = "type")]
    kind: &'static str,
    netdev: Option<String>,
}

#[derive(Serialize)]
struct Source {
    #[serde(rename = "source")]
    name: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    stalled: bool,
    frozen: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    full: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<usize>,
    interval_seconds: f64,
    samples: u64,
    samples_late: u64,
    samples_failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ring_rows: Option<u64>,
}

impl Status {
    /// The agent as `world` has it, and what there is to say of the archive.
    pub(crate) fn of(world: &World, news: Option<News>, clock: Clock, facts: AgentFacts) -> Self {
        let now = clock.now();
        let not_ready_because = world.not_ready(now);
        let sources = world
            .ports()
            .flat_map(|view| {
                view.sources.iter().map(|(kind, source)| SourceStatus {
                    device: view.port.device.clone(),
                    port: view.port.id.number,
                    source: Source::of(kind.as_str(), source),
                })
            })
            .collect();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            facts,
            started: humantime::format_rfc3339_seconds(clock.started_at()).to_string(),
            uptime_seconds: now as f64 / 1e9,
            ready: not_ready_because.is_none(),
            not_ready_because,
            listing_error: world.listing_error().map(str::to_owned),
            archive: news.map(archive::Archive::of),
            sources,
        }
    }
}

/// Every port as `world` has it.
pub(crate) fn ports(world: &World) -> Vec<Port> {
    world.ports().map(Port::of).collect()
}

impl Port {
    fn of(view: &PortView) -> Self {
        let port = &view.port;
        let link = |link: model::PcieLink| PcieLink {
            gigatransfers_per_second: link.gigatransfers,
            width: link.width,
        };
        Self {
            id: port.id.to_string(),
            device: port.device.clone(),
            number: port.id.number,
            netdev: port.netdev.clone(),
            driver: port.driver.clone(),
            firmware: port.firmware.clone(),
            board: port.board.clone(),
            guid: port.guid.clone(),
            pci: port.pci.as_ref().map(|pci| Pci {
                address: pci.address.clone(),
                link: pci.current.map(link),
                max_link: pci.max.map(link),
            }),
            numa_node: port.numa_node,
            gpu: port.gpu.as_ref().map(|gpu| Gpu {
                address: gpu.address.clone(),
                pci_bridges_between: gpu.bridges,
            }),
            rail: view.rail,
            link_layer: port.link_layer.as_str(),
            state: port.state.map(model::PortState::as_str),
            link_up: view.link_up(),
            speed_bits_per_second: view.speed_bits_per_second(),
            mtu: port.mtu,
            pfc_priorities: view.pfc_priorities(),
            gids: port.gids.iter().map(Gid::of).collect(),
            sources: view
                .sources
                .iter()
                .map(|(kind, source)| Source::of(kind.as_str(), source))
                .collect(),
        }
    }
}

impl Gid {
    fn of(gid: &model::Gid) -> Self {
        let kind = match gid.kind {
            model::GidType::V1 => "IB/RoCE v1",
            model::GidType::V2 => "RoCE v2",
            model::GidType::Unknown => "unknown",
        };
        Self {
            index: gid.index,
            address: gid.gid.clone(),
            kind,
            netdev: gid.netdev.clone(),
        }
    }
}

impl Source {
    fn of(name: &'static str, view: &SourceView) -> Self {
        let why = view.state.why().or(view.failing.as_ref());
        Self {
            name,
            state: view.state.as_str(),
            reason: why.map(|why| why.reason),
            why: why.map(|why| why.detail.clone()),
            stalled: view.stalled,
            frozen: view.frozen,
            full: view.full.clone(),
            columns: view.schema().map(|schema| schema.columns.len()),
            interval_seconds: view.figures.interval as f64 / 1e9,
            samples: view.figures.samples,
            samples_late: view.figures.late,
            samples_failed: view.figures.failed,
            ring_rows: view.figures.ring_rows,
        }
    }
}
