//! The table of checks.

pub(crate) mod host;
pub(crate) mod lossless;
pub(crate) mod network;
pub(crate) mod port;
pub(crate) mod traffic;

use crate::check::Check;

/// Every check, in the order in which documents show them.
pub const CHECKS: &[&Check] = &[
    &lossless::PFC_OFF,
    &lossless::PFC_ON_ALL,
    &lossless::PFC_TOO_MANY,
    &lossless::PFC_OTHER_PRIORITY,
    &lossless::PFC_RAILS_DIFFER,
    &lossless::PFC_PEER_DIFFERS,
    &lossless::PAUSE_BESIDE_PFC,
    &lossless::STORM_PREVENTION_OFF,
    &lossless::BUFFER_ZERO,
    &lossless::BUFFER_SMALL,
    &lossless::BUFFER_SHARED,
    &lossless::DCBX_NOT_HOST,
    &lossless::ROCE_ON_OTHER_PRIORITY,
    &lossless::OTHERS_ON_LOSSLESS,
    &lossless::TRUST_PCP,
    &lossless::DSCP_NOT_LOSSLESS,
    &lossless::DEFAULT_TOS,
    &lossless::CNP_CLASS,
    &lossless::CLASS_STARVED,
    &lossless::CLASS_SHARED,
    &lossless::ECN_NP_OFF,
    &lossless::ECN_RP_OFF,
    &lossless::CNP_DSCP,
    &port::LINK_DOWN,
    &port::LINK_SLOW,
    &port::LINK_LANES,
    &port::FEC_OFF,
    &port::FEC_DIFFERS,
    &port::MTU_SMALL,
    &port::MTU_RAILS_DIFFER,
    &port::PCIE_NARROW,
    &port::PCIE_SLOW,
    &port::PCIE_SLOT,
    &port::PCIE_BELOW_LINE,
    &port::PCIE_ERRORS,
    &port::PCIE_PAYLOAD,
    &port::PCIE_READ_REQUEST,
    &port::ACS_REDIRECT,
    &port::IOMMU_TRANSLATES,
    &network::GID_MISSING,
    &network::CM_ROCE_MODE,
    &network::GID_INDEX_DIFFERS,
    &network::SUBNET_SHARED,
    &network::SOURCE_ROUTE_MISSING,
    &network::STRICT_SOURCE,
    &network::HOP_LIMIT_LOW,
    &network::NEIGHBOUR_FAILED,
    &network::BOND_HASH,
    &host::GPUDIRECT_MISSING,
    &host::DMA_BUF_NOT_BUILT,
    &host::GPUDIRECT_UNUSED,
    &host::GPU_FAR,
    &host::FIRMWARE_DIFFERS,
    &host::DRIVER_DIFFERS,
    &host::MODULE_HOT,
    &host::CHIP_HOT,
    &host::OPTICS_DIM,
    &traffic::FABRIC_PAUSES,
    &traffic::HOST_IS_SLOW,
    &traffic::PAUSE_ON_LOSSY,
    &traffic::PAUSE_WITHOUT_ECN,
    &traffic::ECN_THRESHOLD_LOW,
    &traffic::CE_WITHOUT_CNP,
    &traffic::CNP_IGNORED,
    &traffic::CNP_AT_MAXIMUM,
    &traffic::TIMEOUTS_WITHOUT_LOSS,
    &traffic::REORDERING,
    &traffic::LOSS_ELSEWHERE,
    &traffic::DROPS_ON_LOSSLESS,
    &traffic::UNEVEN_RAILS,
    &traffic::BAD_RECEIVE_PATH,
    &traffic::DAMAGED_ELSEWHERE,
    &traffic::CANNOT_TELL,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_its_own_name_and_says_all() {
        for (at, check) in CHECKS.iter().enumerate() {
            assert!(
                CHECKS[at + 1..].iter().all(|other| other.id != check.id),
                "{}",
                check.id
            );
            let allowed = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(check.id.bytes().all(allowed), "{}", check.id);
            for text in [check.fires, check.why, check.advice] {
                assert!(text.ends_with('.') && text.len() > 20, "{}: {text}", check.id);
            }
        }
    }

    /// Names of other checks in the texts are names of checks.
    #[test]
    fn the_texts_name_what_there_is() {
        for check in CHECKS {
            for text in [check.fires, check.why, check.advice] {
                let quoted = text.split('`').skip(1).step_by(2);
                let is_name = |name: &&str| {
                    name.contains('_') && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
                };
                for name in quoted.filter(is_name) {
                    let known = [
                        "nvidia_peermem",
                        "nv_peer_mem",
                        "mlnx_qos",
                        "pfc_only",
                        "xmit_hash_policy",
                    ]
                    .contains(&name);
                    assert!(known || crate::check(name).is_some(), "{}: {name}", check.id);
                }
            }
        }
    }
}
