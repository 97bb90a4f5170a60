//! Asynchronous events of an RDMA device: a port that fails or comes back, a device that dies, a GID table that changes.
//!
//! By libibverbs, which is opened when it is wanted and need not be there otherwise. What it costs the device: a user
//! context for each port that is watched, with what the driver gives to every context (on mlx5 a transport domain, a user
//! access region of the PCI BAR and a doorbell page). The context has to be opened for writing, which the kernel lets
//! anybody do but a container or a hardened unit may not, and whoever may do that may also create queue pairs; so the source
//! is opened only where an operator asked for it
//! (docs/decisions/0004-rdma-events.md).
//!
//! Events of a queue pair, completion queue or shared receive queue reach its owner alone, so there is no column for them:
//! it would stay at 0 while other processes' queue pairs fail.

#[cfg(test)]
mod guest;
mod library;
#[cfg(test)]
mod tests;

use crate::{Context, Tree, why_from_errno};
use library::{Device, Event};
use model::{Opened, Port, Read, Schema, Source, SourceKind, Why};
use rustix::io::Errno;
use std::sync::Arc;

/// Events taken in one read, so that a flood cannot keep the lane for ever.
const BATCH: usize = 1024;

/// The events that are counted: `enum ibv_event_type`, in lower case and without its prefix. They are those of a port
/// or of the whole device.
const EVENTS: [(u32, &str); 8] = [
    (library::DEVICE_FATAL, "device_fatal"),
    (9, "port_active"),
    (10, "port_err"),
    (11, "lid_change"),
    (12, "pkey_change"),
    (13, "sm_change"),
    (17, "client_reregister"),
    (18, "gid_change"),
];

/// Opens the source of a port.
pub(crate) fn open(ctx: &Context, port: &Port) -> Opened {
    if !port.has_rdma() {
        let detail = format!("{} is no RDMA device", port.device);
        return Opened::NotApplicable(Why::new("no_rdma_device", detail));
    }
    if !ctx.tree.is_sysfs() {
        let detail = "events are told by the running kernel only";
        return Opened::NotApplicable(Why::new("not_on_this_tree", detail));
    }
    // It comes a moment after the device itself, and with the module ib_uverbs at any time: worth another try.
    let Some(uverbs) = uverbs(&ctx.tree, &port.device) else {
        let detail = format!(
            "{} has no device for user programs: load the module ib_uverbs",
            port.device
        );
        return Opened::Failed(Why::new("no_uverbs", detail));
    };
    let node = uverbs.rsplit('/').next().unwrap_or_default();
    match Device::open(&port.device, &format!("/dev/infiniband/{node}")) {
        Ok(device) => Opened::Active(Box::new(Verbs {
            schema: schema(port),
            tree: ctx.tree.clone(),
            name: port.device.clone(),
            uverbs,
            device: Some(device),
            counts: [0; EVENTS.len()],
        })),
        Err(why) if why.reason == library::ABSENT => Opened::NotApplicable(why),
        Err(why) => Opened::Failed(why),
    }
}

fn schema(port: &Port) -> Arc<Schema> {
    let names = EVENTS.map(|(_, name)| name);
    Arc::new(Schema::new(
        port.id.clone(),
        &port.driver,
        SourceKind::Verbs,
        names,
    ))
}

/// The directory of the device's uverbs device.
fn uverbs(tree: &Tree, device: &str) -> Option<String> {
    let entries = tree.list("class/infiniband_verbs").ok()?;
    entries
        .into_iter()
        .map(|entry| format!("class/infiniband_verbs/{}", entry.name))
        .find(|path| tree.read_string(&format!("{path}/ibdev")).as_deref() == Ok(device))
}

struct Verbs {
    schema: Arc<Schema>,
    tree: Arc<Tree>,
    name: String,
    uverbs: String,
    /// `None` once the device is gone.
    device: Option<Device>,
    counts: [u64; EVENTS.len()],
}

impl Verbs {
    /// Takes what has happened since the last time; true if something has.
    fn drain(&mut self) -> Result<bool, Errno> {
        let device = self.device.as_mut().ok_or(Errno::NODEV)?;
        let mut any = false;
        for _ in 0..BATCH {
            match device.next_event() {
                Ok(event) => any |= count(event, self.schema.port.number, &mut self.counts),
                Err(Errno::AGAIN) => break,
                // The counts that there are go out first; the failure is there again at the next read.
                Err(_) if any => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(any)
    }

    /// Lets go of a device that is being removed. A driver that cannot take its device away from user programs waits until
    /// the last of them has closed it (`ib_uverbs_remove_one` in `drivers/infiniband/core/uverbs_main.c`).
    fn let_go(&mut self) -> bool {
        let gone = !self.tree.exists(&self.uverbs);
        if gone {
            self.device = None;
        }
        gone
    }
}

impl Source for Verbs {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        let drained = self.drain();
        let gone = self.let_go();
        match drained {
            Ok(any) if any || !gone => {
                row.copy_from_slice(&self.counts);
                Read::Row
            }
            Ok(_) => Read::Missing(why_from_errno(Errno::NODEV, &self.name)),
            Err(errno) => Read::Missing(why_from_errno(errno, &format!("events of {}", self.name))),
        }
    }
}

/// Counts an event if it is of this port or of the whole device, and of a known kind.
fn count(event: Event, port: u32, counts: &mut [u64; EVENTS.len()]) -> bool {
    let known = EVENTS.iter().position(|(kind, _)| *kind == event.kind);
    let Some(at) = known.filter(|_| event.port.is_none_or(|of| of == port)) else {
        return false;
    };
    counts[at] += 1;
    true
}
