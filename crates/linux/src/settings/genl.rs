//! The ethtool family of generic netlink: `include/uapi/linux/ethtool_netlink.h`.

use crate::netlink::{Attributes, Request, Socket};
use rustix::io::Errno;

/// `struct genlmsghdr`: command, version, two bytes reserved.
const HEADER: usize = 4;
/// The controller, which knows the other families: `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_*`.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const FAMILY_GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;
/// `ETHTOOL_A_*_HEADER`, the same in every message, and `ETHTOOL_A_HEADER_*`.
const DEVICE: u16 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_FLAGS: u16 = 3;
/// `ETHTOOL_MSG_PAUSE_NTF`.
const PAUSE_NOTICE: u8 = 23;
/// `ETHTOOL_FLAG_COMPACT_BITSETS` and `ETHTOOL_FLAG_STATS`.
const COMPACT: u32 = 1;
const WITH_STATS: u32 = 4;

/// The family, as numbered by the running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ethtool {
    id: u16,
    /// The multicast group of its notices.
    pub(crate) monitor: Option<u32>,
}

/// What can be asked about an interface: `ETHTOOL_MSG_*_GET`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Speed, lanes.
    LinkModes = 4,
    /// Why and how often the link went down.
    LinkState = 6,
    /// Global pause and its frames.
    Pause = 21,
    /// FEC and its code words.
    Fec = 29,
}

impl Ethtool {
    /// Asks the controller for the family.
    ///
    /// # Errors
    /// `ENOENT` on a kernel without ethtool netlink (before 5.6).
    pub(crate) fn resolve(socket: &mut Socket) -> Result<Self, Errno> {
        let mut request = Request::new(CONTROLLER, &[GET_FAMILY, 1, 0, 0]).with(FAMILY_NAME, b"ethtool\0");
        let family = Attributes::behind(socket.ask(&mut request)?, HEADER);
        let id = family
            .find_kind(FAMILY_ID)
            .and_then(|id| id.u16())
            .ok_or(Errno::NOENT)?;
        let groups = family
            .find_kind(FAMILY_GROUPS)
            .map_or(Attributes::new(&[]), |g| Attributes::new(g.value));
        let monitor = groups
            .map(|group| Attributes::new(group.value))
            .find_map(|group| {
                let name = group.find_kind(GROUP_NAME)?;
                (name.text() == Some("monitor"))
                    .then(|| group.find_kind(GROUP_ID)?.u32())
                    .flatten()
            });
        Ok(Self { id, monitor })
    }

    /// The request that puts a question about the interface of this index, which a rename does not change.
    pub(crate) fn request(self, question: Question, ifindex: u32) -> Request {
        let flags = match question {
            Question::LinkModes | Question::LinkState => COMPACT,
            Question::Pause | Question::Fec => COMPACT | WITH_STATS,
        };
        self.message(question as u8, ifindex, flags)
    }

    /// A message about the interface of this index: one of `ETHTOOL_MSG_*`.
    pub(crate) fn message(self, command: u8, ifindex: u32, flags: u32) -> Request {
        Request::new(self.id, &[command, 1, 0, 0]).with_nest(
            DEVICE,
            &[
                (DEVICE_INDEX, &ifindex.to_ne_bytes()),
                (DEVICE_FLAGS, &flags.to_ne_bytes()),
            ],
        )
    }
}

/// True for the notice that somebody set global pause.
pub(crate) fn is_pause_notice(payload: &[u8]) -> bool {
    payload.first() == Some(&PAUSE_NOTICE)
}

/// The attributes of an answer or notice.
pub(crate) fn attributes(payload: &[u8]) -> Attributes<'_> {
    Attributes::behind(payload, HEADER)
}

/// The index of the interface that an answer or notice is about.
pub(crate) fn interface(payload: &[u8]) -> Option<u32> {
    let device = attributes(payload).find_kind(DEVICE)?;
    Attributes::new(device.value).find_kind(DEVICE_INDEX)?.u32()
}
