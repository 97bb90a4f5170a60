//! What happens to the simulated server, and when.

use crate::counted::RDMA_PRIORITY;
use crate::dcqcn::Control;
use crate::scenario::Scenario;

/// Rail that the incasts meet. On a server with fewer rails this and the others count on from the first.
const INCAST_RAIL: usize = 3;

/// What the fabric does to the server at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// Collectives collide with those of other jobs on one rail.
    pub(crate) incast: bool,
    /// What ECN does.
    pub(crate) control: Control,
    /// The job loads the rails unevenly.
    pub(crate) uneven: bool,
    /// What is broken.
    pub(crate) fault: Option<Fault>,
}

/// Something broken on one rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The peer sends PFC without end.
    Storm,
    /// The host drains at about half of the line rate.
    SlowReceiver,
    /// There is no carrier.
    CarrierLost,
    /// Bits fall over on the way.
    BadCable,
    /// The link has come up with half of its lanes.
    HalfSpeed,
    /// The NIC resets: no carrier, no RDMA device, and counters begin again.
    Reset,
    /// The firmware has recovered from an error of its own: counters began again when this did, and nothing else shows it.
    Recovered,
    /// The firmware answers with the values of before.
    Frozen,
    /// The firmware does not answer `ethtool -S`.
    Unanswered,
}

impl Fault {
    fn rail(self) -> usize {
        match self {
            Self::HalfSpeed => 1,
            Self::CarrierLost => 2,
            Self::Reset | Self::Recovered | Self::Frozen | Self::Unanswered => 4,
            Self::Storm => 5,
            Self::SlowReceiver => 6,
            Self::BadCable => 7,
        }
    }
}

impl Conditions {
    /// What is broken on this one of `rails`.
    pub(crate) fn fault_of(self, rail: usize, rails: usize) -> Option<Fault> {
        self.fault.filter(|fault| fault.rail() % rails == rail)
    }

    /// Whether incasts meet this one of `rails`.
    pub(crate) fn incast_on(self, rail: usize, rails: usize) -> bool {
        self.incast && INCAST_RAIL % rails == rail
    }

    fn broken(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    fn incast(control: Control) -> Self {
        Self {
            incast: true,
            control,
            ..Self::default()
        }
    }
}

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
/// What does not last recurs after this time.
const PERIOD: u64 = 60 * SECOND;
/// How long the tour stays at each scenario.
const STAGE: u64 = 30 * SECOND;

/// Begin and end within [`PERIOD`].
const STORM: (u64, u64) = (10 * SECOND, 30 * SECOND);
const FLAPS: [(u64, u64); 3] = [
    (10 * SECOND, 11_200 * MILLISECOND),
    (13 * SECOND, 13_800 * MILLISECOND),
    (15_500 * MILLISECOND, 17_500 * MILLISECOND),
];
const RESET: (u64, u64) = (20 * SECOND, 22 * SECOND);
const RECOVERED: (u64, u64) = (45 * SECOND, 50 * SECOND);
const FROZEN: (u64, u64) = (10 * SECOND, 30 * SECOND);
const UNANSWERED: (u64, u64) = (35 * SECOND, 45 * SECOND);

/// The stages of the tour: the scenario, and where in its period the stage begins, so that all of it fits.
const TOUR: [(Scenario, u64); 5] = [
    (Scenario::Healthy, 0),
    (Scenario::Incast, 0),
    (Scenario::PfcStorm, 7 * SECOND),
    (Scenario::SlowReceiver, 0),
    (Scenario::LinkFlap, 5 * SECOND),
];

impl Scenario {
    /// What the fabric does `time` nanoseconds into the scenario.
    pub(crate) fn conditions(self, time: u64) -> Conditions {
        let within = |(begin, end): (u64, u64)| (begin..end).contains(&(time % PERIOD));
        match self {
            Self::Incast | Self::PfcAllPriorities => Conditions::incast(Control::Whole),
            Self::EcnOff => Conditions::incast(Control::Unmarked),
            Self::CnpIgnored => Conditions::incast(Control::Ignored),
            Self::RailImbalance => Conditions {
                uneven: true,
                ..Conditions::default()
            },
            Self::SlowReceiver => Conditions::broken(Fault::SlowReceiver),
            Self::BadCable => Conditions::broken(Fault::BadCable),
            Self::SpeedDowngrade => Conditions::broken(Fault::HalfSpeed),
            Self::PfcStorm if within(STORM) => Conditions::broken(Fault::Storm),
            Self::LinkFlap if FLAPS.into_iter().any(within) => Conditions::broken(Fault::CarrierLost),
            Self::CounterReset if within(RESET) => Conditions::broken(Fault::Reset),
            Self::CounterReset if within(RECOVERED) => Conditions::broken(Fault::Recovered),
            Self::StuckFirmware if within(FROZEN) => Conditions::broken(Fault::Frozen),
            Self::StuckFirmware if within(UNANSWERED) => Conditions::broken(Fault::Unanswered),
            Self::Tour => {
                let lap = time % (STAGE * TOUR.len() as u64);
                let stage = usize::try_from(lap / STAGE).expect("the tour has few stages");
                let (scenario, offset) = TOUR[stage];
                scenario.conditions(offset + lap % STAGE)
            }
            Self::Healthy | Self::PfcStorm | Self::LinkFlap | Self::CounterReset | Self::StuckFirmware => {
                Conditions::default()
            }
        }
    }

    /// The priorities with PFC, a bit each. They are the same for all of a scenario.
    pub(crate) fn pfc(self) -> u8 {
        if self == Self::PfcAllPriorities {
            u8::MAX
        } else {
            1 << RDMA_PRIORITY
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tour_plays_each_for_thirty_seconds() {
        let at = |seconds: u64| Scenario::Tour.conditions(seconds * SECOND);
        let fault = |seconds| at(seconds).fault;
        assert_eq!(at(15), Conditions::default());
        assert!(at(30).incast && at(59).incast);
        assert_eq!(
            [62, 63, 82, 83].map(fault),
            [None, Some(Fault::Storm), Some(Fault::Storm), None]
        );
        assert_eq!([90, 119].map(fault), [Some(Fault::SlowReceiver); 2]);
        assert_eq!([124, 125, 127].map(fault), [None, Some(Fault::CarrierLost), None]);
        assert_eq!(at(150), at(0));
    }

    #[test]
    fn a_storm_lasts_twenty_seconds_of_each_minute() {
        let faults = (0..180).map(|second| Scenario::PfcStorm.conditions(second * SECOND).fault);
        assert_eq!(faults.filter(|fault| *fault == Some(Fault::Storm)).count(), 60);
    }

    #[test]
    fn a_server_with_few_rails_has_every_fault() {
        let storm = Conditions::broken(Fault::Storm);
        let met = |rails| (0..rails).find(|rail| storm.fault_of(*rail, rails).is_some());
        assert_eq!([1, 2, 4, 5, 8, 64].map(met), [0, 1, 1, 0, 5, 5].map(Some));
        assert!(Conditions::incast(Control::Whole).incast_on(1, 2));
    }
}
