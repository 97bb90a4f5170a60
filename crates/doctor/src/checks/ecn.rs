//! Notification point, reaction point, CNPs.

use super::Look;
use crate::check::Check;
use crate::finding::{Evidence, Finding};
use crate::priority::{has, list};
use crate::table::lossless as table;
use model::Priorities;

pub(super) fn of_port(look: Look<'_>, found: &mut Vec<Finding>) {
    if !look.policy.wants_ecn() {
        return;
    }
    let ecn = look.port.setup.ecn;
    off(
        look,
        &table::ECN_NP_OFF,
        "ecn/roce_np/enable",
        ecn.notification_point,
        found,
    );
    off(
        look,
        &table::ECN_RP_OFF,
        "ecn/roce_rp/enable",
        ecn.reaction_point,
        found,
    );
    if let (Some(own), Some(planned)) = (ecn.cnp_dscp, look.policy.cnp_dscp)
        && own != planned
    {
        let said = vec![
            Evidence::new("ecn/roce_np/cnp_dscp", own.to_string()),
            Evidence::new("policy", planned.to_string()),
        ];
        found.push(Finding::of(&table::CNP_DSCP, &look.port.port, said).with("{dscp}", &planned));
    }
}

fn off(
    look: Look<'_>,
    check: &'static Check,
    file: &str,
    enabled: Option<Priorities>,
    found: &mut Vec<Finding>,
) {
    let (Some(enabled), Some(mask)) = (enabled, look.policy.lossless_of(look.port.pfc())) else {
        return;
    };
    for priority in list(mask).filter(|priority| !has(enabled, *priority)) {
        let said = vec![Evidence::new(format!("{file}/{priority}"), "0: off")];
        found.push(Finding::of(check, &look.port.port, said).with("{priority}", &priority));
    }
}
