//! Counters that queue pairs have of their own: who of a node sees retransmissions, and not only that somebody does.
//!
//! The kernel has them only where an administrator wants them (`rdma statistic qp set link DEV/PORT auto type,pid on`), for queue pairs that
//! are made from then on (`rdma_counter_bind_qp_auto` in drivers/infiniband/core/counters.c), and with drivers that can: mlx5
//! (5.3), ionic. Nothing is switched here. On mlx5 they are the Q counters (`mlx5_ib_counter_update_stats`), without those of
//! congestion control: the firmware has them for a port alone, and the driver gives 0 for them. One look costs a firmware command for each group.

use super::ledger::Ledger;
use super::nldev::{self, QueuePairMode};
use crate::clock;
use crate::errno::why_from_errno;
use crate::netlink::{ANSWER, DUMP, Request, Socket};
use crate::processes::Processes;
use model::{Port, PortId, Read, Schema, Source, SourceKind, Why};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Messages without a counter after which the dump is given up: the first may be too small for one, but a group of so many queue pairs
/// (about 2,500) that no message holds them is tried by the kernel for ever.
const MOST_EMPTY: u32 = 3;

/// The counters of the queue pairs of a port.
pub(super) struct QpCounters {
    /// `None` after a failure: a dump may be under way on it.
    socket: Option<Socket>,
    request: Request,
    processes: Option<Processes>,
    ledger: Ledger,
    began: Instant,
    port: PortId,
    device: String,
    driver: String,
    schema: Arc<Schema>,
}

impl QpCounters {
    /// Looks once. The names of processes are left out where there is no procfs.
    ///
    /// # Errors
    /// The kernel has no such message (before 5.3).
    pub(super) fn open(port: &Port, index: u32, procfs: &Path) -> Result<Self, Why> {
        let mut this = Self {
            socket: None,
            request: nldev::bound_of(index, port.id.number),
            processes: Processes::open(procfs).ok(),
            ledger: Ledger::new(&port.driver),
            began: clock::now(),
            port: port.id.clone(),
            device: port.device.clone(),
            driver: port.driver.clone(),
            schema: Arc::new(Schema::new(
                port.id.clone(),
                &port.driver,
                SourceKind::QpCounters,
                [""; 0],
            )),
        };
        this.look().map_err(|errno| this.why(errno))?;
        this.lay_out();
        this.tell_mode(index);
        Ok(this)
    }

    /// Says what is missing where nothing is bound: the operator has asked for something that another has to switch on.
    fn tell_mode(&mut self, index: u32) {
        let port = format!("{}/{}", self.device, self.port.number);
        let mut request = nldev::queue_pair_mode_of(index, self.port.number);
        let Some(socket) = &mut self.socket else { return };
        let answer = socket.ask(&mut request).ok();
        if answer.and_then(nldev::queue_pair_mode) == Some(QueuePairMode::Off) {
            tracing::info!(
                "no queue pair of {port} has counters of its own; \
                 `rdma statistic qp set link {port} auto type,pid on` gives some to those that are made from then on"
            );
        }
    }

    fn look(&mut self) -> Result<(), Errno> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => Socket::open(NlFamily::Rdma, &[], DUMP.max(ANSWER))?,
        };
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (ledger, processes, port) = (&mut self.ledger, &self.processes, self.port.number);
        let mut empty = 0;
        ledger.begin();
        socket.dump_while(&mut self.request, |message| {
            empty += 1;
            for bound in nldev::bound(message.payload) {
                empty = 0;
                // Before 5.4 those of all ports are told.
                if bound.port == port {
                    ledger.take(&bound, now, |thread| owner(processes.as_ref(), thread));
                }
            }
            if empty < MOST_EMPTY {
                Ok(())
            } else {
                Err(Errno::MSGSIZE)
            }
        })?;
        ledger.end();
        self.socket = Some(socket);
        Ok(())
    }

    fn lay_out(&mut self) {
        self.ledger.take_changed();
        let port = self.port.clone();
        let columns = self.ledger.columns();
        self.schema = Arc::new(Schema::new(port, &self.driver, SourceKind::QpCounters, columns));
    }

    fn why(&self, errno: Errno) -> Why {
        let what = format!(
            "RDMA netlink STAT_GET of the queue pairs of {}/{}",
            self.device, self.port.number
        );
        why_from_errno(errno, &what)
    }
}

/// The process of a thread, and its name.
fn owner(processes: Option<&Processes>, thread: u32) -> (u32, Option<String>) {
    let process = processes.and_then(|processes| processes.of_thread(thread));
    let process = process.unwrap_or(thread);
    (process, processes.and_then(|processes| processes.name(process)))
}

impl Source for QpCounters {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        if let Err(errno) = self.look() {
            return Read::Missing(self.why(errno));
        }
        if self.ledger.take_changed() {
            self.lay_out();
            return Read::SchemaChanged;
        }
        self.ledger.fill(row);
        Read::Row
    }
}
