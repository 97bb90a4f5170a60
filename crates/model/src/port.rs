//! Ports and the facts of them that are not counters.

use std::fmt;
use std::sync::Arc;

/// What stays the same about a device however it is named: its PCI address, or for a device without one its GUID or
/// MAC address. Names move between devices at boot, at a rename and between namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(Arc<str>);

impl DeviceId {
    /// A device at a PCI address such as `0000:1a:00.0`.
    #[must_use]
    pub fn pci(address: &str) -> Self {
        Self(address.into())
    }

    /// A device without a PCI address, by node GUID.
    #[must_use]
    pub fn guid(guid: &str) -> Self {
        Self(format!("guid-{guid}").into())
    }

    /// A netdev without a PCI address, by permanent MAC address.
    #[must_use]
    pub fn mac(address: &str) -> Self {
        Self(format!("mac-{address}").into())
    }

    /// The identity as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One port of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId {
    /// The device.
    pub device: DeviceId,
    /// Its number on the device, from 1 as RDMA counts.
    pub number: u32,
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.device, self.number)
    }
}

/// What a host can tell of a port without waiting for firmware or for rtnl.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// What it is, whatever it is called.
    pub id: PortId,
    /// The RDMA device's name, or the netdev's where there is no RDMA device.
    pub device: String,
    /// The netdev bound to the port.
    pub netdev: Option<String>,
    /// The netdev's index; a new one after the netdev was created anew.
    pub ifindex: Option<u32>,
    /// The RDMA device's index; a new one after the device was registered anew. `None` without an RDMA device.
    pub rdma_index: Option<u32>,
    /// The driver, as the `device/driver` link names it; `rxe` or `siw` for the software devices.
    pub driver: String,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Board identity (PSID).
    pub board: Option<String>,
    /// Node GUID of the RDMA device.
    pub guid: Option<String>,
    /// PCI address and link.
    pub pci: Option<Pci>,
    /// NUMA node that the device is attached to.
    pub numa_node: Option<u32>,
    /// The GPU that is nearest by PCI topology.
    pub gpu: Option<Gpu>,
    /// Ethernet (RoCE) or InfiniBand.
    pub link_layer: LinkLayer,
    /// The RDMA port's logical state.
    pub state: Option<PortState>,
    /// MTU of the netdev in bytes.
    pub mtu: Option<u32>,
    /// GIDs that are set, by index.
    pub gids: Vec<Gid>,
}

impl Port {
    /// An Ethernet port of which no more than this is known.
    #[must_use]
    pub fn bare(id: PortId, device: &str, driver: &str) -> Self {
        Self {
            id,
            device: device.to_owned(),
            netdev: None,
            ifindex: None,
            rdma_index: None,
            driver: driver.to_owned(),
            firmware: None,
            board: None,
            guid: None,
            pci: None,
            numa_node: None,
            gpu: None,
            link_layer: LinkLayer::Ethernet,
            state: None,
            mtu: None,
            gids: Vec::new(),
        }
    }

    /// True if it is a port of an RDMA device, not of a netdev alone.
    #[must_use]
    pub fn has_rdma(&self) -> bool {
        self.rdma_index.is_some() || self.guid.is_some()
    }

    /// True if `self` and `other` are the same device instance under the same names, so that what was opened for one
    /// still reads the other.
    #[must_use]
    pub fn same_instance(&self, other: &Self) -> bool {
        (
            &self.id,
            &self.device,
            &self.netdev,
            self.ifindex,
            self.rdma_index,
            &self.driver,
        ) == (
            &other.id,
            &other.device,
            &other.netdev,
            other.ifindex,
            other.rdma_index,
            &other.driver,
        )
    }
}

/// What carries the RDMA packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// Ethernet: `RoCE`, iWARP, or a netdev without RDMA.
    Ethernet,
    /// InfiniBand.
    InfiniBand,
    /// Neither, as the kernel says of EFA, whose packets are of its own protocol: `Unknown` in `link_layer_show` of
    /// drivers/infiniband/core/sysfs.c.
    Other,
    /// Nobody says.
    Unknown,
}

impl LinkLayer {
    /// The spelling of `ports/N/link_layer`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::InfiniBand => "InfiniBand",
            Self::Other | Self::Unknown => "unknown",
        }
    }

    /// True if the port is read. InfiniBand ports are listed alone: on some boards they belong to a fabric manager, and each
    /// refused read is a line in the kernel's log [`node_exporter` 3434]. What nobody knows may be one of them.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Ethernet | Self::Other)
    }
}

/// Logical state of an RDMA port, `enum ib_port_state` of `include/rdma/ib_verbs.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PortState {
    Nop,
    Down,
    Init,
    Armed,
    Active,
    ActiveDefer,
}

impl PortState {
    /// From the kernel's number; `None` for one that this version does not know.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        [
            Self::Nop,
            Self::Down,
            Self::Init,
            Self::Armed,
            Self::Active,
            Self::ActiveDefer,
        ]
        .get(usize::try_from(number).ok()?)
        .copied()
    }

    /// The kernel's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nop => "NOP",
            Self::Down => "DOWN",
            Self::Init => "INIT",
            Self::Armed => "ARMED",
            Self::Active => "ACTIVE",
            Self::ActiveDefer => "ACTIVE_DEFER",
        }
    }
}

/// Place of a device on the PCI bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Pci {
    /// Domain, bus, device and function, as `0000:1a:00.0`.
    pub address: String,
    /// The link in use.
    pub current: Option<PcieLink>,
    /// The link that the device is capable of.
    pub max: Option<PcieLink>,
}

/// Speed and width of a `PCIe` link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PcieLink {
    /// Gigatransfers per second and lane.
    pub gigatransfers: f32,
    /// Lanes.
    pub width: u8,
}

/// A GPU near a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// PCI address.
    pub address: String,
    /// PCI bridges between NIC and GPU, counted over their nearest common ancestor; `None` if they meet only in the
    /// CPU (different root ports).
    pub bridges: Option<u8>,
}

/// One entry of a port's GID table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gid {
    /// Position in the table, `NCCL_IB_GID_INDEX`.
    pub index: u32,
    /// The address, as the kernel prints it.
    pub gid: String,
    /// How it is carried.
    pub kind: GidType,
    /// The netdev that it came from.
    pub netdev: Option<String>,
}

/// How packets of a GID are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidType {
    /// InfiniBand, or `RoCE` v1 (Ethertype 0x8915).
    V1,
    /// `RoCE` v2 (UDP port 4791).
    V2,
    /// Not known.
    Unknown,
}
