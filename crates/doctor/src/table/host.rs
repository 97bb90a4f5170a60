//! `GPUDirect`, versions, temperature, optics.

use crate::check::{Area, Check, Severity};

pub(crate) const GPUDIRECT_MISSING: Check = Check {
    id: "gpudirect_missing",
    title: "NICs cannot reach GPU memory",
    area: Area::Gpu,
    severity: Severity::Error,
    reads: "/sys/module and the kernel's release; no right needed",
    fires: "The proprietary NVIDIA driver is loaded, neither nvidia_peermem nor nv_peer_mem is, and the node has RoCE ports. Not with the open kernel modules of version 515 or later, which hand out DMA-BUF, on a kernel of 5.12 or later, which takes it.",
    why: "Every transfer is copied through host memory: half the bandwidth or less, and CPU memory becomes the bottleneck. NCCL says \"GPU Direct RDMA Disabled\" once, and goes on.",
    advice: "Load the module, or install the open kernel modules, with which NCCL uses DMA-BUF (kernel 5.12 or later).",
    commands: &[
        "modprobe nvidia_peermem",
        "echo nvidia_peermem > /etc/modules-load.d/nvidia-peermem.conf",
    ],
};

pub(crate) const DMA_BUF_NOT_BUILT: Check = Check {
    id: "dma_buf_not_built",
    title: "The kernel was built without what AMD GPUs need to be reached by NICs",
    area: Area::Gpu,
    severity: Severity::Warning,
    reads: "the options of the running kernel: /proc/config.gz, /boot/config-RELEASE or /lib/modules/RELEASE/config; no right needed",
    fires: "The amdgpu driver is loaded, no peer-memory client of a driver of the OFED kind is there, and the kernel was built without CONFIG_PCI_P2PDMA or without CONFIG_DMABUF_MOVE_NOTIFY.",
    why: "RCCL and perftest use DMA-BUF only if both are there: every transfer is copied through host memory.",
    advice: "Boot a kernel that has both, or install a driver of the OFED kind with amdgpu's peer memory.",
    commands: &["grep -E 'PCI_P2PDMA|DMABUF_MOVE_NOTIFY' /boot/config-$(uname -r)"],
};

pub(crate) const GPUDIRECT_UNUSED: Check = Check {
    id: "gpudirect_unused",
    title: "GPU memory is not registered with RDMA while RoCE is busy",
    area: Area::Gpu,
    severity: Severity::Note,
    reads: "/sys/kernel/mm/memory_peers of drivers of the OFED kind; elsewhere not known",
    fires: "A peer-memory module is loaded, no byte of GPU memory is registered, and a RoCE port uses a tenth of its line.",
    why: "A job moves its data through host memory although it need not. It may be meant: storage, a job on CPUs, or DMA-BUF, which does not show here.",
    advice: "Look in the job's log for NCCL's line on GPU Direct RDMA; check NCCL_NET_GDR_LEVEL and NCCL_DMABUF_ENABLE.",
    commands: &["grep -r . /sys/kernel/mm/memory_peers"],
};

pub(crate) const GPU_FAR: Check = Check {
    id: "gpu_far",
    title: "The nearest GPU is on another NUMA node",
    area: Area::Gpu,
    severity: Severity::Note,
    reads: "PCI tree and NUMA distances in sysfs; no right needed",
    fires: "The node has GPUs, and the one nearest to the NIC is at a NUMA distance above 10.",
    why: "GPUDirect crosses the link between the sockets, which is slower than PCIe and shared with everything else; NCCL does not use it by default at that distance.",
    advice: "Use this NIC for storage or management, or move it to a slot beside a GPU.",
    commands: &["nvidia-smi topo -m", "lspci -tv"],
};

pub(crate) const FIRMWARE_DIFFERS: Check = Check {
    id: "firmware_differs",
    title: "Firmware differs between NICs of one board",
    area: Area::Health,
    severity: Severity::Warning,
    reads: "fw_ver and board_id of the RDMA device; no right needed",
    fires: "A rail has another firmware version than most rails of its driver and board.",
    why: "Congestion control is in the firmware: rails behave differently under load, and what was tested is not what runs.",
    advice: "Bring all NICs of the node to one version.",
    commands: &["mlxfwmanager -d {pci} --query", "flint -d {pci} query"],
};

pub(crate) const DRIVER_DIFFERS: Check = Check {
    id: "driver_differs",
    title: "A rail has another driver than its siblings",
    area: Area::Health,
    severity: Severity::Warning,
    reads: "driver and module version in sysfs; no right needed",
    fires: "Rails of one driver report different module versions.",
    why: "A module that was replaced without a reload leaves devices on the old one.",
    advice: "Reload the driver, or reboot.",
    commands: &["ethtool -i {netdev}"],
};

pub(crate) const MODULE_HOT: Check = Check {
    id: "module_hot",
    title: "The optical module is hot",
    area: Area::Health,
    severity: Severity::Warning,
    reads: "hwmon of the NIC, or the module's memory (source `module`, CAP_NET_ADMIN)",
    fires: "The module reports 75 °C or more.",
    why: "Modules are specified up to 70 °C of case temperature as a rule. Beyond it lasers age fast and bit errors rise; some modules switch off.",
    advice: "Check the airflow: fans, blanking plates, dust, the neighbours' exhaust.",
    commands: &["ethtool -m {netdev}", "sensors"],
};

pub(crate) const CHIP_HOT: Check = Check {
    id: "chip_hot",
    title: "The NIC is hot",
    area: Area::Health,
    severity: Severity::Warning,
    reads: "hwmon of the NIC (source `hwmon`); no right needed",
    fires: "The chip reports 100 °C or more.",
    why: "NICs throttle or shut down a few degrees above; drivers log a warning at 105 °C or 110 °C.",
    advice: "Check the airflow: fans, blanking plates, dust.",
    commands: &["sensors", "mget_temp -d {pci}"],
};

pub(crate) const OPTICS_DIM: Check = Check {
    id: "optics_dim",
    title: "A lane receives too little light",
    area: Area::Health,
    severity: Severity::Warning,
    reads: "the module's memory (source `module`, CAP_NET_ADMIN)",
    fires: "A lane receives less than 0.1 mW (-10 dBm), or a tenth of the brightest lane of the module, while the module sends.",
    why: "The lane is at the edge of its receiver: bit errors, FEC corrections, sooner or later a link that flaps.",
    advice: "Clean both ends of the fibre, then look at the module at the other end, which sends the light.",
    commands: &["ethtool -m {netdev}"],
};
