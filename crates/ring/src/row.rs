//! One row, and the time in which it was read.

/// The span of a read in nanoseconds of a monotonic clock: the values were taken at some time within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Before the read.
    pub began: u64,
    /// After the read.
    pub ended: u64,
}

impl Window {
    /// The middle, the best guess of when the values were taken.
    #[must_use]
    pub fn midpoint(self) -> u64 {
        self.began + self.ended.saturating_sub(self.began) / 2
    }

    /// How long the read took.
    #[must_use]
    pub fn length(self) -> u64 {
        self.ended.saturating_sub(self.began)
    }
}

/// A copy of one row; a buffer to be used again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number in the ring, counted from zero.
    pub number: u64,
    /// When it was read.
    pub window: Window,
    /// One value per column.
    pub values: Box<[u64]>,
}
