//! `SIOCETHTOOL`: structures of `include/uapi/linux/ethtool.h`.

use super::buffer::Buffer;
use libc::{c_char, c_ulong};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::c_void;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

const SIOCETHTOOL: c_ulong = 0x8946;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
const GTUNABLE: u32 = 0x48;
/// `ETH_SS_STATS`.
const STATISTICS: u32 = 1;
/// `ETHTOOL_PFC_PREVENTION_TOUT` and its type `ETHTOOL_TUNABLE_U16`.
const PFC_PREVENTION_TIMEOUT: u32 = 3;
const TUNABLE_U16: u32 = 2;

/// Bytes of one name, `ETH_GSTRING_LEN`.
pub(super) const NAME: usize = 32;
/// `struct ethtool_gstrings`: command, set, length.
const STRINGS_HEADER: usize = 12;
/// `struct ethtool_stats`: command and count, in one cell.
const STATS_HEADER: usize = 1;

/// `struct ethtool_sset_info` with room for one set.
#[repr(C)]
struct SetInfo {
    command: u32,
    reserved: u32,
    mask: u64,
    count: u32,
}

/// `struct ethtool_tunable` with room for 16 bits.
#[repr(C)]
struct Tunable {
    command: u32,
    id: u32,
    kind: u32,
    length: u32,
    value: u16,
}

/// An interface, by name, and the datagram socket through which the kernel is asked about it.
pub(crate) struct Interface {
    socket: OwnedFd,
    name: String,
}

/// Two halves of a cell, as two `u32` lie in memory.
fn cell(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

fn second_half(cell: u64) -> u32 {
    let [.., a, b, c, d] = cell.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

impl Interface {
    /// The interface of this name. Nothing is asked yet.
    ///
    /// # Errors
    /// `ENODEV` for a name that no interface can have (the kernel's limit is 15 bytes).
    pub(crate) fn new(name: &str) -> Result<Self, Errno> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
            return Err(Errno::NODEV);
        }
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        Ok(Self {
            socket,
            name: name.to_owned(),
        })
    }

    /// The index of the interface that has the name now. Takes no rtnl.
    pub(crate) fn ifindex(&self) -> Result<u32, Errno> {
        name_to_index(&self.socket, &self.name)
    }

    /// Milliseconds after which the NIC stops pausing by itself.
    pub(crate) fn pfc_prevention_timeout(&self) -> Result<u16, Errno> {
        let mut tunable = Tunable {
            command: GTUNABLE,
            id: PFC_PREVENTION_TIMEOUT,
            kind: TUNABLE_U16,
            length: 2,
            value: 0,
        };
        // SAFETY: for this command the kernel reads the 16 bytes of the header and writes `length` bytes behind them.
        unsafe { self.ethtool((&raw mut tunable).cast()) }?;
        Ok(tunable.value)
    }

    /// How many statistics there are; 0 for an interface without.
    pub(super) fn count(&self) -> Result<usize, Errno> {
        let mut info = SetInfo {
            command: GSSET_INFO,
            reserved: 0,
            mask: 1 << STATISTICS,
            count: 0,
        };
        // SAFETY: the kernel reads the 16 bytes before `count` and writes them and one u32 for each bit of `mask`.
        unsafe { self.ethtool((&raw mut info).cast()) }?;
        Ok(if info.mask == 0 { 0 } else { info.count as usize })
    }

    /// The names of `count` statistics, [`NAME`] bytes each; as many as the kernel says that it wrote.
    pub(super) fn names<'a>(&self, count: usize, buffer: &'a mut Buffer) -> Result<&'a [u8], Errno> {
        let length = u32::try_from(count).map_err(|_| Errno::OVERFLOW)?;
        let [first, second, ..] = buffer.cells_mut() else {
            return Err(Errno::NOMEM);
        };
        *first = cell(GSTRINGS, STATISTICS);
        *second = cell(length, 0);
        // SAFETY: the kernel writes behind the header into the buffer, whose last page stops one that writes too much.
        unsafe { self.ethtool(buffer.address()) }?;
        let written = u32_of(&buffer.bytes()[8..]) as usize;
        buffer.bytes()[STRINGS_HEADER..]
            .get(..written.saturating_mul(NAME))
            .ok_or(Errno::FAULT)
    }

    /// The values of `count` statistics; as many as the kernel says that it wrote.
    pub(super) fn values<'a>(&self, count: usize, buffer: &'a mut Buffer) -> Result<&'a [u64], Errno> {
        let length = u32::try_from(count).map_err(|_| Errno::OVERFLOW)?;
        let [first, ..] = buffer.cells_mut() else {
            return Err(Errno::NOMEM);
        };
        *first = cell(GSTATS, length);
        // SAFETY: as in `names`.
        unsafe { self.ethtool(buffer.address()) }?;
        let written = second_half(buffer.cells()[0]) as usize;
        buffer.cells()[STATS_HEADER..].get(..written).ok_or(Errno::FAULT)
    }

    /// # Safety
    /// `data` points to a structure of ethtool.h as its command demands, with room for all that the kernel writes.
    unsafe fn ethtool(&self, data: *mut c_void) -> Result<(), Errno> {
        // SAFETY: `ifreq` is plain data of C, for which all zeroes are valid.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.as_bytes()) {
            *to = from.cast_signed() as c_char;
        }
        request.ifr_ifru.ifru_data = data.cast();
        // SAFETY: SIOCETHTOOL reads the name and the pointer of `request`; what the pointer is to is the caller's promise.
        let outcome = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        if outcome < 0 {
            Err(crate::netlink::errno(&io::Error::last_os_error()))
        } else {
            Ok(())
        }
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |four| u32::from_ne_bytes(*four))
}

/// Cells that the names of `count` statistics need.
pub(super) fn cells_for_names(count: usize) -> usize {
    (STRINGS_HEADER + count * NAME).div_ceil(size_of::<u64>())
}

/// Cells that the values of `count` statistics need.
pub(super) fn cells_for_values(count: usize) -> usize {
    STATS_HEADER + count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_interface_can_have_are_refused() {
        for name in ["", "sixteen-letters!", "a\0b"] {
            assert_eq!(Interface::new(name).err(), Some(Errno::NODEV), "{name:?}");
        }
        assert!(Interface::new("fifteen-letters").is_ok());
    }

    #[test]
    fn the_loopback_answers() {
        let lo = Interface::new("lo").unwrap();
        assert_eq!(lo.ifindex(), Ok(1));
        assert_eq!(lo.count(), Ok(0));
        assert_eq!(lo.pfc_prevention_timeout(), Err(Errno::OPNOTSUPP));
        assert_eq!(
            lo.values(1, &mut Buffer::new(2).unwrap()).err(),
            Some(Errno::OPNOTSUPP)
        );
        assert_eq!(Interface::new("no-such-if").unwrap().ifindex(), Err(Errno::NODEV));
        assert_eq!(Interface::new("no-such-if").unwrap().count(), Err(Errno::NODEV));
    }

    #[test]
    fn halves_lie_as_in_memory() {
        assert_eq!(
            cell(0x0403_0201, 0x0807_0605).to_ne_bytes()[..4],
            0x0403_0201u32.to_ne_bytes()
        );
        assert_eq!(second_half(cell(1, 77)), 77);
    }
}
