//! What each kind of event means, in the words of whoever is woken by it.

use super::event::{EventKind, Severity};

/// What is to be known about a kind of event.
#[derive(Clone, Copy, Debug)]
pub struct EventInfo {
    /// The kind.
    pub kind: EventKind,
    /// What to call it.
    pub title: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The value that decides, and that [`super::Thresholds::rule`] is about.
    pub measure: &'static str,
    /// What is the case while it is open.
    pub meaning: &'static str,
    /// What must not be concluded from it, and what it is not opened by.
    pub not_meaning: &'static str,
    /// What to look at and to do, in this order.
    pub what_to_do: &'static str,
}

/// What is to be known about a kind of event.
#[must_use]
pub fn info(kind: EventKind) -> &'static EventInfo {
    // The table is in the order of the kinds, which a test holds it to.
    &EVENTS[kind as usize]
}

/// Every kind of event, in the order of [`EventKind::ALL`].
pub const EVENTS: &[EventInfo] = &[
    EventInfo {
        kind: EventKind::PfcStorm,
        title: "PFC storm",
        severity: Severity::Critical,
        measure: "share of a sampling interval that a priority is paused",
        meaning: "A priority is paused without a break. Received: the switch, or something behind it, forbids this node to send on the priority, and nothing leaves. Sent: this node forbids the switch to send to it, because its receive pipeline stands still. Every job with a rank behind this port waits.",
        not_meaning: "A received storm is not a fault of this host: its cause is downstream, often a slow or broken server elsewhere that sent the pause first. Many pause frames are not a storm if each is soon followed by the permission to go on. A link that flaps opens none. Switching PFC off, or losing sight of the counters, does not end it: it stays open until the pause is seen to be over.",
        what_to_do: "Received: find the port at the other end of the chain. Look at which node has the same event in the direction sent; without one, follow the pause through the switches' counters (`show pfc counters`, the PFC watchdog). Sent: look on this node for `pcie_backpressure`, a hung GPU or CPU, and NIC firmware messages in the kernel's log; drain the node, and reset the NIC when it is free. Check that the PFC watchdog of the switches is on.",
    },
    EventInfo {
        kind: EventKind::SustainedPause,
        title: "Sustained pause",
        severity: Severity::Warning,
        measure: "share of the last window that a priority is paused",
        meaning: "A priority is paused for a tenth of the time or more, for at least ten seconds. Received: the fabric is congested in a way that ECN does not resolve. Sent: this host takes less than the line brings; it is a slow receiver, and its pause spreads into the fabric.",
        not_meaning: "It is no standstill: traffic passes between the pauses. Pauses of microseconds under incast are what PFC is for, and open nothing.",
        what_to_do: "Sent: look for `pcie_backpressure` on the port, a PCIe link below its width or speed, an IOMMU or memory that is short of bandwidth, and more queue pairs than the NIC caches. Received: compare with the other rails and nodes; a port that sends pause is where it comes from. Check the ECN thresholds of the switches against their PFC thresholds.",
    },
    EventInfo {
        kind: EventKind::PauseWithoutCe,
        title: "Pause without ECN",
        severity: Severity::Warning,
        measure: "the same while neither CNP nor mark comes",
        meaning: "The fabric pauses this node, and no sender on it is told to slow down: neither a CNP nor a CE mark comes. Congestion control does not work on the path, and PFC alone holds the traffic.",
        not_meaning: "It is not a storm. It is as intended where DCQCN is switched off on purpose: say so in the configuration (`expect_ecn`), and this event is not opened.",
        what_to_do: "Check that the switches mark (ECN enabled on the queue of the RoCE priority, Kmin below the PFC threshold), that the RoCE traffic is in that queue (DSCP and trust mode at both ends), and that CNPs are not dropped or in another class on their way back.",
    },
    EventInfo {
        kind: EventKind::PauseOnLossyPriority,
        title: "Pause on a lossy priority",
        severity: Severity::Warning,
        measure: "PFC frames a second",
        meaning: "PFC frames come or go on a priority that is not meant to be lossless; or PFC is on for so many priorities that it cannot be meant, and pauses all of them. What shares the link with the job, such as storage or ssh, is stopped by it.",
        not_meaning: "It does not say that anything was lost. It is not opened by PFC that is configured too widely and never used.",
        what_to_do: "Compare the PFC mask of this port with that of the switch port and with the plan (`doctor`); set the intended priorities on both ends. If they are meant, name them in the configuration (`lossless`).",
    },
    EventInfo {
        kind: EventKind::GlobalPause,
        title: "Global pause at work",
        severity: Severity::Warning,
        measure: "frames a second that are not PFC",
        meaning: "Pause frames of the whole link (IEEE 802.3x) come or go: they stop every priority alike, CNPs and management included.",
        not_meaning: "It is not PFC, and does not show that PFC is wrong; most NICs use either the one or the other. Global pause that is on and never used opens nothing.",
        what_to_do: "Switch global pause off (`ethtool -A IFNAME rx off tx off autoneg off`) on both ends where PFC is meant. If PFC was configured and has gone, look at what reset it: a driver reload, lldpad, or the switch by DCBX.",
    },
    EventInfo {
        kind: EventKind::DropsOnLosslessPriority,
        title: "Drops on a lossless priority",
        severity: Severity::Critical,
        measure: "packets dropped a second",
        meaning: "Packets of a priority that must not lose any were dropped on their way into this NIC. RDMA goes back and sends again from the gap, which costs milliseconds.",
        not_meaning: "It is not congestion as such; PFC would have held the sender. Drops of lossy priorities are as intended and open nothing.",
        what_to_do: "Check that the switch honours pause on this priority (PFC at both ends, the same priority by the same DSCP), that headroom fits cable length and speed, and that the NIC's buffers are assigned to the priority (`mlnx_qos`, `dcb buffer show`).",
    },
    EventInfo {
        kind: EventKind::CnpSpike,
        title: "CNP spike",
        severity: Severity::Info,
        measure: "CNPs per packet, as a multiple of the usual",
        meaning: "There are several times as many congestion notifications per packet as this port usually has. Received: flows of this node collide in the fabric, and its senders slow down. Sent: what this node receives was marked, by an incast towards it or a narrow place on the way.",
        not_meaning: "It is not a fault by itself: it is ECN at work. The number of CNPs of two NIC models cannot be compared, so that each port is held against its own past alone. Traffic that begins after an idle time is not a spike.",
        what_to_do: "See which ports and nodes have it at the same time: one rail of many nodes points to a switch or an uplink, one node to a collective that is badly placed, all to another job. Look at link speeds below usual on the way: a link at half speed congests first.",
    },
    EventInfo {
        kind: EventKind::CeWithoutCnp,
        title: "CE marks without CNPs",
        severity: Severity::Warning,
        measure: "marks a second while no CNP is sent",
        meaning: "The switches mark packets for this node, and the node tells no sender. Those go on at full rate until PFC stops them.",
        not_meaning: "It is not congestion that is unusual; it is the answer that is missing. A few marks open nothing.",
        what_to_do: "Switch the notification point on for the priority (mlx5: `/sys/class/net/IFNAME/ecn/roce_np/enable/PRIORITY`; others: the driver's congestion control settings), and check that the marked traffic is in the priority that it is on for.",
    },
    EventInfo {
        kind: EventKind::CnpIgnored,
        title: "CNPs ignored",
        severity: Severity::Warning,
        measure: "share of the received CNPs",
        meaning: "Congestion notifications reach this node, and its NIC does not act on them: the senders keep their rate, and the fabric has to pause them.",
        not_meaning: "It does not say that this node causes the congestion, but that it does nothing against it. A NIC that does not count ignored CNPs can never show it.",
        what_to_do: "Switch the reaction point on for the priority of the traffic (mlx5: `/sys/class/net/IFNAME/ecn/roce_rp/enable/PRIORITY`), and check that CNPs come in the priority that the NIC expects them in.",
    },
    EventInfo {
        kind: EventKind::TransportErrors,
        title: "Transport errors",
        severity: Severity::Warning,
        measure: "timeouts, gaps, retransmissions and damaged packets a second",
        meaning: "RDMA loses or damages packets: acknowledgements time out, sequence numbers have gaps, packets are sent again. A lossless fabric that is at rest has none of it.",
        not_meaning: "It does not say where packets are lost; the port that counts the gap is often not the one that dropped them. Where the fabric sprays packets over several paths, gaps are normal: raise the threshold. What a lost carrier explains opens nothing while the link is down and shortly after.",
        what_to_do: "With `fec_degraded` on this port or CRC errors: the cable or the module. With `drops_on_lossless_priority`: PFC or headroom. Timeouts alone: look at the peers for a link that was down, or a process that died. Otherwise compare the discards of the switches on the path.",
    },
    EventInfo {
        kind: EventKind::LinkDown,
        title: "Link down",
        severity: Severity::Critical,
        measure: "1 while the carrier is gone, or was since the last look",
        meaning: "A port that had a carrier has lost it, or lost it for a moment since the last look.",
        not_meaning: "It does not say which end is at fault. A port that never had a carrier, one that was switched off by the administrator, and links that train after a boot open nothing.",
        what_to_do: "Look at the switch port's log for the same time. Down for good: module, cable, switch port. For a moment: see `link_flap`; jobs whose timeout is longer than the gap go on.",
    },
    EventInfo {
        kind: EventKind::LinkFlap,
        title: "Link flaps",
        severity: Severity::Critical,
        measure: "lost carriers in ten minutes",
        meaning: "The carrier was lost three times or more within ten minutes. It stays open until ten minutes have passed without a loss.",
        not_meaning: "It is not a storm, whatever the pause counters show meanwhile. One loss is `link_down` alone.",
        what_to_do: "Take the port out of service before jobs fail. Reseat or replace the module and cable, clean the fibre, compare FEC settings of both ends, look at the module's temperature and optical power.",
    },
    EventInfo {
        kind: EventKind::SpeedBelowUsual,
        title: "Speed below usual",
        severity: Severity::Warning,
        measure: "share of the usual speed that is missing",
        meaning: "The link is up at less than the speed that this port, or ports like it on this node, usually have. Collectives run at the pace of the slowest rail.",
        not_meaning: "It says nothing about how much of the line is used. A link without carrier has no speed, and is not slow.",
        what_to_do: "Compare lanes and speed with the peer (`ethtool IFNAME` at both ends). A link with half of its lanes has a damaged lane in module or cable: replace it. If it was configured so, tell the switch and this node the same.",
    },
    EventInfo {
        kind: EventKind::FecDegraded,
        title: "FEC degraded",
        severity: Severity::Warning,
        measure: "bit error ratio before correction by 1e-5, or lost code words a second",
        meaning: "The link corrects far more bits than links of its kind do, or loses code words that it could not correct (where none are counted: receives frames with a wrong checksum). Each of those is a lost packet or several.",
        not_meaning: "Corrected bits are normal on every PAM4 link, and cost nothing as long as none is left over. What happens while a link comes up opens nothing.",
        what_to_do: "Clean and reseat the module, exchange the cable, then the module, then the switch port; see which of them the errors follow. Lost code words alone call for it now, corrected bits alone before they become losses.",
    },
    EventInfo {
        kind: EventKind::PcieBackpressure,
        title: "PCIe back-pressure",
        severity: Severity::Warning,
        measure: "percent of a second that DMA waited, or packets dropped a second because it did",
        meaning: "The NIC has data for the host, and the PCIe link or the memory behind it does not take them. The receive buffer fills; the NIC pauses the switch or drops.",
        not_meaning: "It is not the fabric: the cause is in this host. It says nothing about the direction in which the host is slow for other devices.",
        what_to_do: "Check the PCIe link of the NIC and of every bridge above it (width, speed and errors), ACS and IOMMU settings, relaxed ordering and MaxReadReq, and whether NIC and GPU share a switch. Look for another device or process that fills the same memory channels.",
    },
    EventInfo {
        kind: EventKind::RailImbalance,
        title: "Rails out of balance",
        severity: Severity::Info,
        measure: "what the busiest rail carries, by the mean",
        meaning: "One rail of the node carries much more than the mean of its rails, for half a minute or longer. The job is as fast as the fullest rail, and the others are idle for a part of the time.",
        not_meaning: "It is not a fault of a port: bytes are compared, not shares of the line, so that a slow link does not show here. A node at rest, and ports that are not rails, are left out.",
        what_to_do: "Look at how the collective library assigns NICs to GPUs (its topology output), at a NIC that it leaves out, and at the placement of the job. With pause or CNPs on the fuller rails alone, see whether flows collide on one uplink.",
    },
    EventInfo {
        kind: EventKind::CounterReset,
        title: "Counters began anew",
        severity: Severity::Info,
        measure: "counters that began anew",
        meaning: "Counters of the port read less than before: the driver was reloaded, the NIC was reset or recovered by itself, or somebody cleared them. Rates across that moment are left out.",
        not_meaning: "It is no loss of traffic, and no wrap of a narrow counter, which is followed.",
        what_to_do: "If nobody did it, look in the kernel's log for a health recovery of the NIC at the time. Other tools that clear counters of the hardware clear them for everybody: find them.",
    },
    EventInfo {
        kind: EventKind::SourceStalled,
        title: "A source does not answer",
        severity: Severity::Warning,
        measure: "1 while a source does not answer",
        meaning: "Reading a source of the port takes longer than it may, or fails again and again: the driver or the firmware hangs. Where it hangs under the kernel's rtnl lock, every `ip` command of the node waits behind it.",
        not_meaning: "It does not say that traffic has stopped; the data path goes without firmware. Values of the source are absent meanwhile, and events that depend on it neither open nor close.",
        what_to_do: "Look in the kernel's log for command timeouts of the NIC. Leave the source out by the configuration if the node must go on; otherwise drain it, and reload the driver or reset the NIC.",
    },
    EventInfo {
        kind: EventKind::SourceFrozen,
        title: "A source stands still",
        severity: Severity::Warning,
        measure: "sources that stand still",
        meaning: "A source answers, but its values do not change any more while traffic passes by the word of other counters: firmware has stopped counting, or its driver has stopped asking.",
        not_meaning: "An idle port is not a frozen one. Values of the source are absent meanwhile.",
        what_to_do: "Reload the driver when the node is free, and look for a firmware update; the kernel's log often has one failed query from the time when it began.",
    },
    EventInfo {
        kind: EventKind::DeviceGone,
        title: "Device gone",
        severity: Severity::Critical,
        measure: "1 while the device is not there",
        meaning: "A device that was watched is no longer there, or cannot be opened, and that was confirmed several times.",
        not_meaning: "One failed look is not it. A device that was removed on purpose is gone all the same.",
        what_to_do: "Look in the kernel's log for PCIe errors (AER, surprise down) and failed resets. Drain the node; a NIC that does not come back after a reset of its slot has to be replaced.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_kind_once_in_its_order() {
        assert!(EVENTS.iter().map(|info| info.kind).eq(EventKind::ALL));
        for kind in EventKind::ALL {
            assert_eq!(info(kind).kind, kind);
            assert_eq!(EventKind::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(EventKind::from_name("storm"), None);
    }

    /// Names of other kinds in the texts are names of kinds.
    #[test]
    fn the_texts_name_what_there_is() {
        for info in EVENTS {
            for text in [info.meaning, info.not_meaning, info.what_to_do] {
                assert!(text.ends_with('.'), "{}: {text}", info.kind);
                let quoted = text.split('`').skip(1).step_by(2);
                for name in quoted.filter(|name| name.contains('_') && !name.contains(['/', ' '])) {
                    let option = ["expect_ecn", "lossless", "mlnx_qos"].contains(&name);
                    assert!(option || EventKind::from_name(name).is_some(), "{name}");
                }
            }
        }
    }
}
