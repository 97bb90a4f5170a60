//! One server: its ports side by side, and the five signals that an operator watches first.

use crate::common::{
    ANY, CE, CNP_IGNORED, CNPS_IN_ONE, FRAMES_ONLY, HEALTHY, IGNORED, INCAST, LINE, LINK_STATES, PAUSE,
    ROW_TO_PORT_OF_NODE, SLOW_RECEIVER, SOME, STORM, TO_PORT_OF_NODE, port_marks, variables,
};
use crate::grafana::{Choice, Column, Dashboard, Limits, Order, Panel, Row, Scene, Variable, View};

pub(crate) fn dashboard() -> Dashboard {
    let mut choices = variables(true, false, true);
    choices.push(
        Variable::shown(
            "ports",
            "Ports",
            "What the small pictures are repeated by.",
            Choice::Any("label_values(rocewatch_port_info{@node}, device)", None),
        )
        .hidden(),
    );
    Dashboard {
        uid: "rocewatch-node",
        title: "RoCE node",
        description: "The ports of one server side by side: drops, pause, ECN marks, CNPs and utilization.",
        from: "now-30m",
        variables: choices,
        annotations: port_marks("@node"),
        rows: vec![ports(), drops(), pause(), marks(), cnps(), utilization()],
    }
}

fn ports() -> Row {
    let columns = vec![
        Column::new("device", "Port").link(ROW_TO_PORT_OF_NODE),
        Column::new("netdev", "Netdev"),
        Column::new("rail", "Rail").width(60),
        Column::new("Value #A", "Link").texts(LINK_STATES).width(70),
        Column::new("Value #B", "Speed").unit("bps").width(90),
        Column::new("Value #C", "Receiving").share(LINE),
        Column::new("Value #D", "Sending").share(LINE),
        Column::new("Value #E", "Paused by fabric").share(PAUSE),
        Column::new("Value #F", "Pauses the switch").share(PAUSE),
        Column::new("Value #G", "Marked").unit("percentunit").limits(CE),
        Column::new("Value #H", "CNPs sent").unit("pps"),
        Column::new("Value #I", "Drops").unit("pps").limits(ANY),
    ];
    Row {
        title: "Ports",
        panels: vec![
            Panel::new(
                View::Table(columns, Order::Up("Rail")),
                "Ports, lately",
                "Each port over the last few scrapes. Empty is what its NIC does not count.",
                STORM,
            )
            .size(24, 10)
            .now(
                "rocewatch_port_up{@node} * on (device, port) group_left (rail) max by (device, port, rail) (rocewatch_port_info{@node})",
                "{{device}}",
            )
            .now("8 * max by (device) (rocewatch_port_speed_bytes_per_second{@node})", "{{device}}")
            .now(&used("rx", "device"), "{{device}}")
            .now(&used("tx", "device"), "{{device}}")
            .now("max by (device) (rate(rocewatch_pfc_pause_seconds_total{@node,direction=\"rx\",priority=~\"$priority\"}[$__rate_interval]))", "{{device}}")
            .now("max by (device) (rate(rocewatch_pfc_pause_seconds_total{@node,direction=\"tx\",priority=~\"$priority\"}[$__rate_interval]))", "{{device}}")
            .now(MARKED, "{{device}}")
            .now("sum by (device) (rate(rocewatch_cnp_sent_total{@node}[$__rate_interval]))", "{{device}}")
            .now("max by (device) (rate(rocewatch_drops_total{@node}[$__rate_interval]))", "{{device}}"),
            Panel::new(
                View::Lines,
                "$ports",
                "Share of the line that is used, and of the time that the port is paused: by the fabric (received), or the switch by it (sent).",
                STORM,
            )
            .size(3, 6)
            .share()
            .limits(LINE)
            .repeat("ports")
            .link(TO_PORT_OF_NODE)
            .query(&used_by("rx", "device", ",device=~\"$ports\""), "used rx")
            .query(&used_by("tx", "device", ",device=~\"$ports\""), "used tx")
            .query("max by (device) (rate(rocewatch_pfc_pause_seconds_total{@node,device=~\"$ports\",direction=\"rx\"}[$__rate_interval]))", "paused")
            .query("max by (device) (rate(rocewatch_pfc_pause_seconds_total{@node,device=~\"$ports\",direction=\"tx\"}[$__rate_interval]))", "pauses")
            .color("A", "super-light-blue")
            .color("B", "blue")
            .color("C", "red")
            .color("D", "orange"),
        ],
    }
}

/// Share of the line that each port uses: bytes, and 20 more for each packet that no NIC counts.
fn used(direction: &str, by: &str) -> String {
    used_by(direction, by, "")
}

fn used_by(direction: &str, by: &str, and: &str) -> String {
    let rate = |metric| format!("rate({metric}{{@node{and},direction=\"{direction}\"}}[$__rate_interval])");
    format!(
        "max by ({by}) (({} + 20 * {}) / ignoring (direction) rocewatch_port_speed_bytes_per_second{{@node{and}}})",
        rate("rocewatch_port_bytes_total"),
        rate("rocewatch_port_packets_total")
    )
}

const MARKED: &str = "sum by (device) (rate(rocewatch_ecn_marked_packets_total{@node}[$__rate_interval])) / (sum by (device) (rate(rocewatch_rdma_packets_total{@node,direction=\"rx\"}[$__rate_interval])) > 0)";

/// One line for each port.
fn lines(title: &'static str, description: &'static str, scene: Scene) -> Panel {
    Panel::new(View::Lines, title, description, scene).link(TO_PORT_OF_NODE)
}

fn drops() -> Row {
    Row {
        title: "1. Drops",
        panels: vec![
            lines("Dropped packets by port", "The reason that dropped most, for each port and direction. Reasons can overlap and are not added up.", SLOW_RECEIVER)
                .unit("pps")
                .limits(SOME)
                .query("max by (device, direction) (rate(rocewatch_drops_total{@node}[$__rate_interval]))", "{{device}} {{direction}}"),
            Panel::new(View::Lines, "Dropped packets by reason", "Why, over all ports of the node.", SLOW_RECEIVER)
                .unit("pps")
                .limits(SOME)
                .query("sum by (direction, reason) (rate(rocewatch_drops_total{@node}[$__rate_interval]))", "{{direction}} {{reason}}"),
            lines("Drops by priority", "For want of buffer. On a lossless priority any is a fault: PFC is not at work between switch and NIC.", SLOW_RECEIVER)
                .unit("pps")
                .limits(ANY)
                .quiet()
                .query("max by (device, priority) (rate(rocewatch_priority_drops_total{@node,priority=~\"$priority\"}[$__rate_interval])) and on (device, priority) rocewatch_pfc_enabled{@node} == 1", "{{device}} priority {{priority}}"),
        ],
    }
}

fn pause() -> Row {
    let of = |metric: &str, direction: &str| {
        format!(
            "max by (device) (rate({metric}{{@node,direction=\"{direction}\",priority=~\"$priority\"}}[$__rate_interval]))"
        )
    };
    let at_most = |direction: &str| {
        format!(
            "max by (device) (rocewatch_pfc_pause_upper_bound_ratio{{@node,direction=\"{direction}\",priority=~\"$priority\"}})"
        )
    };
    let share = |title, description, scene| lines(title, description, scene).size(6, 8).share().limits(PAUSE);
    let frames = |title, description, scene| lines(title, description, scene).size(6, 8).unit("pps");
    Row {
        title: "2. PFC pause: time and frames",
        panels: vec![
            share("Paused by the fabric", "Share of the time that the most paused priority may not send. ≤: the most that it can have been, on NICs that count frames and no time.", STORM)
                .query(of("rocewatch_pfc_pause_seconds_total", "rx"), "{{device}}")
                .query_on(FRAMES_ONLY, at_most("rx"), "≤ {{device}}"),
            share("Pauses the switch", "Share of the time that this node forbids the switch to send: it takes less than the line brings.", SLOW_RECEIVER)
                .query(of("rocewatch_pfc_pause_seconds_total", "tx"), "{{device}}"),
            frames("PFC frames received", "XOFF and XON. Many frames are not much pause, if each is soon followed by the permission to go on; and one XOFF frame can be a long one.", STORM)
                .query(of("rocewatch_pfc_frames_total", "rx"), "{{device}}")
                .query_on(FRAMES_ONLY, of("rocewatch_pfc_xoff_frames_total", "rx"), "XOFF {{device}}"),
            frames("PFC frames sent", "XOFF and XON together, by which this node stops the switch and lets it go on.", SLOW_RECEIVER)
                .query(of("rocewatch_pfc_frames_total", "tx"), "{{device}}"),
        ],
    }
}

fn marks() -> Row {
    Row {
        title: "3. ECN marks",
        panels: vec![
            lines("CE fraction", "Share of the RoCE packets received that a switch on the way marked.", INCAST)
                .unit("percentunit")
                .limits(CE)
                .query(MARKED, "{{device}}"),
            lines("Marked packets", "Received with Congestion Experienced: this node is the notification point and answers with CNPs.", INCAST)
                .unit("pps")
                .query("sum by (device) (rate(rocewatch_ecn_marked_packets_total{@node}[$__rate_interval]))", "{{device}}"),
            lines("CNPs for each marked packet", "Small where the CNP timer takes many marks together, as it should; 0 means that notification is off. Only where ten marks a second or more come.", INCAST)
                .unit("none")
                .query("sum by (device) (rate(rocewatch_cnp_sent_total{@node}[$__rate_interval])) / (sum by (device) (rate(rocewatch_ecn_marked_packets_total{@node}[$__rate_interval])) > 10)", "{{device}}"),
        ],
    }
}

fn cnps() -> Row {
    Row {
        title: "4. CNPs",
        panels: vec![
            lines("CNPs sent", "Others congest the way to this node, and are told.", INCAST)
                .unit("pps")
                .query("sum by (device) (rate(rocewatch_cnp_sent_total{@node}[$__rate_interval]))", "{{device}}"),
            lines("CNPs received", "This node congests the way to others, and is told.", INCAST)
                .unit("pps")
                .query("sum by (device) (rate(rocewatch_cnp_handled_total{@node}[$__rate_interval]) + rate(rocewatch_cnp_ignored_total{@node}[$__rate_interval]))", "{{device}}")
                .query_on(CNPS_IN_ONE, "sum by (device) (rate(rocewatch_cnp_received_total{@node}[$__rate_interval]))", "{{device}} (all)"),
            lines("CNPs ignored", "Share of the received ones on which the NIC does not act: its senders do not slow down. It should be 0.", CNP_IGNORED)
                .share()
                .limits(IGNORED)
                .query("max by (device) (rocewatch_cnp_ignored_ratio{@node})", "{{device}}"),
        ],
    }
}

fn utilization() -> Row {
    let share = |title, description| lines(title, description, HEALTHY).share().limits(LINE);
    Row {
        title: "5. Bandwidth utilization",
        panels: vec![
            share("Utilization, received", "Share of the line in use, preamble and gap included.").query(used("rx", "device"), "{{device}}"),
            share("Utilization, sent", "Share of the line in use, preamble and gap included.").query(used("tx", "device"), "{{device}}"),
            share("Bursts", "The fullest hundredth of the samples of a fraction of a second: a line that is half used can be full half of the time.")
                .limits(Limits::None)
                .query("histogram_quantile(0.99, max by (device, le) (rate(rocewatch_sampled_utilization_ratio_bucket{@node,direction=\"rx\"}[$__rate_interval])))", "{{device}} rx")
                .query("histogram_quantile(0.99, max by (device, le) (rate(rocewatch_sampled_utilization_ratio_bucket{@node,direction=\"tx\"}[$__rate_interval])))", "{{device}} tx"),
        ],
    }
}
