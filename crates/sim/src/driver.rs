//! What stands between a NIC's counters and their reader.

use crate::conditions::Fault;
use crate::counted::Totals;
use catalog::SourceKind;
use model::Why;

/// A driver with its firmware.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    /// What a driver that looks by timer saw last.
    copied: Option<Box<Totals>>,
    /// What a firmware that stands still goes on to answer.
    frozen: Option<Box<Totals>>,
    fault: Option<Fault>,
    /// How often the RDMA device was registered anew.
    registrations: u32,
}

impl Driver {
    /// A driver that looks at `totals` at every read, or by timer.
    pub(crate) fn new(by_timer: bool, totals: &Totals) -> Self {
        Self {
            copied: by_timer.then(|| Box::new(totals.clone())),
            frozen: None,
            fault: None,
            registrations: 0,
        }
    }

    /// The RDMA device, told apart from those that it was before.
    pub(crate) fn registrations(&self) -> u32 {
        self.registrations
    }

    /// The timer has come.
    pub(crate) fn refresh(&mut self, totals: &Totals) {
        if let Some(copied) = &mut self.copied {
            copied.as_mut().clone_from(totals);
        }
    }

    /// `fault` begins, or what was broken before is over.
    pub(crate) fn meet(&mut self, fault: Option<Fault>, totals: &Totals) {
        self.registrations += u32::from(self.fault == Some(Fault::Reset));
        self.frozen = (fault == Some(Fault::Frozen)).then(|| Box::new(totals.clone()));
        self.fault = fault;
    }

    /// What it answers from where the NIC has counted `totals`.
    pub(crate) fn shows<'a>(&'a self, source: SourceKind, totals: &'a Totals) -> &'a Totals {
        let frozen = self.frozen.as_deref().filter(|_| is_rdma(source));
        frozen.or(self.copied.as_deref()).unwrap_or(totals)
    }

    /// Why it does not answer someone who opened `source` when the RDMA device was the one of `registrations`.
    pub(crate) fn refuses(&self, source: SourceKind, registrations: u32) -> Option<Why> {
        match self.fault {
            Some(Fault::Reset) if source != SourceKind::Link => {
                Some(Why::new("ENODEV", "the simulated NIC is in reset"))
            }
            Some(Fault::Unanswered) if source == SourceKind::Ethtool => Some(Why::new(
                "EIO",
                "the firmware of the simulated NIC does not answer",
            )),
            _ if is_rdma(source) && registrations != self.registrations => Some(Why::new(
                "ENODEV",
                "the RDMA device of the simulated NIC was registered anew",
            )),
            _ => None,
        }
    }
}

fn is_rdma(source: SourceKind) -> bool {
    matches!(
        source,
        SourceKind::HwCounters | SourceKind::DeviceCounters | SourceKind::PortCounters
    )
}
