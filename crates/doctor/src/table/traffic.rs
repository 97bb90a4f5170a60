//! Verdicts on traffic.

use crate::check::{Area, Check, Severity};

const NOTHING: &[&str] = &[];

pub(crate) const FABRIC_PAUSES: Check = Check {
    id: "fabric_pauses",
    title: "The fabric holds this node back",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "pause received and sent, utilization",
    fires: "A priority is stopped by the fabric for 5 % of the time or more, and four times as long as this node stops the fabric.",
    why: "The switch forbids this node to send: congestion, or a receiver that is too slow, is behind the switch. Nothing on this node is at fault.",
    advice: "Find where the pause begins: the port whose node sends pause and receives none (`host_is_slow` there). Follow the pause through the switches' counters. If no node sends it, the fabric itself is congested: look at ECN thresholds, ECMP and oversubscription.",
    commands: NOTHING,
};

pub(crate) const HOST_IS_SLOW: Check = Check {
    id: "host_is_slow",
    title: "This node takes less than the line brings",
    area: Area::Traffic,
    severity: Severity::Error,
    reads: "pause sent and received; waiting on PCIe, drops for want of buffers, marks that the NIC made itself",
    fires: "This node stops the switch for 2 % of the time or more, and four times as long as it is stopped.",
    why: "What the NIC receives it cannot put into memory fast enough. Its pause spreads into the fabric, and other nodes' jobs wait for this one.",
    advice: "Look at PCIe (`pcie_narrow`, `pcie_slow`, `pcie_below_line`, `iommu_translates`), at the NUMA node and memory bandwidth that the job uses, at more queue pairs and memory regions than the NIC caches, and for a hung GPU. Drain the node if the fabric suffers.",
    commands: NOTHING,
};

pub(crate) const PAUSE_ON_LOSSY: Check = Check {
    id: "pause_on_lossy",
    title: "Priorities are paused that are not meant to be lossless",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "pause by priority, PFC mask, policy",
    fires: "A priority outside the policy's is paused, or PFC is on for so many priorities that they cannot be meant and others than 3 and 4 are paused.",
    why: "What shares the link with the job is stopped with it: storage, management, CNPs.",
    advice: "Take PFC off these priorities (`pfc_too_many`, `pfc_on_all`), at both ends.",
    commands: NOTHING,
};

pub(crate) const PAUSE_WITHOUT_ECN: Check = Check {
    id: "pause_without_ecn",
    title: "The fabric pauses, and nobody is told to slow down",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "pause received, CNPs received, marks, packets sent",
    fires: "A priority is stopped for 2 % of the time while this node sends, and hardly any CNP comes: fewer than one in 100,000 packets. Not where the policy says otherwise than `dcqcn`.",
    why: "Congestion control does not work on the path, and PFC alone holds the traffic: congestion spreads to flows that have no part in it.",
    advice: "Check that the switches mark on the queue of the RoCE priority, with thresholds below those of PFC; that RoCE is in that queue (`roce_on_other_priority`, `trust_pcp`); and that receivers answer marks (`ecn_np_off`).",
    commands: NOTHING,
};

pub(crate) const ECN_THRESHOLD_LOW: Check = Check {
    id: "ecn_threshold_low",
    title: "Packets are marked although there is room",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "marks, packets and utilization received, pause of both directions",
    fires: "A hundredth of the received packets is marked or more, the port receives less than half of its line, and nothing is paused.",
    why: "Senders slow down for queues that are not full: the line is never filled.",
    advice: "Raise the lower ECN threshold (Kmin) of the switches, or lower the probability at the upper one; look for short bursts that fill the queue for moments.",
    commands: NOTHING,
};

pub(crate) const CE_WITHOUT_CNP: Check = Check {
    id: "ce_without_cnp",
    title: "Marks arrive and no CNP is sent",
    area: Area::Traffic,
    severity: Severity::Error,
    reads: "marks received, CNPs sent",
    fires: "Ten marked packets a second or more arrive, and not one CNP leaves. Not where the policy says otherwise than `dcqcn`.",
    why: "The notification point of this NIC is off: senders are not told, and PFC has to stop them.",
    advice: "Switch it on (`ecn_np_off`), for the priority that the marked packets have.",
    commands: NOTHING,
};

pub(crate) const CNP_IGNORED: Check = Check {
    id: "cnp_ignored",
    title: "CNPs arrive and are ignored",
    area: Area::Traffic,
    severity: Severity::Error,
    reads: "CNPs handled and ignored",
    fires: "A hundredth of the received CNPs or more is ignored, and at least a hundred a second.",
    why: "This node does not slow down when the fabric asks. Others do, and wait for it.",
    advice: "Switch the reaction point on (`ecn_rp_off`) for the priority of the data; see that CNPs arrive on the priority that the NIC expects.",
    commands: NOTHING,
};

pub(crate) const CNP_AT_MAXIMUM: Check = Check {
    id: "cnp_at_maximum",
    title: "Flows receive CNPs as fast as they can be sent",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "CNPs received, queue pairs in use as the driver counts them or else of the device as the kernel does (RDMA netlink, without a word to the driver), the NIC's least time between CNPs",
    fires: "Each queue pair receives at least half of the CNPs that one flow can get: one each 50 us, or as the NIC is set.",
    why: "The flows are driven down to their lowest rate and held there: the congestion is not of moments but permanent.",
    advice: "Look for a receiver with too many senders at once (incast) and for paths that many flows share by ECMP; compare the rate of recovery (rp_time_reset, rp_ai_rate) with other nodes.",
    commands: NOTHING,
};

pub(crate) const TIMEOUTS_WITHOUT_LOSS: Check = Check {
    id: "timeouts_without_loss",
    title: "Requests get no answer, and nothing is lost here",
    area: Area::Traffic,
    severity: Severity::Error,
    reads: "acknowledge timeouts, exceeded retries, sequence errors, drops, errors of the link, pause",
    fires: "Requests time out, while no packet is out of sequence, dropped or damaged at this port, its link is steady, and it is not held by pause.",
    why: "Packets leave and nothing comes back: UDP port 4791 is blocked on the way (an ACL, a firewall, a security group), or there is no route for them; ping works all the same.",
    advice: "Compare a peer in the same subnet with one behind a router. Look at ACLs for UDP 4791 in both directions, at the route and the gateway's neighbour entry of this rail (`source_route_missing`, `neighbour_failed`), and at the GID index (`gid_index_differs`).",
    commands: NOTHING,
};

pub(crate) const REORDERING: Check = Check {
    id: "reordering",
    title: "Packets arrive in another order than they were sent",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "packets out of sequence, duplicates, drops and errors of the link",
    fires: "Ten packets a second or more are out of sequence, a tenth as many come twice, and nothing is dropped or damaged at this port.",
    why: "A NIC that expects order takes a late packet for a lost one and has everything behind it sent again: the retransmissions are the duplicates.",
    advice: "Switch packet spraying or adaptive routing off for these NICs, or switch out-of-order receive on at both ends; look for a path that flaps between two routes.",
    commands: NOTHING,
};

pub(crate) const LOSS_ELSEWHERE: Check = Check {
    id: "loss_elsewhere",
    title: "Packets are lost on the way to this node",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "packets out of sequence, duplicates, drops and errors of the link",
    fires: "Ten packets a second or more are missing, few come twice, and nothing is dropped or damaged at this port.",
    why: "They were lost before they came here: in a switch, or on another link. Where, this host cannot tell.",
    advice: "Look at the drop counters of the switches' queue for the RoCE priority, and for `bad_receive_path` on the switch ports between the peers. Check that PFC is on along the whole path.",
    commands: NOTHING,
};

pub(crate) const DROPS_ON_LOSSLESS: Check = Check {
    id: "drops_on_lossless",
    title: "Packets are dropped on a lossless priority",
    area: Area::Traffic,
    severity: Severity::Error,
    reads: "drops by priority, pause frames sent by priority",
    fires: "A priority with PFC drops received packets, once a second or more.",
    why: "Lossless is not what it says. Where pause is sent, its headroom is too small for the cable; where none is sent, PFC does not work on this port.",
    advice: "With pause: enlarge the buffer, or tell the driver the cable's length (`buffer_zero`). Without: set PFC anew at both ends (`pfc_off`, `pause_beside_pfc`).",
    commands: NOTHING,
};

pub(crate) const UNEVEN_RAILS: Check = Check {
    id: "uneven_rails",
    title: "The rails carry unequal shares",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "utilization, pause received, CNPs received and queue pairs of every rail",
    fires: "The rails use a twentieth of their lines on average or more, and the busiest carries 1.3 times the mean.",
    why: "A collective waits for its fullest rail.",
    advice: "If the quiet rails are paused or receive CNPs, flows collide in the fabric (ECMP with few flows, elephant flows): raise NCCL_IB_QPS_PER_CONNECTION, hash on the UDP source port. If not, the job itself places its traffic unevenly: compare the topology file and the GPUs' affinity. The choice of ECMP itself cannot be seen from here.",
    commands: NOTHING,
};

pub(crate) const BAD_RECEIVE_PATH: Check = Check {
    id: "bad_receive_path",
    title: "Frames arrive damaged",
    area: Area::Traffic,
    severity: Severity::Error,
    reads: "CRC and symbol errors, FEC, ICRC, packets out of sequence",
    fires: "Damaged frames are counted in two ways, or in one and packets are missing. Not while the link goes up and down.",
    why: "Errors are counted by the receiver of the bad direction: the sender at the other end, the cable, or this module's receiver is at fault, not what this node sends.",
    advice: "Clean or replace the cable or modules of this link, beginning with the sender at the other end; look at light and temperature (`optics_dim`, `module_hot`) and at the FEC mode (`fec_off`).",
    commands: NOTHING,
};

pub(crate) const DAMAGED_ELSEWHERE: Check = Check {
    id: "damaged_elsewhere",
    title: "Frames arrive that were damaged on another link",
    area: Area::Traffic,
    severity: Severity::Warning,
    reads: "frames with a stomped CRC, CRC errors",
    fires: "At least half of the CRC errors are stomped: a cut-through switch found the frame bad and passed it on marked so.",
    why: "The cable of this port is in order; the bad one is further away.",
    advice: "Follow the errors from switch to switch, to the port that has CRC errors that are not stomped.",
    commands: NOTHING,
};

pub(crate) const CANNOT_TELL: Check = Check {
    id: "cannot_tell",
    title: "What the fabric does cannot be told from this port",
    area: Area::Traffic,
    severity: Severity::Note,
    reads: "which counters are there",
    fires: "A port carries RoCE, and its driver counts neither the time of pauses nor, where ECN is expected, marks or CNPs.",
    why: "Silence about this port is no proof of health.",
    advice: "Look at the switch port at the other end. `rocewatch ports` tells which sources are missing, and why.",
    commands: NOTHING,
};
