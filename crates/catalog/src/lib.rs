//! What the counters of each RoCE NIC driver mean.
//!
//! The knowledge is data: one file per driver under `data/`, and `data/metrics.toml` for the metric families that
//! the signals go out under. `build.rs` turns them into static tables. A new NIC is a new data file.
//!
//! [`meaning`] leads from a counter of a driver to the [`Signal`] that it carries, [`Family::takes`] from there to the
//! metric that it goes out under, and [`docs`] writes both down for people.

pub mod docs;
mod entry;
mod family;
mod meaning;
mod signal;
mod source;
mod tables;
mod unit;

pub use entry::{Direction, Driver, Entry, Fact, Index, Kind, Per, Width};
pub use family::{Family, FamilyKind, From, Origin, PREFIX, Status, family};
pub use meaning::{Meaning, meaning};
pub use signal::Signal;
pub use source::SourceKind;
pub use tables::{DRIVERS, FAMILIES, UNEXPOSED};
pub use unit::{Scale, Unit};
