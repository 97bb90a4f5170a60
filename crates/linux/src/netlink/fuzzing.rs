//! Messages and attributes for the fuzz targets.

use super::{Attributes, Message, Messages, put};
use crate::route::{Event, Link};
use crate::settings::genl;
use rustix::io::Errno;

/// Kind, sequence number, payload, and the errno of an `NLMSG_ERROR` (0 for an acknowledgement) of each message.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8], Option<i32>)> {
    Messages(datagram).map(|message| {
        let error = message
            .error()
            .map(|outcome| outcome.err().map_or(0, Errno::raw_os_error));
        (message.kind, message.sequence, message.payload, error)
    })
}

/// Kind, value, and the value's text of each attribute.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8], Option<&str>)> {
    Attributes::new(bytes).map(|attribute| (attribute.kind, attribute.value, attribute.text()))
}

/// Appends an attribute as a request does.
pub fn put_attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    put(bytes, kind, value);
}

/// Index, name and master of a link that is there.
#[must_use]
pub fn link(kind: u16, payload: &[u8]) -> Option<(u32, &str, u32)> {
    let message = Message {
        kind,
        sequence: 0,
        payload,
    };
    match Event::parse(message)? {
        Event::There(Link {
            ifindex,
            name,
            master,
        }) => Some((ifindex, name, master)),
        Event::Gone { .. } => None,
    }
}

/// The interface that a notice of ethtool netlink is about.
#[must_use]
pub fn ethtool_interface(payload: &[u8]) -> Option<u32> {
    genl::interface(payload)
}

/// The interface that a notice of DCB is about.
#[must_use]
pub fn dcb_interface(payload: &[u8]) -> Option<&str> {
    crate::dcb::interface(payload)
}
