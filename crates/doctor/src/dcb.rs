//! The DCB configuration of a port.

use catalog::{Index, Signal};
use model::Priorities;
use signals::PortSignals;

/// PFC, ETS, the APP table and DCBX of a port, as its source `dcb` tells them. Parts that the driver does not tell are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dcb {
    /// Priorities with PFC.
    pub pfc: Option<Priorities>,
    /// Classes that may have PFC at once.
    pub pfc_capable: Option<u8>,
    /// Who configures: `DCB_CAP_DCBX_*`.
    pub dcbx: Option<u8>,
    /// Traffic class of each priority.
    pub class_of: [Option<u8>; 8],
    /// Share of the bandwidth of each traffic class, in percent.
    pub share_of: [Option<u8>; 8],
    /// How each traffic class is scheduled.
    pub algorithm_of: [Option<Algorithm>; 8],
    /// Priority of each DSCP that the APP table has.
    pub dscp: [Option<u8>; 64],
    /// Priority that the APP table has for UDP port 4791.
    pub roce_udp: Option<u8>,
}

/// How a traffic class is scheduled: `IEEE_8021QAZ_TSA_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Before all others.
    Strict,
    /// By its share.
    Ets,
    /// Otherwise.
    Other,
}

impl Default for Dcb {
    fn default() -> Self {
        Self {
            pfc: None,
            pfc_capable: None,
            dcbx: None,
            class_of: [None; 8],
            share_of: [None; 8],
            algorithm_of: [None; 8],
            dscp: [None; 64],
            roce_udp: None,
        }
    }
}

impl Dcb {
    /// What the newest row of a port tells; `None` if there is none.
    #[must_use]
    pub fn read(port: &PortSignals) -> Option<Self> {
        let value = |signal, index| u8::try_from(port.reading(signal, index)?).ok();
        let dcb = Self {
            pfc: value(Signal::ConfigPfcEnabled, None),
            pfc_capable: value(Signal::ConfigPfcCapable, None),
            dcbx: value(Signal::ConfigDcbx, None),
            class_of: indexed(|i| value(Signal::ConfigPriorityClass, Some(Index::Priority(i)))),
            share_of: indexed(|i| value(Signal::ConfigClassBandwidth, Some(Index::TrafficClass(i)))),
            algorithm_of: indexed(|i| {
                let number = value(Signal::ConfigClassAlgorithm, Some(Index::TrafficClass(i)))?;
                Some(match number {
                    0 => Algorithm::Strict,
                    2 => Algorithm::Ets,
                    _ => Algorithm::Other,
                })
            }),
            dscp: indexed(|i| value(Signal::ConfigDscpPriority, Some(Index::Dscp(i)))),
            roce_udp: value(Signal::ConfigRoceUdpPriority, None),
        };
        (dcb != Self::default()).then_some(dcb)
    }

    /// True if the APP table has an entry for any DSCP.
    #[must_use]
    pub fn maps_dscp(&self) -> bool {
        self.dscp.iter().any(Option::is_some)
    }

    /// The traffic class of a priority.
    #[must_use]
    pub fn class(&self, priority: u8) -> Option<u8> {
        *self.class_of.get(usize::from(priority))?
    }

    /// How the class of a priority is scheduled.
    #[must_use]
    pub fn algorithm(&self, priority: u8) -> Option<Algorithm> {
        *self.algorithm_of.get(usize::from(self.class(priority)?))?
    }

    /// The share of the class of a priority, in percent.
    #[must_use]
    pub fn share(&self, priority: u8) -> Option<u8> {
        *self.share_of.get(usize::from(self.class(priority)?))?
    }
}

fn indexed<T, const N: usize>(value: impl Fn(u8) -> Option<T>) -> [Option<T>; N] {
    std::array::from_fn(|i| u8::try_from(i).ok().and_then(&value))
}
