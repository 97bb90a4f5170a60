//! What Rocewatch costs, and whether it sees everything.

use crate::common::{ANY, FAULT_STATES, HEALTHY, RESET, ROW_TO_NODE, SOME, STUCK, port_marks, variables};
use crate::grafana::{Column, Dashboard, Limits, Order, Panel, Row, Scene, Texts, View};

pub(crate) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "rocewatch-agent",
        title: "Rocewatch agents",
        description: "What Rocewatch costs the nodes, and whether it sees everything: of all agents first, then of one.",
        from: "now-1h",
        variables: variables(true, false, false),
        annotations: port_marks("@node"),
        rows: vec![all(), cost(), sight(), service()],
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
const SOURCE_STATES: Texts = &[
    ("active", "active", "green"),
    ("not_applicable", "not applicable", "text"),
    ("failed", "failed", "red"),
];
const MISSED: Limits = Limits::From(&[(0.001, "yellow"), (0.05, "red")]);

/// What Prometheus and the process tell has no name of Rocewatch's: of its agents alone.
const OF_AGENTS: &str = "and on (cluster, job, instance) rocewatch_build_info{@cluster}";

fn all() -> Row {
    let number = |title, description, scene| {
        Panel::new(View::Number, title, description, scene)
            .size(3, 4)
            .unit("none")
    };
    let fault = |title, description| number(title, description, HEALTHY).limits(ANY).quiet();
    let ranking = |title, description| Panel::new(View::Ranking, title, description, HEALTHY);
    Row {
        title: "All agents",
        panels: vec![
            number("Agents", "Agents that Prometheus hears.", HEALTHY).query("count(rocewatch_build_info{@cluster})", "agents"),
            fault("Silent agents", "Heard within the last hour, and not now.")
                .now("count(last_over_time(rocewatch_build_info{@cluster}[1h]) unless on (cluster, instance) rocewatch_build_info{@cluster}) or vector(0)", "silent"),
            number("Versions", "Different versions that run.", HEALTHY)
                .limits(Limits::From(&[(2.0, "yellow")]))
                .query("count(count by (version) (rocewatch_build_info{@cluster}))", "versions"),
            fault("Failed sources", "Sources that could not be opened, or are gone. Their values are absent.")
                .now("sum(rocewatch_source_state{@cluster,state=\"failed\"}) or vector(0)", "failed"),
            fault("Hanging sources", "A read that does not come back: the driver or its firmware hangs.")
                .now("sum(rocewatch_source_stalled{@cluster})", "hanging"),
            fault("Frozen sources", "Counters that stand still while traffic passes. Their values are left out.")
                .now("sum(rocewatch_source_frozen{@cluster})", "frozen"),
            fault("Full counters", "Counters at the end of their width, where they stop. They are left out until somebody clears them.")
                .now("sum(rocewatch_source_full_counters{@cluster})", "full"),
            fault("Series left out", "Series for which metrics.max_series left no room.")
                .now("sum(rocewatch_series_left_out{@cluster})", "left out"),
            ranking("CPU", "The ten agents that take most of a CPU.")
                .unit("percentunit")
                .limits(CPU)
                .now(format!("topk(10, rate(process_cpu_seconds_total{{@cluster}}[$__rate_interval]) {OF_AGENTS})"), "{{instance}}"),
            ranking("Memory", "The ten agents with most resident memory.")
                .unit("bytes")
                .limits(MEMORY)
                .now(format!("topk(10, process_resident_memory_bytes{{@cluster}} {OF_AGENTS})"), "{{instance}}"),
            ranking("Scrape", "The ten slowest scrapes, as Prometheus saw them.")
                .unit("s")
                .limits(Limits::From(&[(0.5, "yellow"), (2.0, "red")]))
                .now(format!("topk(10, scrape_duration_seconds{{@cluster}} {OF_AGENTS})"), "{{instance}}"),
            Panel::new(
                View::Table(
                    vec![
                        Column::new("instance", "Node").link(ROW_TO_NODE),
                        Column::new("device", "Device"),
                        Column::new("source", "Source"),
                        Column::new("reason", "Reason"),
                        Column::new("Value", "Failing").unit("cps").limits(SOME),
                    ],
                    Order::Down("Failing"),
                ),
                "Reads that fail",
                "Of all nodes, the hundred sources with most failing reads. Their values are absent meanwhile.",
                STUCK,
            )
            .size(12, 8)
            .unit("cps")
            .limits(SOME)
            .none("Every read succeeds.")
            .now("topk(100, rate(rocewatch_source_errors_total{@cluster}[$__rate_interval]) > 0)", "{{instance}} {{device}} {{source}}"),
            Panel::new(View::Ranking, "Missed samples", "The ten agents that missed the largest share of what they wanted to read.", STUCK)
                .size(12, 8)
                .unit("percentunit")
                .limits(MISSED)
                .now(
                    "topk(10, sum by (cluster, instance) (rate(rocewatch_samples_missed_total{@cluster}[$__rate_interval])) / (sum by (cluster, instance) (rate(rocewatch_samples_total{@cluster}[$__rate_interval])) + sum by (cluster, instance) (rate(rocewatch_samples_missed_total{@cluster}[$__rate_interval])) > 0))",
                    "{{instance}}",
                ),
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
            Panel::new(
                View::Table(
                    vec![
                        Column::new("source", "Source"),
                        Column::new("state", "State").texts(SOURCE_STATES),
                        Column::new("reason", "Reason"),
                        Column::new("Value", "Devices"),
                    ],
                    Order::Up("Source"),
                ),
                "Sources",
                "How many devices have each source in each state, and why it is not read where it is not.",
                HEALTHY,
            )
            .size(12, 8)
            .unit("none")
            .now("count by (source, state, reason) (rocewatch_source_state{@node} == 1)", "{{source}} {{state}}"),
            Panel::new(View::Timeline, "Sources that hang or stand still", "A read that does not come back, or values that stay while traffic passes.", STUCK)
                .size(6, 8)
                .unit("none")
                .limits(ANY)
                .texts(FAULT_STATES)
                .quiet()
                .query("max by (source) (rocewatch_source_stalled{@node})", "{{source}} hangs")
                .query("max by (source) (rocewatch_source_frozen{@node})", "{{source}} stands still"),
            Panel::new(View::Bars, "Resets and implausible samples", "Counters that began anew, and samples that cannot be true. Neither enters a rate.", RESET)
                .size(6, 8)
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
                "Uptime",
                "The time for which the agent runs; it falls when it starts anew.",
                HEALTHY,
            )
            .unit("s")
            .query("time() - rocewatch_up_since_seconds{@node}", "uptime"),
            lines("Archive", "Bytes that history takes on disk, within its bound. Absent where the agent keeps none.", HEALTHY)
                .unit("bytes")
                .query("rocewatch_archive_bytes{@node}", "on disk"),
            lines("Archived rows", "Rows that are written (left), and rows that found no room because the disk did not take them (right).", HEALTHY)
                .unit("cps")
                .query("rate(rocewatch_archive_rows_total{@node}[$__rate_interval])", "written")
                .query("rate(rocewatch_archive_lost_rows_total{@node}[$__rate_interval])", "lost")
                .right("B", "cps", "lost")
                .color("B", "red"),
        ],
    }
}
