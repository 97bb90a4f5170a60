//! Counters of RDMA devices: by RDMA netlink, or by the files that the same kernel code fills.

pub(crate) mod nldev;

mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(test)]
mod guest;
mod ledger;
mod optional;
mod qp_counters;
mod queue_pairs;
pub(crate) mod resources;
mod stat;

use crate::Context;
use crate::tree::Tree;
use catalog::Signal;
use files::{Files, Kept};
use model::{Column, Opened, Port, Read, Schema, Source, SourceKind, Why};
use optional::SwitchedOn;
use qp_counters::QpCounters;
use queue_pairs::QueuePairs;
use rustix::io::Errno;
use stat::Stat;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a file of `hw_counters` that failed is left alone.
const REST: Duration = Duration::from_secs(10);
/// The same of `counters`, where each try is a firmware command and, on a restricted function, a line in the kernel's
/// log.
const LONG_REST: Duration = Duration::from_secs(600);

/// Opens `hw_counters` of a port.
pub(crate) fn open_hw_counters(ctx: &Context, port: &Port) -> Opened {
    if let Some(why) = without_rdma(&ctx.tree, port) {
        return Opened::NotApplicable(why);
    }
    let Some(index) = port.rdma_index else {
        tracing::debug!(
            device = port.device,
            "hw_counters are read from their files: RDMA netlink is asked of the running kernel only"
        );
        return opened(port_files(&ctx.tree, port));
    };
    // Before the names are asked for, so that they are among them.
    let switched_on = ctx
        .optional_counters
        .then(|| SwitchedOn::all(port, index))
        .flatten();
    match Stat::open(port, index) {
        Ok(stat) => active(HwCounters {
            tree: ctx.tree.clone(),
            port: port.clone(),
            way: Way::Netlink(stat),
            queue_pairs: QueuePairs::new(port, index),
            _switched_on: switched_on,
        }),
        // Netlink says EINVAL for everything that a driver refuses: the files tell more.
        Err(why) => {
            tracing::debug!(device = port.device, %why, "hw_counters are read from their files");
            opened(port_files(&ctx.tree, port))
        }
    }
}

/// Opens the counters that a device keeps for all its ports together.
pub(crate) fn open_device_counters(ctx: &Context, port: &Port) -> Opened {
    if let Some(why) = without_rdma(&ctx.tree, port) {
        return Opened::NotApplicable(why);
    }
    let first = ctx
        .tree
        .list(&format!("class/infiniband/{}/ports", port.device))
        .unwrap_or_default();
    if first.iter().filter_map(|entry| entry.name.parse().ok()).min() != Some(port.id.number) {
        let detail = format!(
            "the counters of {} as a whole are read with its first port",
            port.device
        );
        return Opened::NotApplicable(Why::new("first_port_only", detail));
    }
    let directory = format!("class/infiniband/{}/hw_counters", port.device);
    if !ctx.tree.exists(&directory) {
        let detail = format!("{} has no counters of the device as a whole", port.device);
        return Opened::NotApplicable(Why::new("ENOENT", detail));
    }
    let kept = Kept {
        port,
        source: SourceKind::DeviceCounters,
        rest: REST,
    };
    opened(Files::open(&ctx.tree, &directory, &kept, |_| true))
}

/// Opens the counters that queue pairs of a port have of their own.
pub(crate) fn open_qp_counters(ctx: &Context, procfs: &Path, port: &Port) -> Opened {
    if let Some(why) = without_rdma(&ctx.tree, port) {
        return Opened::NotApplicable(why);
    }
    let Some(index) = port.rdma_index else {
        let detail = "queue pairs are told of by the running kernel only";
        return Opened::NotApplicable(Why::new("not_on_this_tree", detail));
    };
    match QpCounters::open(port, index, procfs) {
        Ok(source) => active(source),
        // Before 5.3, and while the device goes.
        Err(why) if matches!(why.reason, "EINVAL" | "EOPNOTSUPP" | "EPROTONOSUPPORT") => {
            Opened::NotApplicable(why)
        }
        Err(why) => Opened::Failed(why),
    }
}

/// Opens `counters`, InfiniBand's performance management. Each file is a firmware command on mlx5, so of a running
/// kernel only those are read that no cheaper source has.
pub(crate) fn open_port_counters(ctx: &Context, port: &Port) -> Opened {
    if let Some(why) = without_rdma(&ctx.tree, port) {
        return Opened::NotApplicable(why);
    }
    let directory = format!(
        "class/infiniband/{}/ports/{}/counters",
        port.device, port.id.number
    );
    let kept = Kept {
        port,
        source: SourceKind::PortCounters,
        rest: LONG_REST,
    };
    let is_copy = !ctx.tree.is_sysfs();
    opened(Files::open(&ctx.tree, &directory, &kept, |column| {
        is_copy || is_traffic(column)
    }))
}

/// `RoCE` bytes and packets: errors, discards and waits are also among the driver's statistics, in one request.
fn is_traffic(column: &Column) -> bool {
    let traffic = [
        Signal::BytesRxRdma,
        Signal::BytesTxRdma,
        Signal::PacketsRxRdma,
        Signal::PacketsTxRdma,
    ];
    column
        .meaning
        .is_some_and(|meaning| traffic.contains(&meaning.signal()))
}

fn without_rdma(tree: &Tree, port: &Port) -> Option<Why> {
    let device = format!("class/infiniband/{}", port.device);
    (!tree.exists(&device)).then(|| Why::new("no_rdma_device", format!("{} is no RDMA device", port.device)))
}

fn port_files(tree: &Tree, port: &Port) -> Result<Files, Why> {
    let directory = format!(
        "class/infiniband/{}/ports/{}/hw_counters",
        port.device, port.id.number
    );
    Files::open(
        tree,
        &directory,
        &Kept {
            port,
            source: SourceKind::HwCounters,
            rest: REST,
        },
        |_| true,
    )
}

fn active(source: impl Source + 'static) -> Opened {
    Opened::Active(Box::new(source))
}

fn opened(files: Result<Files, Why>) -> Opened {
    match files {
        Ok(files) => active(files),
        Err(why) if matches!(why.reason, "ENOENT" | "unsupported" | files::NONE) => {
            Opened::NotApplicable(why)
        }
        Err(why) => Opened::Failed(why),
    }
}

struct HwCounters {
    tree: Arc<Tree>,
    port: Port,
    way: Way,
    queue_pairs: QueuePairs,
    /// Held for as long as the counters are read.
    _switched_on: Option<SwitchedOn>,
}

enum Way {
    Netlink(Stat),
    Files(Files),
}

impl Source for HwCounters {
    fn schema(&self) -> &Arc<Schema> {
        match &self.way {
            Way::Netlink(stat) => stat.schema(),
            Way::Files(files) => files.schema(),
        }
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        self.queue_pairs.look();
        let stat = match &mut self.way {
            Way::Files(files) => return files.read(row),
            Way::Netlink(stat) => stat,
        };
        match stat.read(row) {
            Ok(read) => read,
            // Counters were switched on, and the answer no longer fits into the kernel's page.
            Err(Errno::MSGSIZE) => match port_files(&self.tree, &self.port) {
                Ok(files) => {
                    self.way = Way::Files(files);
                    Read::SchemaChanged
                }
                Err(why) => Read::Missing(why),
            },
            Err(errno) => Read::Missing(stat.why(errno)),
        }
    }
}
