//! Whether queue pairs have counters of their own, which makes reading a port's counters much dearer.
//!
//! The counters of a port are the sum over its own and those of every queue pair, and the kernel asks the firmware for each
//! queue pair's, once for each counter (`rdma_counter_get_hwstat_value` in drivers/infiniband/core/counters.c): a thousand
//! queue pairs and 40 counters are 40,000 firmware commands a read. The cadence of the source then stretches its interval;
//! here is said why.

use super::nldev::{self, QueuePairMode};
use crate::clock;
use crate::netlink::{ANSWER, Request, Socket};
use model::Port;
use neli::consts::socket::NlFamily;
use std::time::{Duration, Instant};

/// How often the mode is asked for: somebody has to type a command for it to change.
const INTERVAL: Duration = Duration::from_secs(30);

/// Follows the mode of a port's queue pair counters, and logs when it changes.
pub(super) struct QueuePairs {
    asked: Option<Asked>,
}

struct Asked {
    socket: Socket,
    request: Request,
    port: String,
    mode: QueuePairMode,
    due: Instant,
}

impl QueuePairs {
    /// Follows a port's; does nothing on a kernel that does not tell.
    pub(super) fn new(port: &Port, device: u32) -> Self {
        let socket = Socket::open(NlFamily::Rdma, &[], ANSWER).ok();
        Self {
            asked: socket.map(|socket| Asked {
                socket,
                request: nldev::queue_pair_mode_of(device, port.id.number),
                port: format!("{}/{}", port.device, port.id.number),
                mode: QueuePairMode::Off,
                due: clock::now(),
            }),
        }
    }

    /// Looks again if it is time to. Never waits for firmware.
    pub(super) fn look(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.look();
        }
    }
}

impl Asked {
    fn look(&mut self) {
        let now = clock::now();
        if now < self.due {
            return;
        }
        self.due = now + INTERVAL;
        let answer = self.socket.ask(&mut self.request).ok();
        let Some(mode) = answer.and_then(nldev::queue_pair_mode) else {
            return;
        };
        if mode == self.mode {
            return;
        }
        self.mode = mode;
        let port = &self.port;
        match mode {
            QueuePairMode::Off => tracing::info!(port, "queue pairs have no counters of their own any more"),
            QueuePairMode::Auto => tracing::warn!(
                port,
                "every queue pair has counters of its own, which makes hw_counters dear to read, so they are read less \
                 often; switch that off with `rdma statistic qp set link {port} auto off`"
            ),
            QueuePairMode::Manual => tracing::warn!(
                port,
                "some queue pairs have counters of their own, each of which makes hw_counters dearer to read; \
                 `rdma statistic qp show link {port}` tells which"
            ),
        }
    }
}
