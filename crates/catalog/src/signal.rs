//! What a counter means, whatever the driver.

use crate::tables::SIGNALS;
pub use crate::tables::Signal;
use std::fmt;

impl Signal {
    /// Every signal of the catalogue, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        SIGNALS.iter().map(|(_, signal)| *signal)
    }

    /// The dotted name, as in `pfc.rx_pause_duration`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        SIGNALS[self as usize].0
    }

    /// The signal of this dotted name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        SIGNALS
            .binary_search_by_key(&name, |(name, _)| name)
            .ok()
            .map(|i| SIGNALS[i].1)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
