//! The way from a PCI function to the root, and what its configuration space says.

use crate::Tree;
use crate::pci::{above, address, link};
use model::{Acs, Express, Iommu, PciHop};

/// Bytes of a conventional configuration space, and of an extended one.
const CONVENTIONAL: usize = 0x100;
const EXTENDED: usize = 0x1000;
/// Status register, its bit that says that there is a list of capabilities, and where the list begins.
const STATUS: usize = 0x06;
const HAS_LIST: u16 = 0x10;
const LIST: usize = 0x34;
/// `PCI_CAP_ID_EXP`, and within it the device's capabilities and control.
const EXPRESS: u8 = 0x10;
const CAPABILITIES: usize = 4;
const CONTROL: usize = 8;
/// `PCI_EXT_CAP_ID_ACS`, and within it its control with two of its bits.
const ACS: u32 = 0x0d;
const ACS_CONTROL: usize = 6;
const REQUEST_REDIRECT: u16 = 0x04;
const COMPLETION_REDIRECT: u16 = 0x08;
/// More capabilities than a space of their least size of 4 bytes has.
const MOST: usize = EXTENDED / 4;

/// The function at `path`, and the bridges above it up to the root port.
pub(super) fn hops(tree: &Tree, path: &str) -> Vec<PciHop> {
    let mut hops = Vec::new();
    let mut at = path;
    while let Some(name) = address(at) {
        let space = tree.bytes(&format!("{at}/config")).unwrap_or_default();
        hops.push(PciHop {
            address: name.to_owned(),
            current: link(tree, at, "current"),
            max: link(tree, at, "max"),
            express: express(&space),
            acs: acs(&space),
        });
        at = above(at).unwrap_or_default();
    }
    hops
}

/// How the IOMMU treats the function at `path`; `None` without one.
pub(super) fn iommu(tree: &Tree, path: &str) -> Option<Iommu> {
    let kind = tree.read_string(&format!("{path}/iommu_group/type")).ok()?;
    match kind.as_str() {
        "identity" => Some(Iommu::PassThrough),
        "DMA" | "DMA-FQ" => Some(Iommu::Translated),
        _ => None,
    }
}

fn u16_at(space: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*space.get(at..)?.first_chunk()?))
}

fn u32_at(space: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*space.get(at..)?.first_chunk()?))
}

/// Where the PCI Express capability is. Without a right the kernel shows 64 bytes, in which it mostly is not.
fn find_express(space: &[u8]) -> Option<usize> {
    if u16_at(space, STATUS)? & HAS_LIST == 0 {
        return None;
    }
    let mut at = usize::from(*space.get(LIST)? & 0xfc);
    for _ in 0..MOST {
        if !(0x40..CONVENTIONAL).contains(&at) {
            return None;
        }
        let [id, next] = *space.get(at..)?.first_chunk()?;
        if id == EXPRESS {
            return Some(at);
        }
        at = usize::from(next & 0xfc);
    }
    None
}

fn express(space: &[u8]) -> Option<Express> {
    let at = find_express(space)?;
    let capabilities = u32_at(space, at + CAPABILITIES)?;
    let control = u16_at(space, at + CONTROL)?;
    // Three bits each, 128 bytes to 4096; what is above is reserved.
    let size = |bits: u32| (bits & 7 <= 5).then(|| 128 << (bits & 7));
    Some(Express {
        payload_supported: size(capabilities)?,
        payload: size(u32::from(control) >> 5)?,
        read_request: size(u32::from(control) >> 12)?,
    })
}

fn acs(space: &[u8]) -> Option<Acs> {
    if space.len() < EXTENDED {
        return None;
    }
    let mut at = CONVENTIONAL;
    for _ in 0..MOST {
        let header = u32_at(space, at)?;
        // A device without any extended capability answers zeros, one that is off the bus all ones.
        if header == 0 || header == u32::MAX {
            break;
        }
        if header & 0xffff == ACS {
            let control = u16_at(space, at + ACS_CONTROL)?;
            return Some(Acs {
                request_redirect: control & REQUEST_REDIRECT != 0,
                completion_redirect: control & COMPLETION_REDIRECT != 0,
            });
        }
        at = usize::try_from(header >> 20).ok()? & 0xffc;
        if at < CONVENTIONAL {
            break;
        }
    }
    Some(Acs::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A function with a power management capability before the PCI Express one, and ACS behind AER.
    fn space(control: u16, acs: u16) -> Vec<u8> {
        let mut space = vec![0; EXTENDED];
        space[STATUS] = 0x10;
        space[LIST] = 0x40;
        space[0x40..0x42].copy_from_slice(&[0x01, 0x60]);
        space[0x60..0x62].copy_from_slice(&[EXPRESS, 0]);
        space[0x64..0x68].copy_from_slice(&2u32.to_le_bytes());
        space[0x68..0x6a].copy_from_slice(&control.to_le_bytes());
        space[0x100..0x104].copy_from_slice(&(0x0001u32 | 0x1 << 16 | 0x150 << 20).to_le_bytes());
        space[0x150..0x154].copy_from_slice(&(ACS | 0x1 << 16).to_le_bytes());
        space[0x156..0x158].copy_from_slice(&acs.to_le_bytes());
        space
    }

    #[test]
    fn device_control_is_read() {
        // Payload 256, read request 4096.
        let space = space(5 << 12 | 1 << 5, 0);
        let right = Express {
            payload_supported: 512,
            payload: 256,
            read_request: 4096,
        };
        assert_eq!(express(&space), Some(right));
        assert_eq!(express(&space[..0x100]), Some(right));
        assert_eq!(express(&space[..0x40]), None, "without a right");
        assert_eq!(express(&[0xff; 0x100]), None, "off the bus");
    }

    #[test]
    fn acs_is_read_where_it_is_and_known_not_to_be_there() {
        let of = |control| acs(&space(0, control));
        let redirects = Acs {
            request_redirect: true,
            completion_redirect: true,
        };
        assert_eq!(of(0x1d), Some(redirects));
        assert_eq!(of(0x01), Some(Acs::default()));
        assert_eq!(acs(&vec![0; EXTENDED]), Some(Acs::default()));
        assert_eq!(acs(&space(0, 0x1d)[..0x100]), None);
    }

    proptest! {
        #[test]
        fn any_space_is_survived(space in proptest::collection::vec(any::<u8>(), 0..EXTENDED + 1)) {
            let _ = (express(&space), acs(&space));
        }
    }
}
