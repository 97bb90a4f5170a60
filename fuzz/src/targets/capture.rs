//! Captures: packed, or as parts.

use capture::{Key, Recording};
use std::collections::BTreeMap;

/// The first byte says which: a packed capture, or parts, a NUL between them, named for the byte before each.
pub fn check(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    let recording = match kind {
        b'p' => capture::unpack(rest).ok(),
        _ => parts(rest).and_then(|members| Recording::from_members(&members).ok()),
    };
    let Some(recording) = recording else { return };
    let again = Recording::from_members(&recording.members()).expect("what was printed can be read");
    assert_eq!(again.members(), recording.members());
    let hidden = Key::new(b"a machine").hide(&recording);
    Recording::from_members(&hidden.members()).expect("pseudonyms spoil nothing");
}

fn parts(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut members = BTreeMap::from([
        ("capture.toml".to_owned(), "format = 1\n".to_owned()),
        ("sys.txt".to_owned(), String::new()),
    ]);
    for part in std::str::from_utf8(bytes).ok()?.split('\0') {
        let mut characters = part.chars();
        let name = match characters.next()? {
            'c' => "capture.toml",
            's' => "sys.txt",
            'e' => "netdev/eth0/ethtool.1",
            'f' => "netdev/eth0/ethtool.2",
            'p' => "pci/0000:1a:00.0",
            'h' => "rdma/mlx5_0/1/hw_counters.1",
            _ => "netdev/eth0/dcb.1",
        };
        members.insert(name.to_owned(), characters.as_str().to_owned());
    }
    Some(members)
}
