//! What happens to the simulated server, and when.

use std::fmt;
use std::str::FromStr;

/// Rail that the incasts meet.
pub(crate) const INCAST_RAIL: usize = 3;
/// Rail whose peer holds it with PFC.
const STORM_RAIL: usize = 5;
/// Rail whose host drains slowly and pauses the switch.
const SLOW_RAIL: usize = 6;
/// Rail whose carrier drops.
const FLAP_RAIL: usize = 2;

/// A play of the simulated server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// A training job on a well-behaved fabric.
    Healthy,
    /// 8:1 incasts onto one rail.
    Incast,
    /// A peer that holds one rail with PFC, and a slow receiver on another.
    PfcStorm,
    /// A carrier that drops and comes back.
    LinkFlap,
    /// All of them, one after the other.
    Tour,
}

/// What the fabric does to the server at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// Collectives collide with those of other jobs on [`INCAST_RAIL`].
    pub(crate) incast: bool,
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
}

impl Fault {
    fn rail(self) -> usize {
        match self {
            Self::Storm => STORM_RAIL,
            Self::SlowReceiver => SLOW_RAIL,
            Self::CarrierLost => FLAP_RAIL,
        }
    }
}

impl Conditions {
    /// What is broken on this rail.
    pub(crate) fn fault_of(self, rail: usize) -> Option<Fault> {
        self.fault.filter(|fault| fault.rail() == rail)
    }
}

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
/// The storm and the flaps recur after this time.
const PERIOD: u64 = 60 * SECOND;
/// How long the tour stays at each scenario.
const STAGE: u64 = 30 * SECOND;

/// Begin and end within [`PERIOD`].
const STORM: (u64, u64) = (10 * SECOND, 30 * SECOND);
const SLOW_RECEIVER: (u64, u64) = (32 * SECOND, 36 * SECOND);
const FLAPS: [(u64, u64); 3] = [
    (10 * SECOND, 11_200 * MILLISECOND),
    (13 * SECOND, 13_800 * MILLISECOND),
    (15_500 * MILLISECOND, 17_500 * MILLISECOND),
];

/// The stages of the tour: the scenario, and where in its period the stage begins, so that all of it fits.
const TOUR: [(Scenario, u64); 4] = [
    (Scenario::Healthy, 0),
    (Scenario::Incast, 0),
    (Scenario::PfcStorm, 7 * SECOND),
    (Scenario::LinkFlap, 5 * SECOND),
];

impl Scenario {
    /// Every scenario, in the order of the tour.
    pub const ALL: [Self; 5] = [
        Self::Healthy,
        Self::Incast,
        Self::PfcStorm,
        Self::LinkFlap,
        Self::Tour,
    ];

    /// The name that the command line takes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Incast => "incast",
            Self::PfcStorm => "pfc-storm",
            Self::LinkFlap => "link-flap",
            Self::Tour => "tour",
        }
    }

    /// What is to be seen, in a line.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Healthy => "a training job at about 90 % of eight rails, a rare ECN mark, no pause",
            Self::Incast => {
                "8:1 incasts on mlx5_3: ECN marks, CNPs both ways, pauses of microseconds, sagging rate"
            }
            Self::PfcStorm => {
                "a peer holds mlx5_5 with PFC for 20 s of each minute, mlx5_6 receives slowly for 4 s"
            }
            Self::LinkFlap => {
                "mlx5_2 loses its carrier three times in 8 s of each minute and retransmits afterwards"
            }
            Self::Tour => "healthy, incast, pfc-storm and link-flap, 30 s each, again and again",
        }
    }

    /// What the fabric does `time` nanoseconds into the scenario.
    pub(crate) fn conditions(self, time: u64) -> Conditions {
        let within = |(begin, end): (u64, u64)| (begin..end).contains(&(time % PERIOD));
        let broken = |fault| Conditions {
            fault: Some(fault),
            ..Conditions::default()
        };
        match self {
            Self::Incast => Conditions {
                incast: true,
                ..Conditions::default()
            },
            Self::PfcStorm if within(STORM) => broken(Fault::Storm),
            Self::PfcStorm if within(SLOW_RECEIVER) => broken(Fault::SlowReceiver),
            Self::LinkFlap if FLAPS.into_iter().any(within) => broken(Fault::CarrierLost),
            Self::Healthy | Self::PfcStorm | Self::LinkFlap => Conditions::default(),
            Self::Tour => {
                let lap = time % (STAGE * TOUR.len() as u64);
                let stage = usize::try_from(lap / STAGE).expect("the tour has four stages");
                let (scenario, offset) = TOUR[stage];
                scenario.conditions(offset + lap % STAGE)
            }
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no scenario of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScenario {
    given: String,
    nearest: Scenario,
}

impl fmt::Display for UnknownScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { given, nearest } = self;
        let known: Vec<&str> = Scenario::ALL.iter().map(|scenario| scenario.as_str()).collect();
        write!(
            f,
            "no scenario {given:?}; did you mean {nearest:?}? There are: {}",
            known.join(", "),
            nearest = nearest.as_str()
        )
    }
}

impl std::error::Error for UnknownScenario {}

impl FromStr for Scenario {
    type Err = UnknownScenario;

    fn from_str(name: &str) -> Result<Self, UnknownScenario> {
        if let Some(scenario) = Self::ALL.into_iter().find(|scenario| scenario.as_str() == name) {
            return Ok(scenario);
        }
        let nearest = Self::ALL
            .into_iter()
            .min_by_key(|scenario| distance(name, scenario.as_str()))
            .expect("there are scenarios");
        Err(UnknownScenario {
            given: name.to_owned(),
            nearest,
        })
    }
}

/// How far `given` is from a scenario's name: nothing if it is a part of it.
fn distance(given: &str, name: &str) -> usize {
    let part = !given.is_empty() && name.contains(given);
    if part { 0 } else { edits(given, name) }
}

/// Insertions, removals and replacements that turn one word into the other (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.as_str().parse(), Ok(scenario));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        for (given, meant) in [
            ("pfcstorm", "pfc-storm"),
            ("incst", "incast"),
            ("flap", "link-flap"),
            ("", "tour"),
        ] {
            let error = given.parse::<Scenario>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("did you mean {meant:?}")),
                "{given}: {error}"
            );
            assert!(
                error.contains("healthy, incast, pfc-storm, link-flap, tour"),
                "{error}"
            );
        }
    }

    #[test]
    fn edits_are_those_of_levenshtein() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("same", "same"), 0);
    }

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
        assert_eq!(
            [85, 88, 89].map(fault),
            [Some(Fault::SlowReceiver), Some(Fault::SlowReceiver), None]
        );
        assert_eq!([94, 95, 97].map(fault), [None, Some(Fault::CarrierLost), None]);
        assert_eq!(at(120), at(0));
    }

    #[test]
    fn a_storm_lasts_twenty_seconds_of_each_minute() {
        let faults = (0..180).map(|second| Scenario::PfcStorm.conditions(second * SECOND).fault);
        assert_eq!(faults.filter(|fault| *fault == Some(Fault::Storm)).count(), 60);
    }
}
