//! Trust, DSCP, classes.

use super::Look;
use crate::dcb::{Algorithm, Dcb};
use crate::facts::PortFacts;
use crate::finding::{Evidence, Finding};
use crate::gid::roce_v2_ipv4;
use crate::priority::{has, list, priority_of, roce_dscp, trust, words};
use crate::table::lossless as table;
use model::{Priorities, Trust};

/// A share of the line, in percent, at which a class is starved.
const STARVED: u8 = 5;
/// DSCP that the vendors' guides give `RoCE` data.
const ROCE: u8 = 26;

pub(super) fn of_port(look: Look<'_>, found: &mut Vec<Finding>) {
    let Some(dcb) = &look.port.dcb else { return };
    let Some(mask) = look.policy.lossless_of(dcb.pfc).filter(|mask| *mask != 0) else {
        return;
    };
    // Where PFC is on for everything, what its classes are is not the first thing to mend.
    if look.policy.planned().is_none() && dcb.pfc != Some(mask) {
        return;
    }
    marks(look, dcb, mask, found);
    default_tos(look, dcb, mask, found);
    cnps(look, dcb, mask, found);
    classes(look, dcb, mask, found);
}

/// True if `RoCE` may go out with a VLAN tag, which then carries its priority.
fn has_vlan(port: &PortFacts) -> bool {
    roce_v2_ipv4(&port.port)
        .iter()
        .any(|gid| gid.netdev.is_some() && gid.netdev != port.port.netdev)
}

fn marks(look: Look<'_>, dcb: &Dcb, mask: Priorities, found: &mut Vec<Finding>) {
    let wanted = list(mask).next().unwrap_or(look.policy.priority());
    let fill = |finding: Finding| {
        let dscp = look.policy.dscp.unwrap_or(ROCE);
        finding.with("{dscp}", &dscp).with("{priority}", &wanted)
    };
    let lossless = Evidence::new("lossless", words(mask));
    match trust(look.port) {
        Some(Trust::Pcp) if !has(mask, 0) && !has_vlan(look.port) => {
            let why = if look.port.setup.trust.is_some() {
                "PCP"
            } else {
                "PCP: the APP table has no entry for DSCP"
            };
            let said = vec![Evidence::new("trust", why), lossless];
            found.push(fill(Finding::of(&table::TRUST_PCP, &look.port.port, said)));
        }
        Some(Trust::Dscp) => {
            let leads = |dscp: u8| dcb.dscp[usize::from(dscp & 63)].map(|priority| has(mask, priority));
            let said = match look.policy.dscp {
                Some(dscp) if leads(dscp) == Some(false) => {
                    let priority = dcb.dscp[usize::from(dscp & 63)].unwrap_or(0);
                    Evidence::new(format!("DSCP {dscp} (APP table)"), format!("priority {priority}"))
                }
                None if dcb.maps_dscp() && (0..64).all(|dscp| leads(dscp) != Some(true)) => {
                    Evidence::new("APP table", "no DSCP leads to a lossless priority")
                }
                _ => return,
            };
            let said = vec![said, lossless];
            found.push(fill(Finding::of(
                &table::DSCP_NOT_LOSSLESS,
                &look.port.port,
                said,
            )));
        }
        _ => {}
    }
}

fn default_tos(look: Look<'_>, dcb: &Dcb, mask: Priorities, found: &mut Vec<Finding>) {
    let Some(tos) = look.port.setup.default_tos.filter(|tos| *tos != 0) else {
        return;
    };
    let Some(priority) = priority_of(tos >> 2, trust(look.port), dcb) else {
        return;
    };
    if !has(mask, priority) {
        let said = vec![
            Evidence::new("default traffic class", format!("{tos}: DSCP {}", tos >> 2)),
            Evidence::new("its priority", priority.to_string()),
            Evidence::new("lossless", words(mask)),
        ];
        let dscp = roce_dscp(look.port, look.policy).unwrap_or(ROCE);
        let finding = Finding::of(&table::DEFAULT_TOS, &look.port.port, said);
        found.push(finding.with("{tos}", &(u16::from(dscp) * 4 + 2)));
    }
}

fn cnps(look: Look<'_>, dcb: &Dcb, mask: Priorities, found: &mut Vec<Finding>) {
    if !look.policy.wants_ecn() {
        return;
    }
    let Some((chosen_by, priority)) = cnp_priority(look, dcb) else {
        return;
    };
    let class = dcb.class(priority);
    let shares = |data: u8| class.is_some() && dcb.class(data) == class;
    if let Some(data) = list(mask).find(|&data| data == priority || shares(data)) {
        let mut said = vec![
            Evidence::new(format!("CNPs, {chosen_by}"), format!("priority {priority}")),
            Evidence::new("RoCE data", format!("priority {data}")),
        ];
        said.extend(class.map(|class| Evidence::new("their traffic class", class.to_string())));
        found.push(Finding::of(&table::CNP_CLASS, &look.port.port, said));
    }
}

/// The priority of the CNPs that are sent, and by which mark: a VLAN's tag where the port looks at tags, or else the DSCP.
fn cnp_priority(look: Look<'_>, dcb: &Dcb) -> Option<(String, u8)> {
    let ecn = look.port.setup.ecn;
    let trust = trust(look.port);
    if trust == Some(Trust::Pcp) && has_vlan(look.port) {
        return Some(("802.1p".to_owned(), ecn.cnp_priority?));
    }
    let dscp = ecn.cnp_dscp.or(look.policy.cnp_dscp)?;
    Some((format!("DSCP {dscp}"), priority_of(dscp, trust, dcb)?))
}

fn classes(look: Look<'_>, dcb: &Dcb, mask: Priorities, found: &mut Vec<Finding>) {
    for priority in list(mask) {
        let Some(class) = dcb.class(priority) else {
            continue;
        };
        let mapped = Evidence::new(format!("traffic class of priority {priority}"), class.to_string());
        if let (Some(Algorithm::Ets), Some(share @ 0..=STARVED)) =
            (dcb.algorithm(priority), dcb.share(priority))
        {
            let said = vec![
                mapped.clone(),
                Evidence::new(format!("share of class {class}"), format!("{share} % (ETS)")),
            ];
            let finding = Finding::of(&table::CLASS_STARVED, &look.port.port, said);
            found.push(finding.with("{class}", &class));
        }
        let beside: Vec<_> = list(!mask)
            .filter(|other| dcb.class(*other) == Some(class))
            .collect();
        let has_several = dcb.class_of.iter().flatten().any(|other| *other != class);
        if has_several && !beside.is_empty() {
            let names: Vec<_> = beside.iter().map(u8::to_string).collect();
            let said = vec![mapped, Evidence::new("lossy priorities in it", names.join(", "))];
            let finding = Finding::of(&table::CLASS_SHARED, &look.port.port, said);
            found.push(finding.with("{priority}", &priority));
        }
    }
}
