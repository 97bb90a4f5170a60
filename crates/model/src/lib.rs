//! The vocabulary that hosts, sources and everything above them share.
//!
//! A *host* (the kernel, the simulated server, a recorded capture) lists its *ports* and opens the *sources* of a
//! port; a source reads into a row of `u64`, whose columns its *schema* names. Nothing here does any I/O.

pub mod delta;
pub mod errno;
mod host;
mod port;
mod qp_column;
mod queue_pair;
mod schema;
mod setup;

pub use catalog::SourceKind;
pub use host::{Change, Changes, Host, Opened, Read, Source, Why};
pub use port::{DeviceId, Gid, GidType, Gpu, LinkLayer, Pci, PcieLink, Port, PortId, PortState};
pub use qp_column::{LEFT_OUT, OTHERS, QUEUE_PAIRS, QpColumn};
pub use queue_pair::{Holder, Owner, Place, QueuePair, QueuePairKind, QueuePairState, QueuePairs};
pub use schema::{ABSENT, Column, Schema};
pub use setup::{
    Acs, Address, Bond, Buffers, EcnSetup, Express, Fec, GpuDirect, GpuSetup, Iommu, KernelBuild, LinkSetup,
    Module, Neighbour, NodeSetup, PciHop, PortSetup, Priorities, Route, Routing, Rule, Setup, Trust, network,
};
