//! A module's memory through ethtool netlink.

use super::{Memory, Span};
use crate::netlink::{ANSWER, Request, Socket};
use crate::settings::genl::{self, Ethtool};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;

/// `ETHTOOL_MSG_MODULE_EEPROM_GET` and `ETHTOOL_A_MODULE_EEPROM_*`.
const EEPROM_GET: u8 = 31;
const OFFSET: u16 = 2;
const LENGTH: u16 = 3;
const PAGE: u16 = 4;
const BANK: u16 = 5;
const I2C_ADDRESS: u16 = 6;
const DATA: u16 = 7;

/// Where QSFP and CMIS modules are on the two-wire bus.
const ADDRESS: u8 = 0x50;

/// The module of the netdev of this index.
pub(super) struct Kernel {
    socket: Socket,
    ethtool: Ethtool,
    ifindex: u32,
    /// A request for each stretch that was ever asked for, of which there are few.
    requests: Vec<(Span, Request)>,
}

impl Kernel {
    /// Opens the socket; asks nothing of the module yet.
    ///
    /// # Errors
    /// `ENOENT` on a kernel without ethtool netlink.
    pub(super) fn open(ifindex: u32) -> Result<Self, Errno> {
        let mut socket = Socket::open(NlFamily::Generic, &[], ANSWER)?;
        let ethtool = Ethtool::resolve(&mut socket)?;
        Ok(Self {
            socket,
            ethtool,
            ifindex,
            requests: Vec::new(),
        })
    }

    fn request(&self, span: Span) -> Request {
        self.ethtool
            .message(EEPROM_GET, self.ifindex, 0)
            .with(OFFSET, &u32::from(span.offset).to_ne_bytes())
            .with(LENGTH, &u32::from(span.length).to_ne_bytes())
            .with(PAGE, &[span.page])
            .with(BANK, &[0])
            .with(I2C_ADDRESS, &[ADDRESS])
    }
}

impl Memory for Kernel {
    fn read(&mut self, span: Span, into: &mut [u8]) -> Result<(), Errno> {
        let known = self.requests.iter().position(|(known, _)| *known == span);
        let at = known.unwrap_or_else(|| {
            self.requests.push((span, self.request(span)));
            self.requests.len() - 1
        });
        let answer = genl::attributes(self.socket.ask(&mut self.requests[at].1)?);
        let data = answer.find_kind(DATA).ok_or(Errno::NODATA)?;
        // A driver may read less than it was asked for.
        if data.value.len() != into.len() {
            return Err(Errno::NODATA);
        }
        into.copy_from_slice(data.value);
        Ok(())
    }
}
