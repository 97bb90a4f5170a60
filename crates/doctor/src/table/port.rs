//! Link, MTU, PCI Express.

use crate::check::{Area, Check, Severity};

const SETTINGS: &str = "ethtool netlink LINKMODES_GET and FEC_GET (under rtnl); no right needed";
const PCI_FILES: &str = "sysfs of the PCI function and of the bridges above it; no right needed";

pub(crate) const LINK_DOWN: Check = Check {
    id: "link_down",
    title: "A rail has no link",
    area: Area::Link,
    severity: Severity::Warning,
    reads: "operstate of the netdev (source `link`); no right needed",
    fires: "A RoCE port has no carrier, and another of the same kind and board has.",
    why: "A collective that counts on the rail does not start, or uses the others for its share.",
    advice: "Look at why the link is down: cable, module, switch port, administrative state. A port that is not used on purpose can be left out of the configuration (`devices.exclude`).",
    commands: &[
        "ethtool {netdev}",
        "ip link set {netdev} up",
        "ethtool -m {netdev}",
    ],
};

pub(crate) const LINK_SLOW: Check = Check {
    id: "link_slow",
    title: "The link is slower than it could be",
    area: Area::Link,
    severity: Severity::Error,
    reads: SETTINGS,
    fires: "The speed is below the policy's; without one, below that of most rails of its kind, or, of a lone rail, below the best that the port supports.",
    why: "The collective runs at the speed of the slowest rail.",
    advice: "Look at both ends for a forced speed or an autonegotiation that is on at one end alone; then at the cable or module, which may have fewer lanes or a lower rate; then at the switch port's breakout.",
    commands: &[
        "ethtool {netdev}",
        "ethtool -s {netdev} autoneg on",
        "mlxlink -d {device} -m",
    ],
};

pub(crate) const LINK_LANES: Check = Check {
    id: "link_lanes",
    title: "The link uses fewer lanes than its siblings",
    area: Area::Link,
    severity: Severity::Warning,
    reads: SETTINGS,
    fires: "A rail uses fewer lanes than most rails of its kind.",
    why: "A lane that did not come up halves the speed, or needs a signal twice as fast on the others.",
    advice: "Reseat or replace the cable or module; check the breakout of the switch port.",
    commands: &["ethtool {netdev}", "ethtool -m {netdev}"],
};

pub(crate) const FEC_OFF: Check = Check {
    id: "fec_off",
    title: "Forward error correction is off on a fast link",
    area: Area::Link,
    severity: Severity::Error,
    reads: SETTINGS,
    fires: "FEC is off and a lane carries 50 Gb/s or more.",
    why: "Lanes of 50 Gb/s and above (PAM4) make errors all the time and are specified with Reed-Solomon FEC only (IEEE 802.3cd, 802.3ck). Without it frames are lost continuously.",
    advice: "Let autonegotiation choose, or set RS at both ends.",
    commands: &[
        "ethtool --set-fec {netdev} encoding rs",
        "ethtool --show-fec {netdev}",
    ],
};

pub(crate) const FEC_DIFFERS: Check = Check {
    id: "fec_differs",
    title: "FEC differs between the rails",
    area: Area::Link,
    severity: Severity::Warning,
    reads: SETTINGS,
    fires: "A rail has another FEC mode than most rails of its kind with the same speed.",
    why: "It corrects less, or takes longer: errors or latency differ by rail. It also tells of a cable of another kind, or of a switch port that is set otherwise.",
    advice: "Compare the cable and the switch port with those of the other rails.",
    commands: &["ethtool --show-fec {netdev}"],
};

pub(crate) const MTU_SMALL: Check = Check {
    id: "mtu_small",
    title: "The netdev's MTU is too small for the RDMA MTU",
    area: Area::Link,
    severity: Severity::Warning,
    reads: "MTU of the netdev; the RDMA MTU follows from it (iboe_get_mtu of include/rdma/ib_addr.h); no right needed",
    fires: "The RDMA MTU that the kernel derives from the netdev's is below the policy's (4096 without one).",
    why: "RoCE packets of 1024 bytes instead of 4096 are four times as many for the same data: more packets to process, more headers, 6 % less throughput at best. Two ends with different RDMA MTUs may not talk at all.",
    advice: "Set 9000 (4200 is enough) on the netdev, the VLANs on it and every switch port of the path.",
    commands: &["ip link set dev {netdev} mtu 9000"],
};

pub(crate) const MTU_RAILS_DIFFER: Check = Check {
    id: "mtu_rails_differ",
    title: "The MTU differs between the rails",
    area: Area::Link,
    severity: Severity::Warning,
    reads: "MTU of the netdev; no right needed",
    fires: "A rail has another MTU than most rails of its kind.",
    why: "Small messages pass and large ones fail, or a path between two rails falls back to the smaller.",
    advice: "Set the same on all rails.",
    commands: &["ip link set dev {netdev} mtu {mtu}"],
};

pub(crate) const PCIE_NARROW: Check = Check {
    id: "pcie_narrow",
    title: "The PCIe link has fewer lanes than it could",
    area: Area::Pci,
    severity: Severity::Error,
    reads: PCI_FILES,
    fires: "current_link_width is below max_link_width of the NIC and of the bridge above it, at the NIC or at a bridge on its way to the root.",
    why: "Half the lanes are half the bandwidth: the NIC cannot put what it receives into memory, fills its buffers and pauses the switch.",
    advice: "Reseat the card or riser, clean the contacts, check the bifurcation in the firmware setup. A width that comes back after a reboot and goes again is a bad contact.",
    commands: &[
        "lspci -vvs {hop} | grep -E 'LnkCap|LnkSta'",
        "dmesg | grep -i -E 'pcie|aer'",
    ],
};

pub(crate) const PCIE_SLOW: Check = Check {
    id: "pcie_slow",
    title: "The PCIe link is slower than it could be",
    area: Area::Pci,
    severity: Severity::Error,
    reads: PCI_FILES,
    fires: "current_link_speed is below what both ends of the link are capable of, at the NIC or at a bridge on its way to the root.",
    why: "A generation less is half the bandwidth: the NIC cannot put what it receives into memory, fills its buffers and pauses the switch.",
    advice: "Look for a speed that is limited in the firmware setup, a riser of an older generation, and PCIe errors in the kernel's log: a link that makes errors trains down.",
    commands: &[
        "lspci -vvs {hop} | grep -E 'LnkCap|LnkSta'",
        "dmesg | grep -i -E 'pcie|aer'",
    ],
};

pub(crate) const PCIE_SLOT: Check = Check {
    id: "pcie_slot",
    title: "The slot is capable of less than the NIC",
    area: Area::Pci,
    severity: Severity::Warning,
    reads: PCI_FILES,
    fires: "The bridge above the NIC is capable of fewer lanes or a lower speed than the NIC, and that is less than the line's rate.",
    why: "The NIC sits in a slot of an older generation or of fewer lanes. It will never carry its line.",
    advice: "Move the card to another slot, or accept it and leave the rail out of large jobs.",
    commands: &["lspci -tv", "lspci -vvs {hop} | grep LnkCap"],
};

pub(crate) const PCIE_BELOW_LINE: Check = Check {
    id: "pcie_below_line",
    title: "PCIe carries less than the line",
    area: Area::Pci,
    severity: Severity::Error,
    reads: "sysfs of the PCI function and the link's speed; no right needed",
    fires: "The PCIe link in use carries less than the Ethernet link, headers and encoding taken off.",
    why: "At full line rate the NIC receives more than it can hand on. It pauses the switch, and the pause spreads into the fabric.",
    advice: "See `pcie_narrow`, `pcie_slow` and `pcie_slot`. If the slot cannot do more, a slower line speed at least keeps the pause away from the fabric.",
    commands: &["lspci -vvs {pci} | grep -E 'LnkCap|LnkSta'"],
};

pub(crate) const PCIE_ERRORS: Check = Check {
    id: "pcie_errors",
    title: "The PCIe link makes errors",
    area: Area::Pci,
    severity: Severity::Warning,
    reads: "the kernel's counts of the NIC's and its slot's PCIe errors (source `aer`), which are not there where the platform's firmware keeps error reporting to itself; rx_pci_signal_integrity and tx_pci_signal_integrity of mlx5; no right needed",
    fires: "While the node is looked at, the NIC, its firmware or its slot counts an error a second that is corrected, on a link of up to 32 GT/s, or any that is not; or a fatal one was counted since the device was found on the bus. The bit error rate of 10^-12 that the specification allows is one error in two seconds at most.",
    why: "What is corrected is sent again: the link carries less than its width and speed say, the NIC waits for memory and pauses the switch. What is not corrected loses a transaction, or the device.",
    advice: "Errors that the NIC counts came from the slot, errors of the slot came from the NIC. Reseat the card and the riser, clean the contacts, look for a firmware of the card; BadTLP and BadDLLP are bits that flipped, RxErr and a timeout of the replay a bad contact.",
    commands: &[
        "grep . /sys/bus/pci/devices/{pci}/aer_dev_* /sys/bus/pci/devices/{pci}/../aer_dev_*",
        "lspci -vvs {pci} | grep -E 'LnkSta|CESta|UESta'",
        "dmesg | grep -i -E 'pcie|aer'",
    ],
};

pub(crate) const PCIE_PAYLOAD: Check = Check {
    id: "pcie_payload",
    title: "The PCIe payload is small",
    area: Area::Pci,
    severity: Severity::Warning,
    reads: "device control in the PCI configuration space (file `config`; 64 bytes without a right, the rest with CAP_SYS_ADMIN)",
    fires: "The NIC uses a payload of 128 bytes, and it and every bridge above it could take 256.",
    why: "Each packet on PCIe has a header of about 24 bytes: at 128 bytes of payload a sixth of the bandwidth is headers. At 400 Gb/s that is the difference between line rate and pause.",
    advice: "Boot with pci=pcie_bus_safe or pci=pcie_bus_perf, or set it in the firmware setup.",
    commands: &["lspci -vvs {pci} | grep -E 'MaxPayload|MaxReadReq'"],
};

pub(crate) const PCIE_READ_REQUEST: Check = Check {
    id: "pcie_read_request",
    title: "The PCIe read request is small",
    area: Area::Pci,
    severity: Severity::Warning,
    reads: "device control in the PCI configuration space (file `config`; 64 bytes without a right, the rest with CAP_SYS_ADMIN)",
    fires: "The NIC asks for at most 256 bytes at once, on a link of 100 Gb/s or more.",
    why: "What the NIC sends it reads from memory first. Small requests leave it waiting for answers: sending stays below the line.",
    advice: "Set 4096 (as the vendors' guides do), where the platform has no erratum against it.",
    commands: &[
        "lspci -vvs {pci} | grep MaxReadReq",
        "setpci -s {pci} CAP_EXP+8.w=5000:7000",
    ],
};

pub(crate) const ACS_REDIRECT: Check = Check {
    id: "acs_redirect",
    title: "Traffic between NIC and GPU is sent by way of the root",
    area: Area::Pci,
    severity: Severity::Warning,
    reads: "access control services in the extended configuration space of the bridges (file `config`, CAP_SYS_ADMIN)",
    fires: "A PCIe switch port between the NIC and a GPU that shares its switch redirects requests or completions.",
    why: "GPUDirect then crosses the root complex twice instead of the switch: half the bandwidth and more latency, and the CPU's PCIe port is the bottleneck for every NIC below it.",
    advice: "On bare metal switch ACS redirection off at the bridges (after each boot). In virtual machines it is needed for isolation: use ATS instead.",
    commands: &["setpci -s {hop} ECAP_ACS+6.w=0000"],
};

pub(crate) const IOMMU_TRANSLATES: Check = Check {
    id: "iommu_translates",
    title: "The IOMMU translates every access of the NIC",
    area: Area::Pci,
    severity: Severity::Warning,
    reads: "type of the IOMMU group in sysfs; no right needed",
    fires: "The type is DMA or DMA-FQ, and the node has GPUs.",
    why: "Each mapping costs an entry of a small cache in the IOMMU. Misses stall DMA: the NIC pauses the switch though PCIe is wide enough, and GPUDirect may not work at all.",
    advice: "Boot with iommu=pt (and intel_iommu=on or amd_iommu=on as before).",
    commands: &["grubby --update-kernel=ALL --args=iommu=pt"],
};
