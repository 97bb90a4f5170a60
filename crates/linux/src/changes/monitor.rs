//! RDMA devices that come and go, and netdevs that are bound to them, by RDMA netlink: since Linux 6.12.

use crate::netlink::Socket;
use crate::rdma::nldev;
use crate::why_from_errno;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

/// Where the kernel tells of them, if it does. It only makes the next look at the devices come sooner, so that a failure
/// ends no more than that.
pub(super) struct Monitor(Option<Socket>);

impl Monitor {
    /// Listens from now on, where the kernel has something to say.
    pub(super) fn open() -> Self {
        match nldev::monitor() {
            Ok(Some(socket)) => return Self(Some(socket)),
            Ok(None) => {
                tracing::debug!("this kernel has no notices of RDMA netlink (6.12 and later have)");
            }
            Err(errno) => {
                let why = why_from_errno(errno, "subscribing to notices of RDMA netlink");
                tracing::debug!(%why, "RDMA devices are followed by what the kernel tells udev alone");
            }
        }
        Self(None)
    }

    /// Takes at most `batch` notices, without waiting. True if one was of a device, or may have been.
    pub(super) fn look(&mut self, batch: usize) -> bool {
        let mut changed = false;
        for _ in 0..batch {
            let Some(socket) = &mut self.0 else { break };
            match socket.next() {
                Ok(mut messages) => changed |= messages.any(|message| nldev::is_notice(message.kind)),
                Err(Errno::AGAIN) => break,
                Err(Errno::NOBUFS | Errno::MSGSIZE) => changed = true,
                Err(errno) => {
                    let why = why_from_errno(errno, "receiving notices of RDMA netlink");
                    tracing::debug!(%why, "RDMA devices are followed by what the kernel tells udev alone");
                    self.0 = None;
                }
            }
        }
        changed
    }

    /// What to wait for, if there is something.
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }
}
