//! Optional counters, such as mlx5's `cc_rx_ce_pkts`, switched on for as long as they are read.
//!
//! Switching on writes to the device: mlx5 installs RDMA steering rules that count (drivers/infiniband/hw/mlx5/counters.c,
//! `mlx5_ib_modify_stat`), which the firmware may refuse. The kernel takes the complete set and switches off what is not
//! in it (`nldev_stat_set_counter_dynamic_doit`), so what others had switched on is always asked for and kept.

use super::nldev::{self, Optional};
use crate::errno::why_from_errno;
use crate::netlink::{ANSWER, Socket};
use model::Port;
use neli::consts::socket::NlFamily;
use rustix::io::Errno;

/// The optional counters of a port that were off. Dropped, they are off again.
pub(super) struct SwitchedOn {
    socket: Socket,
    device: u32,
    port: u32,
    name: String,
    ours: Vec<u32>,
}

impl SwitchedOn {
    /// Switches every optional counter of a port on; `None` if there is none that was off, or if the kernel refuses, which
    /// is logged: the other counters are read all the same.
    pub(super) fn all(port: &Port, device: u32) -> Option<Self> {
        match Self::open(port, device) {
            Ok(switched_on) => switched_on,
            Err(errno) => {
                let what = format!("switching on optional counters of {}", port.device);
                let why = why_from_errno(errno, &what);
                let remedy = if errno == Errno::PERM {
                    "; give the daemon CAP_NET_ADMIN, or set sampling.optional_counters = false"
                } else {
                    ""
                };
                tracing::warn!(device = port.device, "{why}{remedy}");
                None
            }
        }
    }

    fn open(port: &Port, device: u32) -> Result<Option<Self>, Errno> {
        let mut this = Self {
            socket: Socket::open(NlFamily::Rdma, &[], ANSWER)?,
            device,
            port: port.id.number,
            name: port.device.clone(),
            ours: Vec::new(),
        };
        let all = this.status()?;
        let off = all.iter().filter(|counter| !counter.on);
        let off: Vec<_> = off.map(|counter| counter.index).collect();
        if off.is_empty() {
            return Ok(None);
        }
        let wanted: Vec<_> = all.iter().map(|counter| counter.index).collect();
        // Whatever part of it the kernel did before it refused is undone when this is dropped.
        this.ours = off;
        this.set(&wanted)?;
        tracing::info!(
            device = this.name,
            counters = this.ours.len(),
            "optional counters are switched on"
        );
        Ok(Some(this))
    }

    fn status(&mut self) -> Result<Vec<Optional>, Errno> {
        let mut request = nldev::status_of(self.device, self.port);
        Ok(nldev::optional(self.socket.ask(&mut request)?))
    }

    fn set(&mut self, indexes: &[u32]) -> Result<(), Errno> {
        let mut request = nldev::switch_on(self.device, self.port, indexes);
        self.socket.ask(&mut request).map(drop)
    }

    /// Leaves on what others have switched on, before or since.
    fn switch_off(&mut self) -> Result<(), Errno> {
        let now = self.status()?;
        let left = left_on(&now, &self.ours);
        if left.len() == now.iter().filter(|counter| counter.on).count() {
            return Ok(());
        }
        self.set(&left)
    }
}

/// The counters that are on and not ours.
fn left_on(now: &[Optional], ours: &[u32]) -> Vec<u32> {
    let others = now
        .iter()
        .filter(|counter| counter.on && !ours.contains(&counter.index));
    others.map(|counter| counter.index).collect()
}

impl Drop for SwitchedOn {
    fn drop(&mut self) {
        if self.ours.is_empty() {
            return;
        }
        match self.switch_off() {
            Ok(()) => tracing::debug!(device = self.name, "optional counters are off again"),
            // The device is gone, and its counters with it.
            Err(Errno::NODEV | Errno::INVAL) => {}
            Err(errno) => {
                let why = why_from_errno(errno, "switching off optional counters");
                tracing::warn!(device = self.name, "{why}; `rdma statistic unset` does it");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_switched_on_stays_on() {
        let now = [(31, true), (32, true), (33, false), (34, true)];
        let now = now.map(|(index, on)| Optional { index, on });
        assert_eq!(left_on(&now, &[31, 33]), [32, 34]);
        assert_eq!(left_on(&now, &[31, 32, 34]), [0u32; 0]);
    }
}
