//! Pseudonyms for what tells a machine or its network apart: MAC and IP addresses, GUIDs, serial numbers, host names.
//!
//! One key gives one pseudonym for one value, so that what belonged together still does: the MAC address in a GID is
//! the pseudonym of that MAC address, and two addresses of one subnet stay in one. What a fault may hang on is kept: the
//! maker's half of a MAC address or GUID, the kind of a GID, zeros and all ones. Without the key a pseudonym cannot be
//! traced back.

use crate::{Answer, Files, Node, Reading, Recording, pci_space};
use model::Why;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher;

/// Files whose whole content tells the machine apart. The node description is the host's name with the device's, by
/// rdma-ndd.
const NAMING: [&str; 5] = ["node_desc", "phys_switch_id", "ifalias", "serial_number", "uuid"];

/// The secret behind pseudonyms.
#[derive(Clone)]
pub struct Key([u8; 16]);

impl Key {
    /// From what only this machine knows, such as its machine-id.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        let mut hasher = SipHasher24::new_with_key(b"rocewatchcapture");
        hasher.write(secret);
        Self(hasher.finish128().as_bytes())
    }

    fn hash(&self, what: &str, value: &[u8]) -> [u8; 16] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(what.as_bytes());
        hasher.write(&[0]);
        hasher.write(value);
        hasher.finish128().as_bytes()
    }

    /// The recording with pseudonyms.
    #[must_use]
    pub fn hide(&self, recording: &Recording) -> Recording {
        let mut sys = Files::new();
        for (path, node) in recording.sys.ordered() {
            sys.put(&self.in_text(path), self.in_node(path, node));
        }
        let mut readings = BTreeMap::new();
        for (place, of_place) in &recording.readings {
            let place = place.map(|place| self.in_text(place));
            readings.insert(
                place,
                of_place.iter().map(|reading| self.in_reading(reading)).collect(),
            );
        }
        let mut about = recording.about.clone();
        about.pseudonyms = Some(true);
        Recording { about, sys, readings }
    }

    fn in_node(&self, path: &str, node: &Node) -> Node {
        let name = path.rsplit('/').next().unwrap_or(path);
        match node {
            Node::File(content) if NAMING.contains(&name) => Node::File(self.name(content)),
            Node::File(content) if pci_space::function_of(path).is_some() => {
                Node::File(pci_space::hide(content, |serial| self.serial(serial)))
            }
            Node::File(content) => match std::str::from_utf8(content) {
                Ok(text) => Node::File(self.in_text(text).into_bytes()),
                Err(_) => Node::File(self.name(content)),
            },
            Node::Link(target) => Node::Link(self.in_text(target)),
            Node::Folder | Node::Fault(_) => node.clone(),
        }
    }

    fn in_reading(&self, reading: &Reading) -> Reading {
        let hidden = |why: &Why| Why::new(why.reason, self.in_text(&why.detail));
        let answer = match &reading.answer {
            Answer::Error(why) => Answer::Error(hidden(why)),
            Answer::NotApplicable(why) => Answer::NotApplicable(hidden(why)),
            row @ Answer::Row(_) => row.clone(),
        };
        Reading {
            after: reading.after,
            answer,
        }
    }

    /// A name that says nothing, in place of one that is not empty.
    fn name(&self, content: &[u8]) -> Vec<u8> {
        let text = content.trim_ascii();
        if text.is_empty() {
            return content.to_vec();
        }
        let [a, b, c, d, ..] = self.hash("name", text);
        format!("name-{a:02x}{b:02x}{c:02x}{d:02x}\n").into_bytes()
    }

    /// The pseudonym of a device's serial number, an EUI-64 that is mostly made of a MAC address.
    fn serial(&self, number: [u8; 8]) -> [u8; 8] {
        <[u8; 8]>::try_from(self.guid(&number)).unwrap_or_default()
    }

    /// `text` with every address in it replaced.
    fn in_text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
            let (before, tail) = rest.split_at(start);
            out.push_str(before);
            let end = tail
                .find(|c: char| !c.is_ascii_hexdigit() && c != ':')
                .unwrap_or(tail.len());
            let (word, after) = tail.split_at(end);
            // In the middle of a word, such as the "ace" of "trace", there is no address; but udev names netdevs
            // enxMAC and RDMA devices rocexGUID.
            let standing = out.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
            let named = out.ends_with("enx") || out.ends_with("rocex");
            match self.address(word).filter(|_| standing || named) {
                Some(address) => out.push_str(&address),
                None => out.push_str(word),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    /// The pseudonym of a word that is an address.
    fn address(&self, word: &str) -> Option<String> {
        let parts: Vec<&str> = word.split(':').collect();
        let of_width = |width| parts.iter().all(|part| part.len() == width);
        let (bytes, width) = match parts.len() {
            8 if of_width(4) => (self.gid(parse(&parts)?), 2),
            4 if of_width(4) => (self.guid(&parse(&parts)?), 2),
            6 if of_width(2) => (self.mac(&parse(&parts)?), 1),
            1 if word.len() == 12 => (self.mac(&pairs(word)?), 6),
            1 if word.len() == 16 => (self.guid(&pairs(word)?), 8),
            _ => return None,
        };
        Some(bytes.chunks(width).map(hex).collect::<Vec<_>>().join(":"))
    }

    fn mac(&self, bytes: &[u8]) -> Vec<u8> {
        if is_nobody(bytes) {
            return bytes.to_vec();
        }
        let hash = self.hash("mac", bytes);
        [&bytes[..3], &hash[..3]].concat()
    }

    /// A GUID; one that is made of a MAC address (EUI-64) from that address's pseudonym.
    fn guid(&self, bytes: &[u8]) -> Vec<u8> {
        if is_nobody(bytes) {
            return bytes.to_vec();
        }
        if bytes[3..5] == [0xff, 0xfe] {
            // The bit of the first byte that EUI-64 turns over.
            let mac = [&[bytes[0] ^ 2], &bytes[1..3], &bytes[5..]].concat();
            let mac = self.mac(&mac);
            return [&[mac[0] ^ 2], &mac[1..3], &[0xff, 0xfe], &mac[3..]].concat();
        }
        let hash = self.hash("guid", bytes);
        [&bytes[..3], &hash[..5]].concat()
    }

    fn gid(&self, bytes: Vec<u8>) -> Vec<u8> {
        const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
        const IPV4: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        if is_nobody(&bytes) {
            return bytes;
        }
        if bytes.starts_with(&IPV4) {
            return [&IPV4[..], &self.subnets(&bytes[12..])].concat();
        }
        let network = if bytes.starts_with(&LINK_LOCAL) {
            LINK_LOCAL.to_vec()
        } else {
            // The first byte tells what kind of address it is: global, unique local, multicast.
            [&bytes[..1], &self.subnets(&bytes[..8])[1..]].concat()
        };
        [network, self.guid(&bytes[8..])].concat()
    }

    /// Each byte by itself and those before it: what began alike begins alike.
    fn subnets(&self, bytes: &[u8]) -> Vec<u8> {
        (0..bytes.len())
            .map(|at| bytes[at] ^ self.hash("ip", &bytes[..at])[0])
            .collect()
    }
}

/// All zeros or all ones: nobody's address.
fn is_nobody(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0) || bytes.iter().all(|byte| *byte == 0xff)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn parse(parts: &[&str]) -> Option<Vec<u8>> {
    pairs(&parts.concat())
}

fn pairs(digits: &str) -> Option<Vec<u8>> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new(b"a machine")
    }

    #[test]
    fn an_address_is_hidden_wherever_it_stands() {
        let key = key();
        let mac = key.in_text("b8:ce:f6:01:02:03");
        assert_eq!(mac.len(), 17);
        assert!(mac.starts_with("b8:ce:f6:") && !mac.ends_with("01:02:03"));
        assert_eq!(key.in_text("x b8:ce:f6:01:02:03, y"), format!("x {mac}, y"));
        let digits = mac.replace(':', "");
        assert_eq!(
            key.in_text("class/net/enxb8cef6010203/mtu"),
            format!("class/net/enx{digits}/mtu")
        );
        assert_ne!(Key::new(b"another").in_text("b8:ce:f6:01:02:03"), mac);
    }

    #[test]
    fn what_is_no_address_stays() {
        for text in [
            "0000:1a:00.0",
            "28.39.1002",
            "devices/pci0000:00/0000:00:01.0/0000:1a:00.0",
            "9000",
            "18446744073709551615",
            "1000000000000",
            "4: ACTIVE",
            "0000:0000:0000:0000",
            "ff:ff:ff:ff:ff:ff",
            "0000:0000:0000:0000:0000:0000:0000:0000",
            "0x15b3",
        ] {
            assert_eq!(key().in_text(text), text);
        }
    }

    #[test]
    fn what_belongs_together_still_does() {
        let key = key();
        let mac = key.in_text("b8:ce:f6:01:02:03").replace(':', "");
        let gid = key.in_text("fe80:0000:0000:0000:bace:f6ff:fe01:0203");
        let digits = gid.replace(':', "");
        assert_eq!(&digits[..16], "fe80000000000000");
        assert_eq!(&digits[16..], format!("ba{}fffe{}", &mac[2..6], &mac[6..]));

        let ip = |last: &str| key.in_text(&format!("0000:0000:0000:0000:0000:ffff:0a01:{last}"));
        let (a, b) = (ip("0207"), ip("0208"));
        assert!(a.starts_with("0000:0000:0000:0000:0000:ffff:"));
        assert_eq!(a[..37], b[..37], "one /24 stays one");
        assert_ne!(a, b);
    }

    #[test]
    fn a_host_s_name_is_hidden() {
        let mut sys = Files::new();
        sys.put("d/node_desc", Node::File(b"gpu-17 mlx5_0\n".to_vec()));
        sys.put("d/fw_ver", Node::File(b"28.39.1002\n".to_vec()));
        let recording = Recording {
            sys,
            ..Recording::default()
        };
        let hidden = key().hide(&recording);
        let name = String::from_utf8_lossy(hidden.sys.read("d/node_desc").unwrap()).into_owned();
        assert!(name.starts_with("name-") && !name.contains("gpu"), "{name}");
        assert_eq!(hidden.sys.read("d/fw_ver"), Ok(&b"28.39.1002\n"[..]));
        assert_eq!(hidden.about.pseudonyms, Some(true));
    }
}
