//! PFC, buffers, marking, classes, ECN.

use crate::check::{Area, Check, Severity};

const DCB: &str = "DCB netlink (source `dcb`); no right needed";
const FILES_OF_OFED: &str =
    "files of drivers of the OFED kind below /sys/class/net/NETDEV; elsewhere not known";

pub(crate) const PFC_OFF: Check = Check {
    id: "pfc_off",
    title: "PFC is on for no priority",
    area: Area::Pfc,
    severity: Severity::Error,
    reads: DCB,
    fires: "A RoCE port in use has an empty PFC mask. Not where the policy says `lossy`.",
    why: "Nothing keeps the switch from overrunning the NIC, nor the NIC from overrunning the switch: under incast packets are lost, and a RoCE NIC answers a lost packet by sending everything behind it again. Throughput falls to a fraction, long before any counter of errors is large.",
    advice: "Switch PFC on for the one priority that carries RoCE, on this port and on the switch port. If the fabric is meant to be lossy, say so in the policy (`congestion = \"lossy\"`).",
    commands: &[
        "dcb pfc set dev {netdev} prio-pfc all:off {priority}:on",
        "mlnx_qos -i {netdev} --pfc {pfc}",
    ],
};

pub(crate) const PFC_ON_ALL: Check = Check {
    id: "pfc_on_all",
    title: "PFC is on for all eight priorities",
    area: Area::Pfc,
    severity: Severity::Error,
    reads: DCB,
    fires: "The PFC mask is 0xff, and the policy does not say that it should be.",
    why: "One paused job stops everything on the link: storage, ssh, the CNPs that would end the congestion, and the routing protocol. Buffers for eight lossless priorities leave too little headroom for any of them, and a pause storm has eight ways to spread.",
    advice: "Leave PFC on for the RoCE priority alone.",
    commands: &[
        "dcb pfc set dev {netdev} prio-pfc all:off {priority}:on",
        "mlnx_qos -i {netdev} --pfc {pfc}",
    ],
};

pub(crate) const PFC_TOO_MANY: Check = Check {
    id: "pfc_too_many",
    title: "PFC is on for more priorities than are lossless by the plan",
    area: Area::Pfc,
    severity: Severity::Warning,
    reads: DCB,
    fires: "The PFC mask has more bits than the policy allows; without one, more than one bit.",
    why: "Every further lossless priority takes headroom from the first and can be stopped by the fabric. What shares it with RoCE by accident is stopped with it.",
    advice: "Take PFC off the priorities that carry no RoCE, or name them in the policy (`lossless`).",
    commands: &[
        "dcb pfc set dev {netdev} prio-pfc all:off {priority}:on",
        "mlnx_qos -i {netdev} --pfc {pfc}",
    ],
};

pub(crate) const PFC_OTHER_PRIORITY: Check = Check {
    id: "pfc_other_priority",
    title: "PFC is on for another priority than planned",
    area: Area::Pfc,
    severity: Severity::Warning,
    reads: DCB,
    fires: "The PFC mask lacks a priority that the policy names; without one, its only priority is neither 3 nor 4.",
    why: "PFC works only where both ends of every link agree on the priority. A host that is lossless on another priority than its switch is lossy.",
    advice: "Set the priority that the switches use, or name this one in the policy (`lossless`).",
    commands: &[
        "dcb pfc set dev {netdev} prio-pfc all:off {priority}:on",
        "mlnx_qos -i {netdev} --pfc {pfc}",
    ],
};

pub(crate) const PFC_RAILS_DIFFER: Check = Check {
    id: "pfc_rails_differ",
    title: "PFC differs between the rails",
    area: Area::Pfc,
    severity: Severity::Error,
    reads: DCB,
    fires: "A rail has another PFC mask than most rails of its kind.",
    why: "A collective is as fast as its slowest rail. The rail that is set up otherwise loses packets, or pauses what the others do not.",
    advice: "Set this rail like the others, and find out why it was not: a service that ran before the NIC was there, a NIC that was replaced.",
    commands: &[
        "dcb pfc show dev {netdev}",
        "dcb pfc set dev {netdev} prio-pfc all:off {priority}:on",
    ],
};

pub(crate) const PFC_PEER_DIFFERS: Check = Check {
    id: "pfc_peer_differs",
    title: "The switch announces another PFC mask than the port has",
    area: Area::Pfc,
    severity: Severity::Warning,
    reads: "PEER_PFC by DCB netlink, where the NIC's firmware listens to LLDP; no right needed",
    fires: "LLDP of the switch port tells a PFC mask that is not the port's.",
    why: "Each end pauses priorities that the other does not hold: one direction of the link is lossy.",
    advice: "Set both ends of the link alike.",
    commands: &["dcb pfc show dev {netdev}", "lldptool -t -n -i {netdev} -V PFC"],
};

pub(crate) const PAUSE_BESIDE_PFC: Check = Check {
    id: "pause_beside_pfc",
    title: "Global pause is on",
    area: Area::Pfc,
    severity: Severity::Error,
    reads: "ethtool netlink PAUSE_GET (source `settings`); no right needed",
    fires: "Pause of the whole link (802.3x) is on, received or sent, while PFC is on or is meant to be. Not where the policy says `lossy`.",
    why: "Global pause and PFC exclude each other on a link. Where both are configured the NIC uses one of them, often global pause, which stops every priority alike, CNPs and management included.",
    advice: "Switch global pause off, then set PFC again: some drivers drop it when global pause is set.",
    commands: &["ethtool -A {netdev} rx off tx off"],
};

pub(crate) const STORM_PREVENTION_OFF: Check = Check {
    id: "storm_prevention_off",
    title: "PFC storm prevention is off",
    area: Area::Pfc,
    severity: Severity::Warning,
    reads: "ETHTOOL_PFC_PREVENTION_TOUT (source `settings`), mlx5 only; no right needed",
    fires: "The timeout reads 0 while PFC is on.",
    why: "A NIC whose receive pipeline stands still (a hung GPU, a PCIe fault) sends pause without an end, and the pause travels through the fabric and stops nodes that have nothing to do with it. With a timeout the NIC gives up pausing and drops instead.",
    advice: "Set the timeout to automatic (100 ms).",
    commands: &["ethtool --set-tunable {netdev} pfc-prevention-tout auto"],
};

pub(crate) const BUFFER_ZERO: Check = Check {
    id: "buffer_zero",
    title: "The lossless priority has no receive buffer",
    area: Area::Pfc,
    severity: Severity::Error,
    reads: "DCB_BUFFER by DCB netlink, mlx5; no right needed",
    fires: "The buffer that a priority with PFC is mapped to has 0 bytes.",
    why: "PFC needs room for what is under way when the pause is sent. Without a buffer the frames are dropped, pause or not.",
    advice: "Give the priority a buffer that holds two round trips of the cable and two frames more; let the driver size it by giving the cable's length.",
    commands: &[
        "dcb buffer show dev {netdev}",
        "mlnx_qos -i {netdev} --cable_len 30",
    ],
};

pub(crate) const BUFFER_SMALL: Check = Check {
    id: "buffer_small",
    title: "The lossless receive buffer is too small for the cable",
    area: Area::Pfc,
    severity: Severity::Warning,
    reads: "DCB_BUFFER by DCB netlink, mlx5; speed and MTU of the netdev; no right needed. The cable's length is the policy's `cable_meters`, and counts as none without it",
    fires: "The buffer of a priority with PFC holds less than what is under way when the pause is sent, and one frame more: (301 + 2.16 a metre) bytes for each Gb/s, and 2.72 MTUs, as calculate_xoff of the mlx5 driver has it. Not of one that lossy priorities share, which is `buffer_shared`.",
    why: "Light takes 5 ns for a metre of fibre, and the switch some time to stop. What arrives meanwhile has no room and is dropped, although the priority is lossless.",
    advice: "Have the driver size the buffer by giving the cable's length, which it takes to be 7 m; or set the size.",
    commands: &[
        "dcb buffer show dev {netdev}",
        "mlnx_qos -i {netdev} --cable_len {meters}",
        "dcb buffer set dev {netdev} buffer-size {buffer}:{bytes}",
    ],
};

pub(crate) const BUFFER_SHARED: Check = Check {
    id: "buffer_shared",
    title: "The lossless priority shares its receive buffer with lossy ones",
    area: Area::Pfc,
    severity: Severity::Warning,
    reads: "DCB_BUFFER by DCB netlink, mlx5; no right needed",
    fires: "A priority with PFC and one without are mapped to the same buffer.",
    why: "A burst of lossy traffic fills the buffer whose room PFC counts on: RoCE is paused for packets that are not its own, or dropped.",
    advice: "Map the lossless priority to a buffer of its own.",
    commands: &["dcb buffer set dev {netdev} prio-buffer all:0 {priority}:1"],
};

pub(crate) const DCBX_NOT_HOST: Check = Check {
    id: "dcbx_not_host",
    title: "An LLDP agent may overwrite what the host sets",
    area: Area::Pfc,
    severity: Severity::Warning,
    reads: DCB,
    fires: "DCBX is managed by an LLDP agent in the NIC, not by the host.",
    why: "PFC, classes and the APP table come from the switch by LLDP: what a script sets on the host holds until the next announcement. A switch port that announces nothing, or something else, changes the host silently.",
    advice: "Have the host own DCB, or configure the switches to announce what is meant and leave it at that.",
    commands: &[
        "dcb dcbx set dev {netdev} host ieee",
        "mlxconfig -d {pci} set LLDP_NB_DCBX_P1=0 LLDP_NB_RX_MODE_P1=0",
    ],
};

pub(crate) const ROCE_ON_OTHER_PRIORITY: Check = Check {
    id: "roce_on_other_priority",
    title: "RoCE travels on a priority without PFC",
    area: Area::Pfc,
    severity: Severity::Error,
    reads: "bytes by priority and RDMA bytes over the window that was watched",
    fires: "RDMA moves more than 1 MB/s, less than half of it on the lossless priorities, and another priority carries as much.",
    why: "PFC, buffers and ECN are set up for a priority that RoCE does not use. This one mismatch is behind most of the fabrics that are \"lossless\" and lose packets.",
    advice: "Sent: mark the traffic (NCCL_IB_TC, the traffic class of the application) and have the port map the DSCP to the lossless priority. Received: have the port trust DSCP, and check that nothing on the way rewrites it.",
    commands: &[
        "dcb app show dev {netdev} dscp-prio",
        "dcb app add dev {netdev} dscp-prio {dscp}:{priority}",
        "mlnx_qos -i {netdev} --trust dscp",
    ],
};

pub(crate) const OTHERS_ON_LOSSLESS: Check = Check {
    id: "others_on_lossless",
    title: "The lossless priority carries traffic that is not RoCE",
    area: Area::Pfc,
    severity: Severity::Warning,
    reads: "bytes by priority and RDMA bytes over the window that was watched",
    fires: "A lossless priority carries a quarter more than all RDMA bytes of the port, and 1 % of the line more.",
    why: "TCP fills queues until packets are dropped. On a lossless priority they are not, so it fills the buffers of the whole path, and RoCE waits behind it.",
    advice: "Find what marks its packets with the DSCP of RoCE, or has no mark where the lossless priority is the default, and move it.",
    commands: &[
        "ethtool -S {netdev} | grep prio{priority}",
        "dcb app show dev {netdev}",
    ],
};

pub(crate) const TRUST_PCP: Check = Check {
    id: "trust_pcp",
    title: "The port looks at VLAN tags, not at DSCP",
    area: Area::Marking,
    severity: Severity::Error,
    reads: "APP table by DCB netlink on mlx5, qos/trust of drivers of the OFED kind, the trust table of kernel 6.1; elsewhere not known",
    fires: "The port trusts PCP, while PFC is meant for a priority other than 0 and its netdev has no VLAN with a RoCE v2 GID.",
    why: "RoCE without a VLAN tag then has priority 0, whatever its DSCP: it travels where there is no PFC, next to everything else.",
    advice: "Have the port trust DSCP and map the DSCP of RoCE to the lossless priority. Where VLAN tags carry the priority on purpose, RoCE has to use the GID of the VLAN.",
    commands: &[
        "dcb app add dev {netdev} dscp-prio {dscp}:{priority}",
        "mlnx_qos -i {netdev} --trust dscp",
    ],
};

pub(crate) const DSCP_NOT_LOSSLESS: Check = Check {
    id: "dscp_not_lossless",
    title: "The DSCP of RoCE does not lead to the lossless priority",
    area: Area::Marking,
    severity: Severity::Error,
    reads: DCB,
    fires: "The port trusts DSCP, and the DSCP of the policy leads to a priority without PFC; without one, no DSCP of the table leads to a priority with PFC.",
    why: "Marked as it should be, RoCE still travels on a lossy priority.",
    advice: "Map the DSCP to the lossless priority, at both ends.",
    commands: &[
        "dcb app replace dev {netdev} dscp-prio {dscp}:{priority}",
        "mlnx_qos -i {netdev} --dscp2prio set,{dscp},{priority}",
    ],
};

pub(crate) const DEFAULT_TOS: Check = Check {
    id: "default_tos",
    title: "RDMA connections are marked otherwise than planned by default",
    area: Area::Marking,
    severity: Severity::Warning,
    reads: "traffic_class of drivers of the OFED kind, default_roce_tos of rdma_cm (configfs; root)",
    fires: "The host gives RDMA connections that ask for nothing a DSCP that does not lead to a lossless priority. Not where the host sets none.",
    why: "Applications that do not set a traffic class themselves (most storage clients, perftest without -R --tos) send on a lossy priority.",
    advice: "Set the default to the DSCP of RoCE, shifted by two, with the ECN bits set to 2.",
    commands: &[
        "cma_roce_tos -d {device} -t {tos}",
        "echo {tos} > /sys/class/infiniband/{device}/tc/1/traffic_class",
    ],
};

pub(crate) const CNP_CLASS: Check = Check {
    id: "cnp_class",
    title: "CNPs wait behind the data that they are to slow down",
    area: Area::Marking,
    severity: Severity::Warning,
    reads: "DSCP of CNPs by ecn/roce_np/cnp_dscp of drivers of the OFED kind or by the policy, the APP table by DCB netlink; with VLANs and trust in their tags, ecn/roce_np/cnp_802p_prio",
    fires: "The DSCP of CNPs, or the priority in their VLAN tag where the port trusts it, leads to a lossless priority or into the class of one. Not where the policy has no use for CNPs.",
    why: "When the class is congested the CNP waits in the same queue, or is paused, and the sender goes on at full speed for that long. Congestion control then swings instead of settling.",
    advice: "Give CNPs a priority of their own (by custom DSCP 48, priority 6), in a strict class, at both ends.",
    commands: &[
        "dcb app add dev {netdev} dscp-prio 48:6",
        "echo 48 > /sys/class/net/{netdev}/ecn/roce_np/cnp_dscp",
    ],
};

pub(crate) const CLASS_STARVED: Check = Check {
    id: "class_starved",
    title: "The class of RoCE is given next to nothing",
    area: Area::Marking,
    severity: Severity::Error,
    reads: DCB,
    fires: "The class of a lossless priority shares the line by ETS and has 5 % or less of it.",
    why: "As soon as another class has something to send, RoCE is left with its share: on a 400G port with 1 %, 4 Gb/s. Alone on the line it is as fast as ever, so benchmarks do not show it.",
    advice: "Give the class the share that the job needs, at this port and in the switches.",
    commands: &[
        "dcb ets show dev {netdev}",
        "dcb ets set dev {netdev} tc-bw all:0 0:10 {class}:90",
    ],
};

pub(crate) const CLASS_SHARED: Check = Check {
    id: "class_shared",
    title: "RoCE shares its traffic class with lossy priorities",
    area: Area::Marking,
    severity: Severity::Warning,
    reads: DCB,
    fires: "A priority with PFC and one without are in the same traffic class, and the port has more than one class.",
    why: "The class has one queue. When the fabric pauses the lossless priority, what is lossy in the queue waits with it; and lossy bursts delay RoCE.",
    advice: "Give each priority with PFC a class of its own.",
    commands: &[
        "dcb ets show dev {netdev}",
        "dcb ets set dev {netdev} prio-tc all:0 {priority}:1",
    ],
};

pub(crate) const ECN_NP_OFF: Check = Check {
    id: "ecn_np_off",
    title: "Marks are not answered with CNPs",
    area: Area::Ecn,
    severity: Severity::Error,
    reads: FILES_OF_OFED,
    fires: "The notification point is off on a lossless priority, and the policy says `dcqcn`.",
    why: "The switches mark, this node receives the marks, and tells no sender. Queues grow until PFC stops them: the fabric is paused instead of slowed down.",
    advice: "Switch the notification point on for the priority, on every node.",
    commands: &["echo 1 > /sys/class/net/{netdev}/ecn/roce_np/enable/{priority}"],
};

pub(crate) const ECN_RP_OFF: Check = Check {
    id: "ecn_rp_off",
    title: "CNPs do not slow down this node",
    area: Area::Ecn,
    severity: Severity::Error,
    reads: FILES_OF_OFED,
    fires: "The reaction point is off on a lossless priority, and the policy says `dcqcn`.",
    why: "Every other sender slows down when the fabric is congested, and this one takes what they leave, until PFC stops them all.",
    advice: "Switch the reaction point on for the priority, on every node.",
    commands: &["echo 1 > /sys/class/net/{netdev}/ecn/roce_rp/enable/{priority}"],
};

pub(crate) const CNP_DSCP: Check = Check {
    id: "cnp_dscp",
    title: "CNPs are marked otherwise than planned",
    area: Area::Ecn,
    severity: Severity::Warning,
    reads: FILES_OF_OFED,
    fires: "The DSCP that the NIC gives its CNPs is not the policy's.",
    why: "The switches put CNPs with an unknown DSCP into the default queue, where they wait behind everything and may be dropped.",
    advice: "Set the DSCP of the plan.",
    commands: &["echo {dscp} > /sys/class/net/{netdev}/ecn/roce_np/cnp_dscp"],
};
