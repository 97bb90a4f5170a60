//! What a fabric is meant to be, so that one that is healthy but different gives no finding.

use model::Priorities;

/// The priorities that the vendors' guides and most plans use for `RoCE`: 3 and 4.
pub(crate) const CUSTOMARY: Priorities = 0b0001_1000;
/// More priorities with PFC than this are not meant.
const MOST: u32 = 3;

/// How a fabric is meant to be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What holds senders back.
    pub congestion: Congestion,
    /// The lossless priorities, a bit each; `None` takes exactly one, 3 or 4.
    pub lossless: Option<Priorities>,
    /// DSCP of `RoCE` data; `None` takes whichever leads to the lossless priority.
    pub dscp: Option<u8>,
    /// DSCP of CNPs; `None` does not ask.
    pub cnp_dscp: Option<u8>,
    /// RDMA MTU in bytes.
    pub mtu: u32,
    /// Speed of each rail in bits per second; `None` compares the rails with each other and with what they are capable of.
    pub speed: Option<u64>,
    /// Length in metres of the cable to the switch; `None` asks only for what any cable needs.
    pub cable: Option<u32>,
}

/// What holds senders back in a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// ECN and CNPs, with PFC below them for what they are too slow for.
    #[default]
    Dcqcn,
    /// PFC alone: nothing marks, or nobody listens to marks.
    PfcOnly,
    /// No PFC: the NICs recover from loss.
    Lossy,
}

impl Congestion {
    /// The word of the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dcqcn => "dcqcn",
            Self::PfcOnly => "pfc_only",
            Self::Lossy => "lossy",
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            congestion: Congestion::default(),
            lossless: None,
            dscp: None,
            cnp_dscp: None,
            mtu: 4096,
            speed: None,
            cable: None,
        }
    }
}

impl Policy {
    /// True if packets of `RoCE` are not meant to be dropped.
    #[must_use]
    pub fn wants_pfc(&self) -> bool {
        self.planned() != Some(0)
    }

    /// True if marks are meant to be made and answered.
    #[must_use]
    pub fn wants_ecn(&self) -> bool {
        self.congestion == Congestion::Dcqcn
    }

    /// The lossless priorities that were planned, if they were.
    #[must_use]
    pub fn planned(&self) -> Option<Priorities> {
        match self.congestion {
            Congestion::Lossy => Some(self.lossless.unwrap_or(0)),
            Congestion::Dcqcn | Congestion::PfcOnly => self.lossless,
        }
    }

    /// The priorities that are meant to be lossless on a port with PFC on these: the planned, or those with PFC. Of so many that
    /// they cannot be meant, the customary ones.
    #[must_use]
    pub fn lossless_of(&self, pfc: Option<Priorities>) -> Option<Priorities> {
        let meant = |mask: Priorities| {
            let customary = mask & CUSTOMARY;
            if mask.count_ones() > MOST && customary != 0 {
                customary
            } else {
                mask
            }
        };
        self.planned().or(pfc.map(meant))
    }

    /// The lossless priority for which remedies are written: the lowest planned, 3 without a plan.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.planned()
            .filter(|mask| *mask != 0)
            .and_then(|mask| u8::try_from(mask.trailing_zeros()).ok())
            .unwrap_or(3)
    }
}
