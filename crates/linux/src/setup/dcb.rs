//! Buffers, trust and the switch's PFC by DCB netlink. Under rtnl.

use crate::dcb::{HEADER, IEEE, question};
use crate::netlink::{ANSWER, Attributes, Socket};
use model::{Buffers, PortSetup, Trust};
use neli::consts::socket::NlFamily;
use std::array::from_fn;

/// `DCB_ATTR_IEEE_PEER_PFC`, `DCB_ATTR_DCB_BUFFER`, `DCB_ATTR_DCB_APP_TRUST_TABLE` and in it `DCB_ATTR_DCB_APP_TRUST`:
/// `include/uapi/linux/dcbnl.h`.
const PEER_PFC: u16 = 5;
const BUFFER: u16 = 10;
const TRUST_TABLE: u16 = 11;
const TRUSTED: u16 = 1;
/// `DCB_APP_SEL_PCP`, `IEEE_8021QAZ_APP_SEL_DSCP`.
const BY_PCP: u8 = 255;
const BY_DSCP: u8 = 5;
/// `struct ieee_pfc`, and `struct dcbnl_buffer`: eight bytes, eight u32, one u32.
const PFC_LENGTH: usize = 136;
const BUFFER_LENGTH: usize = 44;

/// Adds what the driver of an interface tells.
pub(super) fn read(netdev: &str, setup: &mut PortSetup) {
    let answer = Socket::open(NlFamily::Route, &[], ANSWER).and_then(|mut socket| {
        let answer = socket.ask(&mut question(netdev))?;
        Ok(learn(answer, setup))
    });
    if let Err(errno) = answer {
        tracing::debug!(netdev, %errno, "DCB netlink");
    }
}

fn learn(payload: &[u8], setup: &mut PortSetup) {
    let ieee = Attributes::behind(payload, HEADER).find_kind(IEEE);
    let ieee = Attributes::new(ieee.map_or(&[], |nest| nest.value));
    let find = |kind| ieee.find_kind(kind).map(|attribute| attribute.value);
    setup.peer_pfc = find(PEER_PFC)
        .filter(|pfc| pfc.len() == PFC_LENGTH)
        .map(|pfc| pfc[1]);
    setup.buffers = find(BUFFER).and_then(buffers);
    let trusted = find(TRUST_TABLE).and_then(trust);
    setup.trust = setup.trust.or(trusted);
}

fn buffers(bytes: &[u8]) -> Option<Buffers> {
    let bytes: &[u8; BUFFER_LENGTH] = bytes.try_into().ok()?;
    let size = |buffer: usize| u32::from_ne_bytes(from_fn(|i| bytes[8 + 4 * buffer + i]));
    Some(Buffers {
        of_priority: from_fn(|priority| bytes[priority]),
        bytes: from_fn(size),
    })
}

/// The first selector of the table has the say.
fn trust(table: &[u8]) -> Option<Trust> {
    match Attributes::new(table).find_kind(TRUSTED)?.u8()? {
        BY_DSCP => Some(Trust::Dscp),
        BY_PCP => Some(Trust::Pcp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Request;
    use proptest::prelude::*;

    fn learned(ieee: &[(u16, &[u8])]) -> PortSetup {
        let mut setup = PortSetup::default();
        learn(
            Request::new(78, &[0, 21, 0, 0]).with_nest(IEEE, ieee).payload(),
            &mut setup,
        );
        setup
    }

    #[test]
    fn buffers_and_the_peer_are_read() {
        let mut pfc = vec![0; PFC_LENGTH];
        pfc[1] = 0b1000;
        let mut buffer = vec![0, 0, 0, 1, 0, 0, 0, 0];
        buffer.extend((0..9u32).flat_map(|i| (i * 1000).to_ne_bytes()));
        let setup = learned(&[(PEER_PFC, &pfc), (BUFFER, &buffer)]);
        assert_eq!(setup.peer_pfc, Some(0b1000));
        let right = Buffers {
            of_priority: [0, 0, 0, 1, 0, 0, 0, 0],
            bytes: [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000],
        };
        assert_eq!(setup.buffers, Some(right));
        assert_eq!(
            learned(&[(PEER_PFC, &pfc[1..]), (BUFFER, &[0; 43])]),
            PortSetup::default()
        );
    }

    #[test]
    fn the_first_trusted_selector_has_the_say() {
        let table = |selectors: &[u8]| {
            let request = selectors.iter().fold(Request::new(0, &[]), |request, selector| {
                request.with(TRUSTED, &[*selector])
            });
            learned(&[(TRUST_TABLE, request.payload())]).trust
        };
        assert_eq!(table(&[BY_DSCP, BY_PCP]), Some(Trust::Dscp));
        assert_eq!(table(&[BY_PCP]), Some(Trust::Pcp));
        assert_eq!(table(&[]), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(bytes: Vec<u8>) {
            learn(&bytes, &mut PortSetup::default());
        }
    }
}
