//! Datagrams of netlink: messages, attributes, links.

use linux::fuzzing::netlink::{attributes, dcb_interface, ethtool_interface, link, messages, put_attribute};

const MESSAGE_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
const NLMSG_ERROR: u16 = 2;
/// `struct ifinfomsg`, and what stands behind it.
const LINK_HEADER: usize = 16;
const IFLA_IFNAME: u16 = 3;

/// Nothing is read that is not there, what was read can be written and read again, and a link's name is its attribute.
pub fn check(datagram: &[u8]) {
    let mut total = 0;
    for (kind, _, payload, error) in messages(datagram) {
        total += MESSAGE_HEADER + payload.len();
        assert_eq!(error.is_some(), kind == NLMSG_ERROR);
        assert!(error.is_none_or(|errno| (0..=4095).contains(&errno)));
        notices(kind, payload);
        round_trip(payload);
    }
    assert!(total <= datagram.len());
    round_trip(datagram);
}

fn round_trip(bytes: &[u8]) {
    let read: Vec<_> = attributes(bytes).collect();
    let mut written = Vec::new();
    for (kind, value, text) in &read {
        put_attribute(&mut written, *kind, value);
        if let Some(text) = text {
            assert!(value.starts_with(text.as_bytes()) && !text.contains('\0'));
            assert!(value.get(text.len()).is_none_or(|&end| end == 0));
        }
    }
    let total: usize = read
        .iter()
        .map(|(_, value, _)| ATTRIBUTE_HEADER + value.len())
        .sum();
    assert!(total <= bytes.len());
    assert!(attributes(&written).eq(read));
}

fn notices(kind: u16, payload: &[u8]) {
    if let Some((ifindex, name, _)) = link(kind, payload) {
        assert_eq!(payload[4..8], ifindex.to_ne_bytes());
        let named = attributes(&payload[LINK_HEADER..]).find(|(kind, ..)| *kind == IFLA_IFNAME);
        assert_eq!(named.and_then(|(_, _, text)| text), Some(name));
    }
    assert!(dcb_interface(payload).is_none_or(|name| name.len() < payload.len()));
    assert!(ethtool_interface(payload).is_none_or(|ifindex| has(payload, ifindex.to_ne_bytes())));
}

fn has(payload: &[u8], wanted: [u8; 4]) -> bool {
    payload.windows(4).any(|four| four == wanted)
}
