//! What happened: before, during and after, and what moved first. An alert links to it with its time range.

use crate::common::{
    ANY, BAD_CABLE, FLAP, INCAST, LINE, LINK_STATES, OPEN_STATES, PAUSE, ROW_TO_PORT, ROW_TO_PORT_OF_NODE,
    SEVERITIES, SLOW_RECEIVER, SOME, STORM, TO_PORT_OF_NODE, events_by_severity, port_marks, variables,
};
use crate::grafana::{Choice, Column, Dashboard, Limits, Order, Panel, Row, Scene, Variable, View};

pub(crate) fn dashboard() -> Dashboard {
    let mut choices = variables(true, true, true);
    choices.push(Variable::shown(
        "quiet",
        "Before and after",
        "So much of the beginning of the shown time is taken for how it was before, and so much of its end for how it was afterwards.",
        Choice::Of(&["2m", "1m", "5m", "10m", "30m"]),
    ));
    Dashboard {
        uid: "rocewatch-incident",
        title: "RoCE incident",
        description: "Before, during and after, and what moved first. Choose a time that begins while all was well.",
        from: "now-30m",
        variables: choices,
        annotations: port_marks("@node"),
        rows: vec![first(), compared(), course(), elsewhere()],
    }
}

/// Something that can move, as a rate over a window of the chosen node by port.
struct Signal {
    name: &'static str,
    /// `WINDOW` stands for the window, with what moves it in time.
    rate: &'static str,
    /// It has moved when it is above three times what it was before by this much.
    floor: &'static str,
}

const fn signal(name: &'static str, floor: &'static str, rate: &'static str) -> Signal {
    Signal { name, rate, floor }
}

/// Shares of time. A rate that is extrapolated to the ends of its window can be a little above 1.
const SHARES: [Signal; 3] = [
    signal(
        "paused by the fabric",
        "0.005",
        "clamp_max(max by (device) (rate(rocewatch_pfc_pause_seconds_total{OF,direction=\"rx\"}WINDOW)), 1)",
    ),
    signal(
        "pauses the switch",
        "0.005",
        "clamp_max(max by (device) (rate(rocewatch_pfc_pause_seconds_total{OF,direction=\"tx\"}WINDOW)), 1)",
    ),
    signal(
        "waits for PCIe",
        "0.05",
        "max by (device) (avg_over_time(rocewatch_pcie_stalled_ratio{OF}WINDOW))",
    ),
];

/// Things a second.
const RATES: [Signal; 9] = [
    signal(
        "marked packets received",
        "1000",
        "max by (device) (rate(rocewatch_ecn_marked_packets_total{OF}WINDOW))",
    ),
    signal(
        "CNPs sent",
        "100",
        "max by (device) (rate(rocewatch_cnp_sent_total{OF}WINDOW))",
    ),
    signal(
        "CNPs handled",
        "100",
        "max by (device) (rate(rocewatch_cnp_handled_total{OF}WINDOW))",
    ),
    signal(
        "CNPs ignored",
        "1",
        "max by (device) (rate(rocewatch_cnp_ignored_total{OF}WINDOW))",
    ),
    signal(
        "CNPs received",
        "100",
        "max by (device) (rate(rocewatch_cnp_received_total{OF}WINDOW))",
    ),
    signal(
        "drops",
        "1",
        "max by (device) (rate(rocewatch_drops_total{OF}WINDOW))",
    ),
    signal(
        "RoCE errors",
        "1",
        "max by (device) (rate(rocewatch_roce_errors_total{OF}WINDOW))",
    ),
    signal(
        "lost code words",
        "0",
        "max by (device) (rate(rocewatch_fec_uncorrectable_blocks_total{OF}WINDOW))",
    ),
    signal(
        "lost carriers",
        "0",
        "max by (device) (rate(rocewatch_link_down_events_total{OF}WINDOW))",
    ),
];

impl Signal {
    fn over(&self, window: &str, of: &str) -> String {
        self.rate.replace("WINDOW", window).replace("OF", of)
    }

    fn named(&self, expr: &str) -> String {
        format!("label_replace({expr}, \"signal\", \"{}\", \"\", \"\")", self.name)
    }
}

/// The first moments of the shown time: how it was before. Grafana gives its beginning in milliseconds, Prometheus takes seconds.
const BEFORE: &str = "[$quiet] @ ${__from}e-3 offset -$quiet";
/// The last moments of it.
const AFTER: &str = "[$quiet]";
const NOW: &str = "[$__rate_interval]";

/// Of each signal the first time at which it was above what it had been, in milliseconds since 1970, as Grafana takes times.
fn first_moved() -> String {
    let signals = SHARES.iter().chain(&RATES).map(|signal| {
        let moved = format!(
            "{} > 3 * {} + {}",
            signal.over(NOW, "@node"),
            signal.over(BEFORE, "@node"),
            signal.floor
        );
        signal.named(&format!(
            "min_over_time(timestamp({moved})[$__range:$__interval])"
        ))
    });
    format!("1000 * ({})", signals.collect::<Vec<_>>().join(" or "))
}

fn each(signals: &[Signal], expr: impl Fn(&Signal) -> String) -> String {
    signals
        .iter()
        .map(|signal| signal.named(&expr(signal)))
        .collect::<Vec<_>>()
        .join(" or ")
}

fn first() -> Row {
    Row {
        title: "What moved first",
        panels: vec![
            Panel::new(
                View::Table(
                    vec![
                        Column::new("Value", "At").unit("dateTimeAsIso").width(180),
                        Column::new("device", "Port").link(ROW_TO_PORT_OF_NODE).width(110),
                        Column::new("signal", "What"),
                    ],
                    Order::Up("At"),
                ),
                "What moved first",
                "When each signal of each port was first above three times what it had been at the beginning. As fine as the scrape interval and the step; `rocewatch history --what-moved` on the node tells it to the second.",
                STORM,
            )
            .size(10, 11)
            .unit("none")
            .none("Nothing moved.")
            .now(first_moved(), "{{device}} {{signal}}"),
            Panel::new(View::Timeline, "Events", "What the agent found on this node, and when it was open. Times of events are exact to a sample.", STORM)
                .size(14, 11)
                .unit("none")
                .limits(ANY)
                .texts(OPEN_STATES)
                .none("No event was open.")
                .query(events_by_severity("device, event, direction", "@node,priority=~\"$priority\""), "{{device}} {{event}} {{direction}}"),
        ],
    }
}

fn compared() -> Row {
    let table = |title, description, scene: Scene, unit: &'static str, limits: Limits, signals: &[Signal]| {
        let columns = vec![
            Column::new("signal", "What").width(190),
            Column::new("Value #A", "Before").unit(unit).limits(limits),
            Column::new("Value #B", "Peak").unit(unit).limits(limits),
            Column::new("Value #C", "Mean").unit(unit).limits(limits),
            Column::new("Value #D", "After").unit(unit).limits(limits),
        ];
        Panel::new(
            View::Table(columns, Order::Down("Peak")),
            title,
            description,
            scene,
        )
        .size(9, 10)
        .unit(unit)
        .now(
            each(signals, |signal| signal.over(BEFORE, "@port")),
            "before {{signal}}",
        )
        .now(
            each(signals, |signal| {
                format!(
                    "max_over_time({}[$__range:$__interval])",
                    signal.over(NOW, "@port")
                )
            }),
            "peak {{signal}}",
        )
        .now(
            each(signals, |signal| signal.over("[$__range]", "@port")),
            "mean {{signal}}",
        )
        .now(
            each(signals, |signal| signal.over(AFTER, "@port")),
            "after {{signal}}",
        )
    };
    Row {
        title: "Before, during, after",
        panels: vec![
            table(
                "Shares of time, $device",
                "The chosen port: at the beginning of the shown time, at its worst, on the whole, and at its end.",
                STORM,
                "percentunit",
                PAUSE,
                &SHARES,
            ),
            table(
                "Things a second, $device",
                "The chosen port: at the beginning of the shown time, at its worst, on the whole, and at its end.",
                INCAST,
                "cps",
                Limits::None,
                &RATES,
            ),
            Panel::new(View::Timeline, "Links", "Carrier of each port.", FLAP)
                .size(6, 10)
                .unit("none")
                .limits(Limits::From(&[(-1.0, "red"), (1.0, "green")]))
                .texts(LINK_STATES)
                .query("max by (device) (rocewatch_port_up{@node})", "{{device}}"),
        ],
    }
}

fn course() -> Row {
    let lines =
        |title, description, scene| Panel::new(View::Lines, title, description, scene).link(TO_PORT_OF_NODE);
    let rate = |metric: &str| format!("max by (device) (rate({metric}{{@node}}[$__rate_interval]))");
    let paused = |direction: &str| {
        format!(
            "max by (device) (rate(rocewatch_pfc_pause_seconds_total{{@node,direction=\"{direction}\",priority=~\"$priority\"}}[$__rate_interval]))"
        )
    };
    Row {
        title: "The course of it",
        panels: vec![
            lines("Paused by the fabric", "Share of the time that the most paused priority may not send.", STORM)
                .share()
                .limits(PAUSE)
                .query(paused("rx"), "{{device}}"),
            lines("Pauses the switch", "Share of the time that the switch may not send.", SLOW_RECEIVER)
                .share()
                .limits(PAUSE)
                .query(paused("tx"), "{{device}}"),
            lines("Sent", "Share of the line in use, by bytes. All rails of a job fall with the one that is held.", STORM)
                .share()
                .limits(LINE)
                .query("max by (device) (rate(rocewatch_port_bytes_total{@node,direction=\"tx\"}[$__rate_interval]) / ignoring (direction) rocewatch_port_speed_bytes_per_second{@node})", "{{device}}"),
            lines("CNPs sent", "In answer to marked packets.", INCAST).unit("pps").query(rate("rocewatch_cnp_sent_total"), "{{device}}"),
            lines("RoCE errors", "The kind of which there are most, for each port.", BAD_CABLE)
                .unit("cps")
                .limits(SOME)
                .query(rate("rocewatch_roce_errors_total"), "{{device}}"),
            lines("Drops", "The reason that dropped most, for each port.", SLOW_RECEIVER)
                .unit("pps")
                .limits(SOME)
                .query(rate("rocewatch_drops_total"), "{{device}}"),
        ],
    }
}

fn elsewhere() -> Row {
    Row {
        title: "At the same time",
        panels: vec![
            Panel::new(
                View::Table(
                    vec![
                        Column::new("Value", "First seen").unit("dateTimeAsIso").width(180),
                        Column::new("instance", "Node"),
                        Column::new("device", "Port").link(ROW_TO_PORT),
                        Column::new("event", "Event"),
                        Column::new("severity", "Severity").texts(SEVERITIES),
                        Column::new("direction", "Direction"),
                    ],
                    Order::Up("First seen"),
                ),
                "Events of all nodes, in their order",
                "The hundred that were first open within the shown time. A storm that runs through the fabric begins where somebody sends pause: direction tx.",
                STORM,
            )
            .size(24, 10)
            .unit("none")
            .none("No event was open.")
            .now(
                "1000 * bottomk(100, min by (instance, device, event, severity, direction) (min_over_time(timestamp(rocewatch_event_active{@cluster} == 1)[$__range:$__interval])))",
                "{{instance}} {{device}} {{event}}",
            ),
        ],
    }
}
