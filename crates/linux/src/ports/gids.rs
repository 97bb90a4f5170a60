//! A port's GID table.

use crate::tree::Tree;
use model::{Gid, GidType};

/// Empty entries in a row after which the rest of the table is taken for empty: the kernel fills the first free entry, so
/// holes come from removed addresses alone.
const EMPTY: u32 = 8;
/// Longer than any driver's table.
const ENTRIES: u32 = 1024;

/// The entries that are set, of the port at `port` (`class/infiniband/DEVICE/ports/N`).
pub(super) fn read(tree: &Tree, port: &str) -> Vec<Gid> {
    let mut gids = Vec::new();
    let mut empty = 0;
    for index in 0..ENTRIES {
        let Ok(gid) = tree.read_string(&format!("{port}/gids/{index}")) else {
            break;
        };
        if is_zero(&gid) {
            empty += 1;
            if empty == EMPTY {
                break;
            }
            continue;
        }
        empty = 0;
        gids.push(entry(tree, port, index, gid));
    }
    gids
}

fn entry(tree: &Tree, port: &str, index: u32, gid: String) -> Gid {
    let attribute = |name| tree.read_string(&format!("{port}/gid_attrs/{name}/{index}")).ok();
    let kind = match attribute("types").as_deref() {
        Some("RoCE v2") => GidType::V2,
        Some("IB/RoCE v1") => GidType::V1,
        _ => GidType::Unknown,
    };
    let netdev = attribute("ndevs").filter(|name| is_name(name));
    Gid {
        index,
        gid,
        kind,
        netdev,
    }
}

/// A netdev's name is one component of a path.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != "." && name != ".."
}

fn is_zero(gid: &str) -> bool {
    gid.bytes().all(|byte| matches!(byte, b'0' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zeros_are_an_empty_entry() {
        assert!(is_zero("0000:0000:0000:0000:0000:0000:0000:0000"));
        assert!(!is_zero("0000:0000:0000:0000:0000:ffff:0a00:0001"));
        assert!(!is_zero("0000:0000:0000:0000:0000:0000:0000:0001"));
    }

    #[test]
    fn a_name_stays_in_its_directory() {
        assert!(is_name("enp26s0np0"));
        for bad in ["", ".", "..", "../lo", "a/b"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
