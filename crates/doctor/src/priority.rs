//! From the mark of a packet to its priority.

use crate::dcb::Dcb;
use crate::facts::PortFacts;
use crate::policy::Policy;
use model::{Priorities, Trust};

/// DSCP that the vendors' guides give `RoCE` (traffic class 104 or 106, with ECN).
const CUSTOMARY: u8 = 26;

/// By which mark the port chooses a packet's priority; `None` if that is not known.
///
/// mlx5 has no word for it in DCB, but trusts DSCP if and only if its APP table has entries for DSCP
/// (`mlx5e_dcbnl_ieee_setapp` of `drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c`).
#[must_use]
pub fn trust(port: &PortFacts) -> Option<Trust> {
    let by_table = || {
        let dcb = port.dcb.as_ref()?;
        if dcb.maps_dscp() {
            return Some(Trust::Dscp);
        }
        (port.port.driver == "mlx5_core").then_some(Trust::Pcp)
    };
    port.setup.trust.or_else(by_table)
}

/// The priority of packets with this DSCP, sent without a VLAN tag; `None` if that is not known.
#[must_use]
pub fn priority_of(dscp: u8, trust: Option<Trust>, dcb: &Dcb) -> Option<u8> {
    match trust? {
        Trust::Pcp => Some(0),
        Trust::Dscp => *dcb.dscp.get(usize::from(dscp))?,
    }
}

/// The DSCP that leads to the lossless priority: the policy's, the host's own, the customary one (26), or the lowest that does.
/// `None` if none is known to.
#[must_use]
pub fn roce_dscp(port: &PortFacts, policy: &Policy) -> Option<u8> {
    if policy.dscp.is_some() {
        return policy.dscp;
    }
    let dcb = port.dcb.as_ref()?;
    let lossless = policy.lossless_of(dcb.pfc).filter(|mask| *mask != 0)?;
    let leads =
        |dscp: &u8| priority_of(*dscp, trust(port), dcb).is_some_and(|priority| has(lossless, priority));
    let own = port.setup.default_tos.map(|tos| tos >> 2);
    own.into_iter().chain([CUSTOMARY]).chain(0..64).find(leads)
}

/// True if the priority is among these.
pub(crate) fn has(mask: Priorities, priority: u8) -> bool {
    mask.checked_shr(priority.into())
        .is_some_and(|rest| rest & 1 == 1)
}

/// The priorities of a mask.
pub(crate) fn list(mask: Priorities) -> impl Iterator<Item = u8> {
    (0..8).filter(move |priority| has(mask, *priority))
}

/// The priorities of a mask, for people.
pub(crate) fn words(mask: Priorities) -> String {
    let all: Vec<_> = list(mask).map(|priority| priority.to_string()).collect();
    match all.as_slice() {
        [] => "no priority".to_owned(),
        [one] => format!("priority {one}"),
        several => format!("priorities {}", several.join(", ")),
    }
}
