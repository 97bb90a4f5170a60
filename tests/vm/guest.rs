//! What only a kernel can show: these tests run inside the guest of `tests/vm`, as `./x vm` starts them.
//!
//! `fakeroce` has the truth in `/proc/fakeroce_values`; every test sets counters there and compares.

#![allow(clippy::print_stdout, clippy::print_stderr)] // figures and reasons for whoever reads the test's output
#![allow(clippy::disallowed_methods)] // tests start processes, wait and read files

#[path = "../support/mod.rs"]
mod support;

#[path = "guest/bench.rs"]
mod bench;
#[path = "guest/bonds.rs"]
mod bonds;
#[path = "guest/cost.rs"]
mod cost;
#[path = "guest/doctor.rs"]
mod doctor;
#[path = "guest/duty.rs"]
mod duty;
#[path = "guest/errnos.rs"]
mod errnos;
#[path = "guest/faults.rs"]
mod faults;
#[path = "guest/hotplug.rs"]
mod hotplug;
#[path = "guest/incidents.rs"]
mod incidents;
#[path = "guest/listing.rs"]
mod listing;
#[path = "guest/names.rs"]
mod names;
#[path = "guest/namespaces.rs"]
mod namespaces;
#[path = "guest/optional.rs"]
mod optional;
#[path = "guest/queue_pairs.rs"]
mod queue_pairs;
#[path = "guest/scraper.rs"]
mod scraper;
#[path = "guest/signals.rs"]
mod signals;
