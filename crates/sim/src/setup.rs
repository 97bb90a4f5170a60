//! What is simulated.

use crate::{Nic, Scenario};
use std::fmt;
use std::str::FromStr;

/// A server to simulate. Servers of one setup are alike, to the last counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What happens to it.
    pub scenario: Scenario,
    /// Where its chance comes from.
    pub seed: u64,
    /// Whose NICs it has.
    pub nic: Nic,
    /// How many of them, one port each.
    pub ports: PortCount,
    /// How fast its clock runs.
    pub speed: Speed,
}

impl Setup {
    /// Eight ports of `ConnectX` in real time.
    #[must_use]
    pub fn new(scenario: Scenario, seed: u64) -> Self {
        Self {
            scenario,
            seed,
            nic: Nic::default(),
            ports: PortCount::default(),
            speed: Speed::default(),
        }
    }
}

/// Ports of a simulated server, 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortCount(u8);

impl PortCount {
    /// Most ports of a server.
    pub const MOST: u8 = 64;

    /// # Errors
    /// The number is not 1 to [`Self::MOST`].
    pub fn new(ports: u8) -> Result<Self, OutOfRange> {
        within(
            "a simulated server has",
            u32::from(ports),
            Self::MOST.into(),
            "ports",
        )?;
        Ok(Self(ports))
    }

    pub(crate) fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for PortCount {
    fn default() -> Self {
        Self(8)
    }
}

impl fmt::Display for PortCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for PortCount {
    type Err = OutOfRange;

    fn from_str(text: &str) -> Result<Self, OutOfRange> {
        // No number at all is as far out of range as 0.
        Self::new(text.parse().unwrap_or(0))
    }
}

/// How many times faster than a real server's a simulated server's clock runs, 1 to 10080: a week in a minute.
///
/// The clock is the caller's, and this does not make it run faster. It tells the simulator how fast it does, so that a fast
/// server costs little more than a slow one: above 60 a step of the model counts for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u32);

impl Speed {
    /// Highest speed.
    pub const MOST: u32 = 7 * 24 * 60;
    /// Up to this speed every step is played.
    const WHOLE: u32 = 60;

    /// # Errors
    /// The number is not 1 to [`Self::MOST`].
    pub fn new(times: u32) -> Result<Self, OutOfRange> {
        within(
            "simulated time runs",
            times,
            Self::MOST,
            "times as fast as real time",
        )?;
        Ok(Self(times))
    }

    /// How many times as fast.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// How often each step counts.
    pub(crate) fn grain(self) -> u64 {
        u64::from(self.0.div_ceil(Self::WHOLE))
    }
}

impl Default for Speed {
    fn default() -> Self {
        Self(1)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Speed {
    type Err = OutOfRange;

    fn from_str(text: &str) -> Result<Self, OutOfRange> {
        Self::new(text.parse().unwrap_or(0))
    }
}

/// A number is too small or too large, or is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    subject: &'static str,
    most: u32,
    of: &'static str,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, most, of } = self;
        write!(f, "{subject} 1 to {most} {of}")
    }
}

impl std::error::Error for OutOfRange {}

fn within(subject: &'static str, number: u32, most: u32, of: &'static str) -> Result<(), OutOfRange> {
    if (1..=most).contains(&number) {
        Ok(())
    } else {
        Err(OutOfRange { subject, most, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_one_to_sixty_four_ports() {
        for (text, ports) in [("1", 1), ("8", 8), ("64", 64)] {
            assert_eq!(text.parse::<PortCount>().map(PortCount::get), Ok(ports));
        }
        for text in ["0", "65", "300", "-1", "many", ""] {
            let error = text.parse::<PortCount>().unwrap_err();
            assert_eq!(error.to_string(), "a simulated server has 1 to 64 ports");
        }
    }

    #[test]
    fn time_runs_up_to_a_week_in_a_minute() {
        let grain = |text: &str| text.parse().map(Speed::grain);
        assert_eq!(
            ["1", "60", "61", "600", "10080"].map(grain),
            [1, 1, 2, 10, 168].map(Ok)
        );
        for text in ["0", "10081", "1.5", "fast"] {
            let error = text.parse::<Speed>().unwrap_err();
            assert_eq!(
                error.to_string(),
                "simulated time runs 1 to 10080 times as fast as real time"
            );
        }
    }
}
