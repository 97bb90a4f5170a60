//! Who holds what of a device: the kernel's tracking of RDMA resources (drivers/infiniband/core/restrack.c, nldev.c), and what
//! procfs tells of the processes that it names.
//!
//! No right is needed to ask. A process of another PID namespace is told of without its number since 5.4, and not at all
//! before. For each queue pair the kernel asks the driver (`ib_query_qp` in `fill_res_qp_entry_query`), on mlx5 one firmware
//! command, so that this is for people and for incidents, not for every second.

use super::nldev::{self, Connection, Entry};
use crate::errno::why_from_errno;
use crate::netlink::{ANSWER, DUMP, Socket};
use crate::place;
use crate::processes::Processes;
use model::{Holder, Owner, Place, Port, QueuePair, QueuePairs, Why};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::collections::HashMap;
use std::net::SocketAddr;

/// The queue pairs of the device of a port.
///
/// # Errors
/// The port is of no RDMA device of the running kernel, or the kernel refuses.
pub(crate) fn queue_pairs(processes: &Processes, port: &Port) -> Result<QueuePairs, Why> {
    let Some(index) = port.rdma_index else {
        let detail = format!("{} is no RDMA device of the running kernel", port.device);
        return Err(Why::new("no_rdma_device", detail));
    };
    let why = |errno| why_from_errno(errno, &format!("RDMA netlink RES_QP_GET of {}", port.device));
    let mut socket = Socket::open(NlFamily::Rdma, &[], DUMP.max(ANSWER)).map_err(why)?;
    let mut entries = Vec::new();
    socket
        .dump(&mut nldev::queue_pairs_of(index), |message| {
            entries.extend(nldev::queue_pairs(message.payload));
        })
        .map_err(why)?;
    let remotes = connections(&mut socket, index).unwrap_or_default();
    let count = count(&mut socket, index);
    let mut owners = Owners::new(processes);
    let mut seen: Vec<_> = entries
        .into_iter()
        .map(|entry| QueuePair {
            number: entry.number,
            port: entry.port,
            kind: entry.kind,
            state: entry.state,
            remote: entry.remote,
            remote_address: remotes.get(&entry.number).copied(),
            owner: owners.of(entry),
        })
        .collect();
    seen.sort_by_key(|queue_pair| queue_pair.number);
    let of = count.filter(|count| *count > seen.len() as u64);
    Ok(QueuePairs { seen, of })
}

/// How many queue pairs the device of a port has, by the kernel's own count: a walk over what it tracks, without a word to the
/// driver (`fill_res_info` in nldev.c). `None` if the port is of no RDMA device of the running kernel, or it does not tell.
pub(crate) fn queue_pair_count(port: &Port) -> Option<u64> {
    let mut socket = Socket::open(NlFamily::Rdma, &[], ANSWER).ok()?;
    count(&mut socket, port.rdma_index?)
}

fn count(socket: &mut Socket, index: u32) -> Option<u64> {
    let summary = socket.ask(&mut nldev::summary_of(index)).ok()?;
    nldev::queue_pair_count(summary)
}

/// Where the queue pairs of the connection manager lead.
fn connections(socket: &mut Socket, index: u32) -> Result<HashMap<u32, SocketAddr>, Errno> {
    let mut remotes = HashMap::new();
    socket.dump(&mut nldev::connections_of(index), |message| {
        let led = nldev::connections(message.payload).map(|Connection { number, remote }| (number, remote));
        remotes.extend(led);
    })?;
    Ok(remotes)
}

/// Processes, each looked up once.
pub(super) struct Owners<'a> {
    processes: &'a Processes,
    own_namespace: Option<u64>,
    known: HashMap<u32, Holder>,
}

impl<'a> Owners<'a> {
    pub(super) fn new(processes: &'a Processes) -> Self {
        Self {
            processes,
            own_namespace: processes.network_namespace("self"),
            known: HashMap::new(),
        }
    }

    fn of(&mut self, entry: Entry) -> Owner {
        match (entry.kernel, entry.process) {
            (Some(name), _) => Owner::Kernel(name),
            (None, Some(process)) => Owner::Process(self.holder(process)),
            (None, None) => Owner::Unseen,
        }
    }

    /// The process of a thread: the kernel names the one that made what is held (`rdma_restrack_attach_task`).
    pub(super) fn holder(&mut self, thread: u32) -> Holder {
        let known = self.known.entry(thread);
        known
            .or_insert_with(|| {
                let process = self.processes.of_thread(thread).unwrap_or(thread);
                look_up(self.processes, self.own_namespace, process)
            })
            .clone()
    }
}

fn look_up(processes: &Processes, own_namespace: Option<u64>, process: u32) -> Holder {
    let namespace = processes.network_namespace(&process.to_string());
    Holder {
        process,
        name: processes.name(process),
        place: processes
            .cgroup(process)
            .map_or_else(Place::default, |text| place::of_cgroup(&text)),
        network_namespace: namespace.filter(|_| namespace != own_namespace),
    }
}
