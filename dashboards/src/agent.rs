//! What Rocewatch costs, and whether it sees everything.

use crate::common::{ANY, FAULT_STATES, HEALTHY, RESET, ROW_TO_NODE, SOME, STUCK, node_marks, variables};
use crate::grafana::{Column, Dashboard, Limits, Order, Panel, Row, Scene, View};

pub(crate) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "rocewatch-agent",
        title: "Rocewatch agents",
        description: "What Rocewatch costs the nodes, and whether it sees everything: of all agents first, then of one.",
        from: "now-1h",
        variables: variables(true, false, false),
        annotations: node_marks(),
        rows: vec![all(), blind(), cost(), sight(), service()],
    }
}

/// A share of one CPU: one in a hundred is what a node does not notice.
const CPU: Limits = Limits::From(&[(0.02, "yellow"), (0.1, "red")]);
/// Resident memory of an agent.
const MEMORY: Limits = Limits::From(&[(64e6, "yellow"), (256e6, "red")]);
/// Share of wall time in which a source is being read: the default bound is one in a hundred.
const DUTY: Limits = Limits::From(&[(0.01, "yellow"), (0.05, "red")]);
/// Seconds that one read takes.
const READ: Limits = Limits::From(&[(0.1, "yellow"), (1.0, "red")]);
const MISSED: Limits = Limits::From(&[(0.001, "yellow"), (0.05, "red")]);

/// What Prometheus and the process tell has no name of Rocewatch's: of its agents alone.
const OF_AGENTS: &str = "and on (cluster, job, instance) rocewatch_build_info{@cluster}";

fn all() -> Row {
    let number = |title, description, scene| {
        Panel::new(View::Number, title, description, scene)
            .size(3, 5)
            .unit("none")
    };
    let ranking = |title, description| Panel::new(View::Ranking, title, description, HEALTHY).size(5, 10);
    Row {
        title: "All agents",
        panels: vec![
            number("Agents", "Agents that Prometheus hears.", HEALTHY).query("count(rocewatch_build_info{@cluster})", "agents"),
            number("Silent agents", "Heard within the last hour, and not now.", HEALTHY)
                .limits(ANY)
                .quiet()
                .query("count(last_over_time(rocewatch_build_info{@cluster}[1h]) unless on (cluster, instance) rocewatch_build_info{@cluster}) or vector(0)", "silent"),
            number("Versions", "Different versions that run.", HEALTHY)
                .limits(Limits::From(&[(2.0, "yellow")]))
                .query("count(count by (version) (rocewatch_build_info{@cluster}))", "versions"),
            ranking("CPU", "The ten agents that take most of a CPU.")
                .unit("percentunit")
                .limits(CPU)
                .now(format!("topk(10, rate(process_cpu_seconds_total{{@cluster}}[5m]) {OF_AGENTS})"), "{{instance}}"),
            ranking("Memory", "The ten agents with most resident memory.")
                .unit("bytes")
                .limits(MEMORY)
                .now(format!("topk(10, process_resident_memory_bytes{{@cluster}} {OF_AGENTS})"), "{{instance}}"),
            ranking("Scrape", "The ten slowest scrapes, as Prometheus saw them.")
                .unit("s")
                .limits(Limits::From(&[(0.5, "yellow"), (2.0, "red")]))
                .now(format!("topk(10, scrape_duration_seconds{{@cluster}} {OF_AGENTS})"), "{{instance}}"),
        ],
    }
}

fn blind() -> Row {
    Row {
        title: "What is not seen",
        panels: vec![
            Panel::new(
                View::Table(
                    vec![
                        Column::new("instance", "Node").link(ROW_TO_NODE),
                        Column::new("device", "Device"),
                        Column::new("source", "Source"),
                        Column::new("reason", "Reason"),
                    ],
                    Order::Up("Node"),
                ),
                "Sources that fail",
                "Of all nodes, 100 at most. Their values are absent meanwhile.",
                STUCK,
            )
            .none("Every source is read.")
            .now("topk(100, rocewatch_source_state{@cluster,state=\"failed\"} == 1)", "{{instance}} {{device}} {{source}}"),
            Panel::new(View::Ranking, "Missed samples", "The ten agents that missed the largest share of what they wanted to read, over five minutes.", STUCK)
                .share()
                .limits(MISSED)
                .now(
                    "topk(10, sum by (cluster, instance) (rate(rocewatch_samples_missed_total{@cluster}[5m])) / (sum by (cluster, instance) (rate(rocewatch_samples_total{@cluster}[5m])) + sum by (cluster, instance) (rate(rocewatch_samples_missed_total{@cluster}[5m])) > 0))",
                    "{{instance}}",
                ),
            Panel::new(View::Table(
                    vec![
                        Column::new("instance", "Node").link(ROW_TO_NODE),
                        Column::new("Value #A", "Stalled").limits(ANY),
                        Column::new("Value #B", "Frozen").limits(ANY),
                        Column::new("Value #C", "Series left out").limits(ANY),
                        Column::new("Value #D", "Full counters").limits(ANY),
                    ],
                    Order::Up("Node"),
                ),
                "Blind spots",
                "Agents with sources that hang, sources that stand still, series for which there was no room, or counters at the end of their width; 25 of each at most.",
                STUCK,
            )
            .unit("none")
            .quiet()
            .none("None.")
            .now("topk(25, sum by (instance) (rocewatch_source_stalled{@cluster}))", "{{instance}}")
            .now("topk(25, sum by (instance) (rocewatch_source_frozen{@cluster}))", "{{instance}}")
            .now("topk(25, sum by (instance) (rocewatch_series_left_out{@cluster}))", "{{instance}}")
            .now("topk(25, sum by (instance) (rocewatch_source_full_counters{@cluster}))", "{{instance}}"),
        ],
    }
}

fn lines(title: &'static str, description: &'static str, scene: Scene) -> Panel {
    Panel::new(View::Lines, title, description, scene).size(6, 8)
}

fn cost() -> Row {
    let of_agent = "and on (cluster, job, instance) rocewatch_build_info{@node}";
    Row {
        title: "What it costs $node",
        panels: vec![
            lines("CPU of $node", "Share of one CPU.", HEALTHY)
                .unit("percentunit")
                .limits(CPU)
                .query(format!("rate(process_cpu_seconds_total{{@node}}[$__rate_interval]) {of_agent}"), "CPU"),
            lines("Memory of $node", "Resident. Rings are as long as they were asked to be, and do not grow.", HEALTHY)
                .unit("bytes")
                .limits(MEMORY)
                .query(format!("process_resident_memory_bytes{{@node}} {of_agent}"), "resident"),
            lines("Time spent reading", "Share of wall time in which a source of any device is being read, on the slowest device of each. The agent reads less often rather than spend more than it may.", HEALTHY)
                .unit("percentunit")
                .limits(DUTY)
                .query("max by (source) (rate(rocewatch_source_read_seconds_sum{@node}[$__rate_interval]))", "{{source}}"),
            lines("Length of a read", "The slowest hundredth of the reads, by source: what the driver and its firmware take.", HEALTHY)
                .unit("s")
                .limits(READ)
                .query("histogram_quantile(0.99, sum by (source, le) (rate(rocewatch_source_read_seconds_bucket{@node}[$__rate_interval])))", "{{source}}"),
            lines("Threads and files", "Neither of them grows while the agent runs.", HEALTHY)
                .unit("none")
                .limits(Limits::From(&[(200.0, "yellow"), (1000.0, "red")]))
                .query(format!("process_threads{{@node}} {of_agent}"), "threads")
                .query(format!("process_open_fds{{@node}} {of_agent}"), "open files"),
            lines("Rows in memory", "Rows of all sources that the rings hold: they fill, and then stay.", HEALTHY)
                .unit("none")
                .query("rocewatch_ring_rows{@node}", "rows"),
            lines("Series", "Places for series, and what a scrape brought.", HEALTHY)
                .unit("none")
                .query("rocewatch_series{@node}", "places")
                .query(format!("scrape_samples_scraped{{@node}} {of_agent}"), "scraped"),
            lines("Scrape", "How long Prometheus waited for the exposition.", HEALTHY)
                .unit("s")
                .limits(Limits::From(&[(0.5, "yellow"), (2.0, "red")]))
                .query(format!("scrape_duration_seconds{{@node}} {of_agent}"), "scrape"),
        ],
    }
}

fn sight() -> Row {
    let by_source = |metric: &str| format!("sum by (source) (rate({metric}{{@node}}[$__rate_interval]))");
    Row {
        title: "Whether it sees everything on $node",
        panels: vec![
            lines("Samples", "Rows that are read, by source, of all devices.", HEALTHY)
                .unit("cps")
                .query(by_source("rocewatch_samples_total"), "{{source}}"),
            lines("Missed samples", "Rows that should have been read and were not.", STUCK)
                .unit("cps")
                .limits(SOME)
                .query(by_source("rocewatch_samples_missed_total"), "{{source}}"),
            lines("Failed reads", "By source and reason.", STUCK)
                .unit("cps")
                .limits(SOME)
                .none("No read failed.")
                .query("sum by (source, reason) (rate(rocewatch_source_errors_total{@node}[$__rate_interval]))", "{{source}} {{reason}}"),
            lines("Interval", "How often each source is read: as wanted, or less often where reading costs too much. The slowest device.", HEALTHY)
                .unit("s")
                .query("max by (source) (rocewatch_source_interval_seconds{@node})", "{{source}}"),
            Panel::new(View::Timeline, "Sources that fail", "In the state failed, by device and source.", STUCK)
                .size(12, 7)
                .unit("none")
                .limits(ANY)
                .texts(FAULT_STATES)
                .none("No source has failed.")
                .query("max by (device, source) (rocewatch_source_state{@node,state=\"failed\"})", "{{device}} {{source}}"),
            Panel::new(View::Timeline, "Sources that hang or stand still", "A read that does not come back, or values that stay while traffic passes.", STUCK)
                .size(6, 7)
                .unit("none")
                .limits(ANY)
                .texts(FAULT_STATES)
                .quiet()
                .query("max by (source) (rocewatch_source_stalled{@node})", "{{source}} hangs")
                .query("max by (source) (rocewatch_source_frozen{@node})", "{{source}} stands still"),
            Panel::new(View::Bars, "Resets and implausible samples", "Counters that began anew, and samples that cannot be true. Neither enters a rate.", RESET)
                .size(6, 7)
                .unit("none")
                .limits(SOME)
                .query("sum(increase(rocewatch_resets_total{@node}[$__rate_interval]))", "resets")
                .query("sum(increase(rocewatch_samples_implausible_total{@node}[$__rate_interval]))", "implausible"),
        ],
    }
}

fn service() -> Row {
    Row {
        title: "What $node answers and keeps",
        panels: vec![
            lines("Requests", "Answers, by path and status.", HEALTHY)
                .unit("reqps")
                .query(
                    "sum by (path, status) (rate(rocewatch_http_requests_total{@node}[$__rate_interval]))",
                    "{{path}} {{status}}",
                ),
            lines(
                "Running since",
                "The time for which the agent runs; it falls when it starts anew.",
                HEALTHY,
            )
            .unit("s")
            .query("time() - rocewatch_up_since_seconds{@node}", "uptime"),
        ],
    }
}
