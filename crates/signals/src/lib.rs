//! What rows of counters tell: totals, rates, ratios, histograms.
//!
//! Everything here is pure: no I/O and no clock. Times come with the rows, in nanoseconds of a monotonic clock.
//! [`PortSignals`] is the engine for one port; [`model::delta`] and [`ratio`] are the arithmetic that it is made of, and
//! [`detect`] tells from it when something begins and ends.

pub mod detect;
mod histogram;
mod meter;
mod meters;
mod port;
mod quantity;
pub mod ratio;
mod stillness;
mod track;

pub use histogram::Histogram;
pub use port::{Options, PortSignals, Quality, Slot, Step};
