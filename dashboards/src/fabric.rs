//! All nodes at once. Everything that there is one of for each port is taken from the recording rules of
//! `deploy/prometheus/rocewatch-recording.yml`, and of that the worst few are drawn; nothing grows with the number of nodes.

use crate::common::{
    ANY, CE, CNPS_IN_ONE, FLAP, FRAMES_ONLY, HEALTHY, INCAST, LINE, PAUSE, ROW_TO_NODE, ROW_TO_PORT,
    SEVERITIES, SOME, STORM, TO_PORT, marks, variables,
};
use crate::grafana::{Column, Dashboard, Limits, Order, Panel, Row, View};

pub(crate) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "rocewatch-fabric",
        title: "RoCE fabric",
        description: "All nodes at once: which ports are worst, where storms are open, and whether the rails are alike. Needs the recording rules of Rocewatch.",
        from: "now-1h",
        variables: variables(false, false, true),
        // Marks of a whole fabric tell what is open, not where: that is in the tables.
        annotations: marks(
            |matcher| {
                format!("sum by (event) (cluster:rocewatch_event_active:sum{{@cluster,{matcher}}}) > 0")
            },
            "{{event}}",
            "open on at least one port",
        ),
        rows: vec![now(), open(), worst(), course(), bands(), rails()],
    }
}

fn now() -> Row {
    let number = |title, description, scene| {
        Panel::new(View::Number, title, description, scene)
            .size(3, 4)
            .unit("none")
    };
    Row {
        title: "Now",
        panels: vec![
            number("Nodes", "Nodes whose agent Prometheus hears.", HEALTHY)
                .query("sum(cluster:rocewatch_build_info:count{@cluster})", "nodes"),
            number("Silent nodes", "Nodes that were heard within the last hour and are not heard now.", HEALTHY)
                .limits(ANY)
                .quiet()
                .query(
                    "count(last_over_time(rocewatch_build_info{@cluster}[1h]) unless on (cluster, instance) rocewatch_build_info{@cluster}) or vector(0)",
                    "silent",
                ),
            number("Ports without link", "Ports whose netdev is up and has no carrier.", FLAP)
                .limits(ANY)
                .query("sum(cluster:rocewatch_port_up:count{@cluster}) - sum(cluster:rocewatch_port_up:sum{@cluster})", "ports"),
            number("Open storms", "Priorities of ports on which a PFC storm is open, received and sent.", STORM)
                .limits(ANY)
                .query("sum(cluster:rocewatch_pfc_storm_active:sum{@cluster})", "storms"),
            number("Received", "What all ports together receive.", HEALTHY)
                .unit("bps")
                .query("8 * sum(cluster:rocewatch_port_bytes:rate5m{@cluster,direction=\"rx\"})", "received"),
            number("Paused by the fabric", "Share of the time that the mean port may not send, over five minutes.", STORM)
                .unit("percentunit")
                .limits(PAUSE)
                .query("avg(cluster:rocewatch_pfc_pause:ratio_rate5m{@cluster,direction=\"rx\"})", "paused"),
            number("CE fraction", "Share of all RoCE packets that a switch marked, over five minutes.", INCAST)
                .unit("percentunit")
                .limits(CE)
                .query("avg(cluster:rocewatch_ecn_marked:ratio_rate5m{@cluster})", "marked"),
            number("CNPs", "Congestion notifications sent by all nodes together, over five minutes.", INCAST)
                .unit("pps")
                .query("sum(cluster:rocewatch_cnp_sent:rate5m{@cluster})", "sent"),
        ],
    }
}

fn open() -> Row {
    Row {
        title: "Open",
        panels: vec![
            Panel::new(
                View::Table(
                    vec![
                        Column::new("instance", "Node").link(ROW_TO_NODE),
                        Column::new("device", "Port").link(ROW_TO_PORT),
                        Column::new("direction", "Direction"),
                        Column::new("priority", "Priority"),
                    ],
                    Order::Up("Node"),
                ),
                "Open storms",
                "Priorities that stand still, 100 at most. rx: the fabric forbids the node to send; follow it to a node that has tx, which is where it comes from.",
                STORM,
            )
            .size(7, 8)
            .none("No storm is open.")
            .now("topk(100, rocewatch_pfc_storm_active{@cluster,priority=~\"$priority\"} == 1)", "{{instance}} {{device}}"),
            Panel::new(
                View::Table(
                    vec![
                        Column::new("instance", "Node").link(ROW_TO_NODE),
                        Column::new("device", "Port").link(ROW_TO_PORT),
                        Column::new("event", "Event"),
                        Column::new("severity", "Severity").texts(SEVERITIES),
                    ],
                    Order::Up("Severity"),
                ),
                "Open events",
                "What the agents have found and is not over: 100 of the critical ones and 100 warnings at most.",
                INCAST,
            )
            .size(11, 8)
            .none("No event is open.")
            .now(
                "topk(100, max by (instance, device, event, severity) (rocewatch_event_active{@cluster,severity=\"critical\",priority=~\"$priority\"}) == 1) or topk(100, max by (instance, device, event, severity) (rocewatch_event_active{@cluster,severity=\"warning\",priority=~\"$priority\"}) == 1)",
                "{{instance}} {{device}} {{event}}",
            ),
            Panel::new(
                View::Ranking,
                "Flaps",
                "Ports that lost their carrier most often in the shown time. Three times in ten minutes is an event.",
                FLAP,
            )
            .size(6, 8)
            .unit("none")
            .limits(Limits::From(&[(1.0, "yellow"), (3.0, "red")]))
            .none("No port lost its carrier.")
            .link(TO_PORT)
            .step("1m")
            .now(
                "topk(10, sum by (cluster, instance, device) (sum_over_time(instance_device:rocewatch_link_down_events:delta1m{@cluster}[$__range])))",
                "{{instance}} {{device}}",
            ),
        ],
    }
}

/// The ports in which a recorded series was highest within the shown time, by their peak.
fn peaks(series: &str, of: u8) -> String {
    format!("topk({of}, max_over_time({series}[$__range:$__interval]))")
}

/// The course of the ports that [`peaks`] gives: the same ones at every point, so that there are never more.
fn course_of(series: &str, of: u8) -> String {
    format!("{series} and topk({of}, max_over_time({series}[$__range:$__interval] @ end()))")
}

const PAUSE_RX: &str = "instance_device:rocewatch_pfc_pause:ratio_rate5m{@cluster,direction=\"rx\"}";
const PAUSE_TX: &str = "instance_device:rocewatch_pfc_pause:ratio_rate5m{@cluster,direction=\"tx\"}";
const AT_MOST: &str = "instance_device:rocewatch_pfc_pause_upper_bound:ratio_avg5m{@cluster}";
const CNPS_SENT: &str = "instance_device:rocewatch_cnp_sent:rate5m{@cluster}";
const MARKED: &str = "instance_device:rocewatch_ecn_marked:ratio_rate5m{@cluster}";

fn worst() -> Row {
    let ranking = |title, description, scene| {
        Panel::new(View::Ranking, title, description, scene)
            .size(6, 10)
            .link(TO_PORT)
            .step("1m")
    };
    let lines = |title, description, scene| {
        Panel::new(View::Lines, title, description, scene)
            .size(6, 8)
            .link(TO_PORT)
            .step("1m")
    };
    Row {
        title: "Worst ports",
        panels: vec![
            ranking("Pause received, peak", "The ten ports that the fabric held back most, by the highest five minutes of the shown time.", STORM)
                .share()
                .limits(PAUSE)
                .now(peaks(PAUSE_RX, 10), "{{instance}} {{device}}"),
            ranking(
                "Pause sent, peak",
                "The eight ports that held the fabric back most: slow receivers, and where pause comes from. NICs that measure no time have the most that it can have been (≤).",
                crate::common::SLOW_RECEIVER,
            )
            .share()
            .limits(PAUSE)
            .now(peaks(PAUSE_TX, 8), "{{instance}} {{device}}")
            .now_on(FRAMES_ONLY, peaks(AT_MOST, 4), "≤ {{instance}} {{device}} {{direction}}"),
            ranking("CNPs sent, peak", "The ten ports that received most congested traffic, as it is answered. The number depends on the NIC: compare like with like.", INCAST)
                .unit("pps")
                .now(peaks(CNPS_SENT, 10), "{{instance}} {{device}}"),
            ranking("CE fraction, peak", "The ten ports of whose packets most were marked by a switch on the way.", INCAST)
                .unit("percentunit")
                .limits(CE)
                .now(peaks(MARKED, 10), "{{instance}} {{device}}"),
            lines("Pause received", "The five worst of them over time.", STORM)
                .share()
                .limits(PAUSE)
                .query(course_of(PAUSE_RX, 5), "{{instance}} {{device}}"),
            lines("Pause sent", "The five worst of them over time, of those that measure the time.", crate::common::SLOW_RECEIVER)
                .share()
                .limits(PAUSE)
                .query(course_of(PAUSE_TX, 5), "{{instance}} {{device}}"),
            lines("CNPs sent", "The five worst of them over time.", INCAST)
                .unit("pps")
                .query(course_of(CNPS_SENT, 5), "{{instance}} {{device}}"),
            lines("CE fraction", "The five worst of them over time.", INCAST)
                .unit("percentunit")
                .limits(CE)
                .query(course_of(MARKED, 5), "{{instance}} {{device}}"),
        ],
    }
}

fn course() -> Row {
    let lines = |title, description, scene| {
        Panel::new(View::Lines, title, description, scene)
            .size(6, 8)
            .step("1m")
    };
    Row {
        title: "The whole fabric",
        panels: vec![
            lines("Traffic", "What all ports together receive and send.", HEALTHY)
                .unit("bps")
                .query("8 * sum by (direction) (cluster:rocewatch_port_bytes:rate5m{@cluster})", "{{direction}}"),
            lines("Pause", "Share of the time that the mean port was paused. rx: by the fabric, tx: it paused the switch.", STORM)
                .unit("percentunit")
                .limits(PAUSE)
                .query("avg by (direction) (cluster:rocewatch_pfc_pause:ratio_rate5m{@cluster})", "{{direction}}"),
            lines("Marks and notifications", "Share of all packets that were marked (left), and the notifications that are sent and received for it (right).", INCAST)
                .unit("percentunit")
                .query("avg(cluster:rocewatch_ecn_marked:ratio_rate5m{@cluster})", "CE fraction")
                .query("sum(cluster:rocewatch_cnp_sent:rate5m{@cluster})", "CNPs sent")
                .query_on(CNPS_IN_ONE, "sum(cluster:rocewatch_cnp_received:rate5m{@cluster})", "CNPs received")
                .right("B", "pps", "CNPs")
                .right("C", "pps", "CNPs"),
            Panel::new(View::Bars, "Events", "How many are open, by kind.", STORM)
                .size(6, 8)
                .step("1m")
                .unit("none")
                .limits(SOME)
                .none("No event is open.")
                .query("sum by (event) (cluster:rocewatch_event_active:sum{@cluster}) > 0", "{{event}}"),
        ],
    }
}

fn bands() -> Row {
    let heatmap = |title, description, scene| {
        Panel::new(View::Heatmap, title, description, scene)
            .unit("cps")
            .step("1m")
    };
    Row {
        title: "How full the lines are",
        panels: vec![
            heatmap("Utilization, received", "Every sample of every port, by how full its line was in that fraction of a second; samples a second. Two bands are the phases of jobs; a top band is lines that are full.", HEALTHY)
                .query("sum by (le) (cluster:rocewatch_sampled_utilization_ratio_bucket:rate5m{@cluster,direction=\"rx\"})", "{{le}}"),
            heatmap("Utilization, sent", "The same for the other direction.", HEALTHY)
                .query("sum by (le) (cluster:rocewatch_sampled_utilization_ratio_bucket:rate5m{@cluster,direction=\"tx\"})", "{{le}}"),
            heatmap("Pause received", "Every sample of every priority with PFC, by the share of it that was paused. The lowest band is no pause at all; anything in the top band stands still.", STORM)
                .query("sum by (le) (cluster:rocewatch_sampled_pause_ratio_bucket:rate5m{@cluster,direction=\"rx\"})", "{{le}}"),
        ],
    }
}

fn rails() -> Row {
    let lines = |title, description, scene| {
        Panel::new(View::Lines, title, description, scene)
            .size(6, 8)
            .step("1m")
    };
    Row {
        title: "Rails compared",
        panels: vec![
            lines("Utilization by rail", "Mean of all ports of the rail, received. Rails of one job carry the same, or the job waits for the slowest.", HEALTHY)
                .share()
                .limits(LINE)
                .query("avg by (rail) (rail:rocewatch_port_utilization:ratio_rate5m{@cluster,direction=\"rx\"})", "rail {{rail}}"),
            lines("Pause received by rail", "Mean share of the time that the ports of the rail were paused. One rail alone points to its leaf switch.", STORM)
                .unit("percentunit")
                .limits(PAUSE)
                .query("avg by (rail) (rail:rocewatch_pfc_pause:ratio_rate5m{@cluster,direction=\"rx\"})", "rail {{rail}}"),
            lines("CE fraction by rail", "Mean share of packets that were marked.", INCAST)
                .unit("percentunit")
                .limits(CE)
                .query("avg by (rail) (rail:rocewatch_ecn_marked:ratio_rate5m{@cluster})", "rail {{rail}}"),
            lines("CNPs sent by rail", "All ports of the rail together.", INCAST)
                .unit("pps")
                .query("sum by (rail) (rail:rocewatch_cnp_sent:rate5m{@cluster})", "rail {{rail}}"),
        ],
    }
}
