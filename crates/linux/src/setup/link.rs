//! What a link could do, and its FEC, by ethtool netlink. Under rtnl.

use crate::netlink::{ANSWER, Attributes, Socket};
use crate::settings::genl::{Ethtool, Question, attributes};
use model::{Fec, LinkSetup};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;

/// `ETHTOOL_A_LINKMODES_OURS`, and within it `ETHTOOL_A_BITSET_MASK`, which has the supported modes.
const OURS: u16 = 3;
const MASK: u16 = 5;
/// `ETHTOOL_A_FEC_ACTIVE`.
const ACTIVE: u16 = 4;
/// Full-duplex modes by speed in gigabits per second, fastest first: `enum ethtool_link_mode_bit_indices` of
/// `include/uapi/linux/ethtool.h`.
const MODES: [(u64, &[u32]); 9] = [
    (1600, &[121, 122, 123, 124]),
    (800, &[93, 94, 95, 96, 97, 98, 115, 116, 117, 118, 119, 120]),
    (
        400,
        &[
            69, 70, 71, 72, 73, 85, 86, 87, 88, 89, 109, 110, 111, 112, 113, 114,
        ],
    ),
    (
        200,
        &[
            62, 63, 64, 65, 66, 80, 81, 82, 83, 84, 103, 104, 105, 106, 107, 108,
        ],
    ),
    (100, &[36, 37, 38, 39, 57, 58, 59, 60, 61, 75, 76, 77, 78, 79]),
    (50, &[34, 35, 40, 52, 53, 54, 55, 56]),
    (40, &[23, 24, 25, 26]),
    (25, &[31, 32, 33]),
    (10, &[12, 18, 19, 42, 43, 44, 45, 46]),
];
/// `ETHTOOL_LINK_MODE_FEC_*_BIT`.
const FECS: [(u32, Fec); 4] = [(49, Fec::Off), (50, Fec::Rs), (51, Fec::BaseR), (74, Fec::LlRs)];

/// What the driver of the interface tells; `None` without ethtool netlink.
pub(super) fn read(ifindex: u32) -> Option<LinkSetup> {
    let asked = || -> Result<LinkSetup, Errno> {
        let mut socket = Socket::open(NlFamily::Generic, &[], ANSWER)?;
        let ethtool = Ethtool::resolve(&mut socket)?;
        let mut ask = |question| {
            let answer = socket.ask(&mut ethtool.request(question, ifindex)).ok()?;
            Some(answer.to_vec())
        };
        let modes = ask(Question::LinkModes);
        let fec = ask(Question::Fec);
        Ok(LinkSetup {
            best_speed: modes.as_deref().and_then(best_speed),
            fec: fec.as_deref().and_then(active_fec),
        })
    };
    asked()
        .inspect_err(|errno| tracing::debug!(ifindex, %errno, "ethtool netlink"))
        .ok()
}

/// The fastest of the supported modes, in bits per second.
fn best_speed(payload: &[u8]) -> Option<u64> {
    let modes = Attributes::new(attributes(payload).find_kind(OURS)?.value);
    let mask = modes.find_kind(MASK)?.value;
    let has = |bit: &u32| {
        let word = mask.chunks_exact(4).nth((bit / 32) as usize);
        let word = word
            .and_then(|word| word.try_into().ok())
            .map_or(0, u32::from_ne_bytes);
        word >> (bit % 32) & 1 == 1
    };
    let best = MODES.iter().find(|(_, bits)| bits.iter().any(has));
    best.map(|(gigabits, _)| gigabits * 1_000_000_000)
}

fn active_fec(payload: &[u8]) -> Option<Fec> {
    let bit = attributes(payload).find_kind(ACTIVE)?.u32()?;
    FECS.iter().find(|(known, _)| *known == bit).map(|(_, fec)| *fec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Request;
    use proptest::prelude::*;

    #[test]
    fn the_fastest_supported_mode_counts() {
        let supported = |bits: &[u32]| {
            let mut words = [0u32; 4];
            for bit in bits {
                words[(bit / 32) as usize] |= 1 << (bit % 32);
            }
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            best_speed(
                Request::new(0, &[4, 1, 0, 0])
                    .with_nest(OURS, &[(MASK, &bytes)])
                    .payload(),
            )
        };
        assert_eq!(supported(&[36, 66, 88]), Some(400_000_000_000));
        assert_eq!(supported(&[124, 88]), Some(1_600_000_000_000));
        assert_eq!(supported(&[5]), None, "1000baseT is no speed of RoCE");
        assert_eq!(best_speed(&[]), None);
    }

    #[test]
    fn fec_is_told_by_the_bit_of_a_mode() {
        let fec = |bit: u32| {
            let request = Request::new(0, &[29, 1, 0, 0]).with(ACTIVE, &bit.to_ne_bytes());
            active_fec(request.payload())
        };
        assert_eq!(fec(50), Some(Fec::Rs));
        assert_eq!(fec(49), Some(Fec::Off));
        assert_eq!(fec(12), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(bytes: Vec<u8>) {
            let _ = (best_speed(&bytes), active_fec(&bytes));
        }
    }
}
