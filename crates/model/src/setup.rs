//! How a node and its ports are set up, as far as rows do not tell it.
//!
//! Every fact may be missing: this kernel, driver, tree or user does not tell it. What is missing is not known, and nothing may
//! be concluded from it.

use crate::{GidType, PcieLink, PortId};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A bit for each of the eight priorities.
pub type Priorities = u8;

/// How a node is set up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// What the ports share.
    pub node: NodeSetup,
    /// Of each port.
    pub ports: BTreeMap<PortId, PortSetup>,
}

/// What the ports of a node share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSetup {
    /// The GPUs on the PCI bus.
    pub gpus: Option<Vec<GpuSetup>>,
    /// Ways by which a NIC may reach GPU memory.
    pub gpu_direct: GpuDirect,
    /// Addresses and routes of this network namespace.
    pub routing: Option<Routing>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuSetup {
    /// PCI address.
    pub address: String,
    /// PCI vendor: 0x10de is NVIDIA, 0x1002 AMD.
    pub vendor: u64,
    /// NUMA node.
    pub numa_node: Option<u32>,
}

/// What the kernel has for RDMA to GPU memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuDirect {
    /// True if the folder of modules can be read, so that a module that is not in it is not loaded.
    pub modules_known: bool,
    /// The peer-memory module that is loaded, `nvidia_peermem` or the older `nv_peer_mem`.
    pub peer_memory: Option<Module>,
    /// The GPU driver: `nvidia` or `amdgpu`.
    pub gpu_driver: Option<Module>,
    /// How the kernel that runs was built.
    pub kernel: Option<KernelBuild>,
    /// Bytes of GPU memory that are registered with RDMA through a peer-memory client, which only drivers of the OFED kind
    /// tell (`/sys/kernel/mm/memory_peers`).
    pub registered_bytes: Option<u64>,
}

/// What a kernel has for handing GPU memory to NICs as DMA-BUF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelBuild {
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// The options of its build that are needed and that it was built without; `None` if the options are not told.
    pub lacks: Option<Vec<&'static str>>,
}

/// A kernel module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// How many modules or open files use it.
    pub references: Option<u64>,
    /// True if its licence is proprietary (`P` in the file `taint`).
    pub proprietary: Option<bool>,
}

/// How a port is set up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortSetup {
    /// By which mark of a packet its priority is chosen.
    pub trust: Option<Trust>,
    /// The receive buffers behind the port.
    pub buffers: Option<Buffers>,
    /// PFC as the switch announces it by LLDP.
    pub peer_pfc: Option<Priorities>,
    /// Congestion control of the NIC.
    pub ecn: EcnSetup,
    /// Traffic class (`ToS` byte: DSCP × 4 + ECN) that the host gives RDMA connections that ask for none.
    pub default_tos: Option<u8>,
    /// Which GIDs connections take that the connection manager sets up, where that was set.
    pub cm_mode: Option<GidType>,
    /// The link.
    pub link: LinkSetup,
    /// The PCI function, and the bridges above it up to the root port.
    pub pci: Vec<PciHop>,
    /// How the IOMMU treats the device.
    pub iommu: Option<Iommu>,
    /// Distance from the NIC's NUMA node to the nearest GPU's, by the firmware's table: 10 is the same node.
    pub gpu_numa_distance: Option<u32>,
    /// The bond that its netdev is, or is a member of.
    pub bond: Option<Bond>,
    /// Version of the driver's module, if it says one.
    pub driver_version: Option<String>,
}

/// By which mark of a packet its priority is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// By the VLAN tag (802.1p); a packet without one has priority 0.
    Pcp,
    /// By the DSCP of the IP header.
    Dscp,
}

/// A bond: the files below `bonding` (Documentation/networking/bonding.rst).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    /// Its netdev.
    pub name: String,
    /// How it uses its members: `802.3ad`, `active-backup` ….
    pub mode: String,
    /// By what of a packet it chooses a member, where the mode has it choose: `layer2`, `layer3+4` ….
    pub hash: Option<String>,
}

/// The receive buffers behind a port: `struct dcbnl_buffer` of `include/uapi/linux/dcbnl.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// The buffer of each priority.
    pub of_priority: [u8; 8],
    /// Bytes of each buffer.
    pub bytes: [u32; 8],
}

/// Congestion control of a NIC: the files `ecn/roce_np` and `ecn/roce_rp` of drivers of the OFED kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnSetup {
    /// Priorities on which marks are answered with CNPs.
    pub notification_point: Option<Priorities>,
    /// Priorities on which CNPs slow down a sender.
    pub reaction_point: Option<Priorities>,
    /// DSCP of the CNPs that are sent.
    pub cnp_dscp: Option<u8>,
    /// 802.1p priority of the CNPs that are sent.
    pub cnp_priority: Option<u8>,
    /// Least time between two CNPs of a flow, in microseconds.
    pub cnp_interval: Option<u32>,
}

/// What a link could do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSetup {
    /// The highest speed that the port supports, in bits per second.
    pub best_speed: Option<u64>,
    /// Forward error correction in use.
    pub fec: Option<Fec>,
}

/// Forward error correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fec {
    /// None.
    Off,
    /// Clause 74, Firecode.
    BaseR,
    /// Clause 91 or 134, Reed-Solomon.
    Rs,
    /// The 272-symbol Reed-Solomon code of low latency.
    LlRs,
}

impl Fec {
    /// The word of `ethtool --show-fec`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "Off",
            Self::BaseR => "BaseR",
            Self::Rs => "RS",
            Self::LlRs => "LLRS",
        }
    }
}

/// One station on the way from a PCI function to the root port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PciHop {
    /// PCI address.
    pub address: String,
    /// The link above it in use.
    pub current: Option<PcieLink>,
    /// The link that it is capable of.
    pub max: Option<PcieLink>,
    /// What its configuration space says.
    pub express: Option<Express>,
    /// Access control; `None` if its configuration space cannot be read that far, which needs `CAP_SYS_ADMIN`.
    pub acs: Option<Acs>,
}

/// Device control of the PCI Express capability (PCI Express Base Specification 6.0, 7.5.3.3 and 7.5.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Express {
    /// Largest payload that the function can take, in bytes.
    pub payload_supported: u32,
    /// Largest payload that it uses, in bytes.
    pub payload: u32,
    /// Largest read that it asks for, in bytes.
    pub read_request: u32,
}

/// Access control services of a bridge (same specification, 7.7.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acs {
    /// Requests from one device below it to another go up to the root first.
    pub request_redirect: bool,
    /// So do completions.
    pub completion_redirect: bool,
}

/// How an IOMMU treats a device: the file `iommu_group/type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iommu {
    /// Addresses pass as they are (`identity`, `iommu=pt`).
    PassThrough,
    /// Each DMA is translated.
    Translated,
}

/// IPv4 and IPv6 of a network namespace. A family that the kernel does not tell of has no entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Addresses of interfaces.
    pub addresses: Vec<Address>,
    /// Unicast routes of every table.
    pub routes: Vec<Route>,
    /// Rules that send a source address to a table of its own.
    pub rules: Vec<Rule>,
    /// Neighbours that somebody wanted to reach.
    pub neighbours: Vec<Neighbour>,
    /// Interfaces that take an IPv4 packet only if the answer to it would leave by them: those whose `rp_filter`, or that of
    /// `all` if it is greater, is 1 (Documentation/networking/ip-sysctl.rst).
    pub strict: Vec<u32>,
    /// Hop limit of IPv4 packets whose route has none of its own: `ip_default_ttl`.
    pub hop_limit: Option<u32>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The interface.
    pub ifindex: u32,
    /// The address.
    pub address: IpAddr,
    /// Bits of its network.
    pub prefix: u8,
}

impl Address {
    /// The address with the bits of the host cleared.
    #[must_use]
    pub fn network(self) -> IpAddr {
        network(self.address, self.prefix)
    }
}

/// An address without the bits behind `prefix`.
#[must_use]
pub fn network(address: IpAddr, prefix: u8) -> IpAddr {
    let host = |bits: u32| bits.saturating_sub(prefix.into());
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(host(32)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(host(128)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Network that it leads to; 0.0.0.0/0 and `::/0` are everything.
    pub to: (IpAddr, u8),
    /// Next router, if the network is not at the interface itself.
    pub gateway: Option<IpAddr>,
    /// Interface that it leaves by.
    pub ifindex: u32,
    /// Table that it stands in; 254 is the main one.
    pub table: u32,
    /// Hop limit of packets that take it, where it has one of its own.
    pub hop_limit: Option<u32>,
}

/// A rule for packets of a source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Sources that it is for.
    pub from: (IpAddr, u8),
    /// Table that they are routed by.
    pub table: u32,
}

/// A neighbour that does not answer, or does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Interface that it is looked for at.
    pub ifindex: u32,
    /// Its address.
    pub address: IpAddr,
    /// True if it was asked for and did not answer (`NUD_FAILED`).
    pub failed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_the_address_without_the_host() {
        for (address, prefix, right) in [
            ("10.1.2.131", 24, "10.1.2.0"),
            ("10.1.2.131", 31, "10.1.2.130"),
            ("10.1.2.131", 32, "10.1.2.131"),
            ("10.1.2.131", 0, "0.0.0.0"),
            ("2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::"),
            ("2001:db8:1:2:3:4:5:6", 127, "2001:db8:1:2:3:4:5:6"),
            ("2001:db8:1:2:3:4:5:7", 127, "2001:db8:1:2:3:4:5:6"),
            ("2001:db8:1:2:3:4:5:7", 128, "2001:db8:1:2:3:4:5:7"),
            ("2001:db8::1", 0, "::"),
        ] {
            let address = Address {
                ifindex: 1,
                address: address.parse().unwrap(),
                prefix,
            };
            assert_eq!(address.network(), right.parse::<IpAddr>().unwrap(), "{address:?}");
        }
    }
}
