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
}

impl Setup {
    /// Eight ports of `ConnectX`.
    #[must_use]
    pub fn new(scenario: Scenario, seed: u64) -> Self {
        Self {
            scenario,
            seed,
            nic: Nic::default(),
            ports: PortCount::default(),
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
    /// The number is not 1 to 64.
    pub fn new(ports: u8) -> Result<Self, NoPortCount> {
        if (1..=Self::MOST).contains(&ports) {
            Ok(Self(ports))
        } else {
            Err(NoPortCount)
        }
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
    type Err = NoPortCount;

    fn from_str(text: &str) -> Result<Self, NoPortCount> {
        text.parse().map_err(|_| NoPortCount).and_then(Self::new)
    }
}

/// Not a number of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPortCount;

impl fmt::Display for NoPortCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a simulated server has 1 to {} ports", PortCount::MOST)
    }
}

impl std::error::Error for NoPortCount {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_one_to_sixty_four_ports() {
        for (text, ports) in [("1", 1), ("8", 8), ("64", 64)] {
            assert_eq!(text.parse::<PortCount>().map(PortCount::get), Ok(ports));
        }
        for text in ["0", "65", "300", "-1", "many", ""] {
            assert_eq!(text.parse::<PortCount>(), Err(NoPortCount), "{text}");
        }
    }
}
