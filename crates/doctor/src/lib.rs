//! What is wrong with a node's RoCE configuration and traffic, with the evidence and what mends it.
//!
//! Everything here is pure: no I/O, no clock. Two functions say all:
//!
//! - [`findings`]`(&`[`Facts`]`, &`[`Policy`]`)`: what is wrong with the *configuration*, from what was read of a node once.
//! - [`verdicts`]`(&[`[`PortWindow`]`], &`[`Policy`]`)`: what the *traffic* of a window tells, from rates. A window comes from a
//!   port's rows as they are derived ([`PortWindow::of`]), from two looks at its totals ([`Look`], [`PortWindow::between`]), or
//!   from rates that the caller has ([`PortWindow::new`], [`PortWindow::set`]), such as those of an archive.
//!
//! Both are built on one rule: what is not known gives no finding. A verdict never rests on one counter alone; each names its
//! evidence, its confidence and what else it could be. Where a port is busy and the counters that would tell are missing, the
//! verdict is `cannot_tell`.
//!
//! Every check and every verdict is a row of one table ([`CHECKS`]), which `docs/checks.md`, `--explain` and the metric's
//! labels are made of.
//!
//! For other uses of the same facts: [`Dcb`] (PFC, classes, the APP table), [`trust`], [`priority_of`] (which priority a DSCP
//! maps to), [`roce_dscp`] (which DSCP leads to the lossless priority), [`gid_index`] and [`roce_v2_ipv4`] (which index of the
//! GID table is `RoCE` v2 over IPv4, and whether all rails have it).

mod check;
mod checks;
mod dcb;
mod docs;
mod facts;
mod finding;
mod gid;
mod policy;
mod priority;
mod table;
mod verdicts;
mod window;

pub use check::{Area, Check, Severity, Status, check};
pub use checks::findings;
pub use dcb::{Algorithm, Dcb};
pub use docs::{checks as docs, explain};
pub use facts::{Facts, LinkFacts, PortFacts, Rails};
pub use finding::{Evidence, Finding, PortName};
pub use gid::{GidIndex, gid_index, roce_v2_ipv4};
pub use policy::{Congestion, Policy};
pub use priority::{priority_of, roce_dscp, trust};
pub use table::CHECKS;
pub use verdicts::{Confidence, Verdict, verdicts};
pub use window::{Look, PortWindow};
