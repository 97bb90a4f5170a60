//! Links as rtnetlink tells of them: `RTM_NEWLINK`, `RTM_DELLINK`, `RTM_GETLINK`.

use crate::netlink::{Attributes, Message, Request};

/// `RTNLGRP_LINK`.
pub(crate) const GROUP_LINK: u32 = 1;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
/// `struct ifinfomsg`: family, pad, type, index, flags, change mask.
const HEADER: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;

/// What a message says of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// It is there, new or changed.
    There(Link<'a>),
    /// It is gone from this network namespace.
    Gone {
        /// Its index.
        ifindex: u32,
    },
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    /// Its index.
    pub ifindex: u32,
    /// Its name.
    pub name: &'a str,
    /// The bond or bridge that it is a member of, 0 for none.
    pub master: u32,
}

impl<'a> Event<'a> {
    /// Reads a message; `None` for one of another kind, or of a protocol family: a bridge sends `RTM_DELLINK` with its
    /// own family for a member that leaves it.
    pub(crate) fn parse(message: Message<'a>) -> Option<Self> {
        let family = *message.payload.first()?;
        let ifindex = u32::from_ne_bytes(*message.payload.get(4..)?.first_chunk()?);
        let attributes = Attributes::behind(message.payload, HEADER);
        match (message.kind, family) {
            (RTM_DELLINK, 0) => Some(Self::Gone { ifindex }),
            (RTM_NEWLINK, 0) => Some(Self::There(Link {
                ifindex,
                name: attributes.find_kind(IFLA_IFNAME)?.text()?,
                master: attributes
                    .find_kind(IFLA_MASTER)
                    .and_then(|master| master.u32())
                    .unwrap_or(0),
            })),
            _ => None,
        }
    }
}

/// A request for every link there is.
pub(crate) fn all_links() -> Request {
    Request::dump(RTM_GETLINK, &[0; HEADER])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(request: &Request, kind: u16) -> Message<'_> {
        Message {
            kind,
            sequence: 0,
            payload: request.payload(),
        }
    }

    fn header(family: u8, ifindex: u32) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[0] = family;
        header[4..8].copy_from_slice(&ifindex.to_ne_bytes());
        header
    }

    #[test]
    fn links_come_and_go() {
        let request = Request::new(0, &header(0, 7))
            .with(IFLA_IFNAME, b"rail0\0")
            .with(IFLA_MASTER, &3u32.to_ne_bytes());
        let there = Event::There(Link {
            ifindex: 7,
            name: "rail0",
            master: 3,
        });
        assert_eq!(Event::parse(message(&request, RTM_NEWLINK)), Some(there));
        assert_eq!(
            Event::parse(message(&request, RTM_DELLINK)),
            Some(Event::Gone { ifindex: 7 })
        );
        assert_eq!(Event::parse(message(&request, 20)), None);
    }

    #[test]
    fn leaving_a_bridge_is_not_going() {
        let request = Request::new(0, &header(7, 7)).with(IFLA_IFNAME, b"rail0\0");
        assert_eq!(Event::parse(message(&request, RTM_DELLINK)), None);
    }

    proptest! {
        #[test]
        fn any_message_is_survived(kind in 15u16..20, payload: Vec<u8>) {
            let _ = Event::parse(Message { kind, sequence: 0, payload: &payload });
        }
    }
}
