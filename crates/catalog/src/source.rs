//! The ways of asking the kernel.

use std::fmt;

/// One way of asking the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceKind {
    /// The driver's own statistics, `ethtool -S`. Under rtnl.
    Ethtool,
    /// RDMA counters of a port: `ports/N/hw_counters`, RDMA netlink `STAT_GET`.
    HwCounters,
    /// RDMA counters of a whole device: `/sys/class/infiniband/DEVICE/hw_counters`.
    DeviceCounters,
    /// InfiniBand performance-management counters: `ports/N/counters`. One firmware command a file on mlx5.
    PortCounters,
    /// Carrier and its up and down counts. Never under rtnl.
    Link,
    /// Speed, lanes, pause, FEC by ethtool netlink. Under rtnl.
    Settings,
    /// PFC, ETS and the APP table by DCB netlink. Under rtnl.
    Dcb,
    /// Temperatures by hwmon. Mostly one firmware command a sensor, never under rtnl.
    Hwmon,
    /// PCI Express errors of the NIC and of its slot, by Advanced Error Reporting. Memory of the kernel, never under rtnl.
    Aer,
    /// Temperature, voltage and optical power of the module, by its memory. Under rtnl, and slow; needs `CAP_NET_ADMIN`.
    Module,
    /// Asynchronous events of the RDMA device, by libibverbs. Needs write access to the device's uverbs file.
    Verbs,
    /// Counters that queue pairs have of their own, by RDMA netlink `STAT_GET` of queue pairs. Only where an administrator has
    /// the kernel bind them; one firmware command for each group of queue pairs that are counted together.
    QpCounters,
}

impl SourceKind {
    /// Every source, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::Ethtool,
        Self::HwCounters,
        Self::DeviceCounters,
        Self::PortCounters,
        Self::Link,
        Self::Settings,
        Self::Dcb,
        Self::Hwmon,
        Self::Aer,
        Self::Module,
        Self::Verbs,
        Self::QpCounters,
    ];

    /// The name that labels, the API and the configuration use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ethtool => "ethtool",
            Self::HwCounters => "hw_counters",
            Self::DeviceCounters => "device_counters",
            Self::PortCounters => "port_counters",
            Self::Link => "link",
            Self::Settings => "settings",
            Self::Dcb => "dcb",
            Self::Hwmon => "hwmon",
            Self::Aer => "aer",
            Self::Module => "module",
            Self::Verbs => "verbs",
            Self::QpCounters => "qp_counters",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
