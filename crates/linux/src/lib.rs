//! Reads RoCE counters and facts from a Linux kernel.
//!
//! This is the one crate that touches the kernel: sysfs ([`tree`]), RDMA netlink and its files ([`rdma`]), a driver's
//! statistics ([`ethtool`]), ethtool netlink ([`settings`], [`module`]), DCB netlink ([`dcb`]), hwmon ([`hwmon`]), PCI
//! Express errors ([`aer`]), rtnetlink ([`changes`]) and libibverbs ([`verbs`]). It knows how to ask; what the answers mean is in the catalogue.
#![allow(rustdoc::private_intra_doc_links)] // the map above is for who reads the code

mod aer;
mod alarm;
mod changes;
mod clock;
mod dcb;
mod errno;
mod ethtool;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod hwmon;
mod kernel;
mod limits;
mod link;
mod memory;
mod module;
mod netlink;
mod number;
mod pci;
mod place;
mod ports;
mod process;
mod processes;
mod rdma;
mod record;
mod route;
mod settings;
mod setup;
mod signals;
mod tree;
mod verbs;

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod guest;
#[cfg(test)]
mod netns;
#[cfg(test)]
mod warm;

pub use alarm::Alarm;
pub(crate) use errno::why_from_errno;
pub(crate) use kernel::Context;
pub use kernel::{Kernel, Options, release, uptime};
pub use limits::raise_descriptor_limit;
pub use memory::give_back_memory;
pub use process::{Process, Usage};
pub use processes::Processes;
pub use signals::{Caught, Signals, send};
pub(crate) use tree::Tree;
