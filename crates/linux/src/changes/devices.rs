//! RDMA devices that come, go or are renamed, as the kernel tells udev (`kobject_uevent_env`). rtnetlink speaks of netdevs
//! alone, and RDMA netlink tells of its devices only since Linux 6.12.

use crate::netlink::Socket;
use neli::consts::socket::NlFamily;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// The kernel's own notices; udev passes its on in group 2.
const GROUP: u32 = 1;
/// `UEVENT_BUFFER_SIZE` of include/linux/kobject.h, and the line with action and path before it.
const ROOM: usize = 4096;
/// The class of RDMA devices (`ib_class` in drivers/infiniband/core/device.c).
const CLASS: &[u8] = b"SUBSYSTEM=infiniband";

/// The notices of this network namespace.
pub(super) struct Devices {
    socket: Socket,
    buffer: Box<[u8]>,
}

impl Devices {
    /// Listens from now on.
    ///
    /// # Errors
    /// What the kernel answered.
    pub(super) fn open() -> Result<Self, Errno> {
        Ok(Self {
            socket: Socket::open(NlFamily::KobjectUevent, &[GROUP], 0)?,
            buffer: vec![0; ROOM].into(),
        })
    }

    /// Takes at most `batch` notices, without waiting. True if one was of an RDMA device, or may have been.
    ///
    /// # Errors
    /// Nothing more can be received.
    pub(super) fn look(&mut self, batch: usize) -> Result<bool, Errno> {
        let mut changed = false;
        for _ in 0..batch {
            match recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => changed |= is_of_rdma(&self.buffer[..length]),
                Err(Errno::AGAIN) => break,
                // The queue ran over.
                Err(Errno::NOBUFS) => changed = true,
                Err(errno) => return Err(errno),
            }
        }
        Ok(changed)
    }
}

impl AsFd for Devices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A notice is a list of strings, each ended by a NUL.
fn is_of_rdma(notice: &[u8]) -> bool {
    notice.split(|byte| *byte == 0).any(|field| field == CLASS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_class_of_rdma_devices_counts() {
        let notice = |class: &str| {
            format!("move@/devices/x/infiniband/mlx5_0\0ACTION=move\0DEVPATH=/devices/x\0{class}\0SEQNUM=7\0")
        };
        assert!(is_of_rdma(notice("SUBSYSTEM=infiniband").as_bytes()));
        assert!(!is_of_rdma(notice("SUBSYSTEM=infiniband_verbs").as_bytes()));
        assert!(!is_of_rdma(notice("SUBSYSTEM=net").as_bytes()));
        assert!(!is_of_rdma(b""));
    }

    #[test]
    fn without_notices_nothing_changed() {
        crate::netns::within(|| {
            let mut devices = Devices::open().unwrap();
            assert_eq!(devices.look(8), Ok(false));
        });
    }
}
