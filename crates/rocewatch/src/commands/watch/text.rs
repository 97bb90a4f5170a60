//! The report for people.

use super::report::{PortReport, Report, Traffic, Verdict};
use crate::report::timeline;
use jiff::Timestamp;
use std::fmt::Write as _;

/// The text.
pub(super) fn write(report: &Report) -> String {
    let mut out = format!(
        "rocewatch: {} ran for {:.1} s and ended with status {}\n",
        report.command.join(" "),
        report.seconds,
        report.exit_status
    );
    let (used, idle): (Vec<_>, Vec<_>) = report.ports.iter().partition(|port| !port.is_idle());
    if !used.is_empty() {
        table(&used, report.seconds, &mut out);
    }
    if !idle.is_empty() {
        let names: Vec<_> = idle.iter().map(|port| port.device.as_str()).collect();
        let _ = writeln!(out, "\n  carried nothing: {}", names.join(", "));
    }
    if let Some(rails) = &report.rails {
        let percent = |share: f64| share * 100.0;
        let _ = writeln!(
            out,
            "\n  rails: {} of {} carried traffic; of the middle one {} carried {:.0} %, {} {:.0} %",
            rails.carrying,
            rails.of,
            rails.least.device,
            percent(rails.least.of_median),
            rails.most.device,
            percent(rails.most.of_median),
        );
    }
    let verdict = match report.verdict {
        Verdict::Clean => "clean: nothing to say of any port",
        Verdict::Findings if report.findings.is_empty() => "no finding but what happened:",
        Verdict::Findings => "findings:",
        Verdict::NotMeasured => "no port's traffic could be measured: `rocewatch ports` tells why",
    };
    let _ = writeln!(out, "\n  {verdict}");
    for finding in &report.findings {
        let device = finding.device.as_deref().unwrap_or("node");
        let _ = writeln!(out, "    {device:<10} {}", finding.says);
    }
    events(report, &mut out);
    if !report.explanations.is_empty() {
        out.push_str("\n  taken together (rocewatch doctor --explain NAME tells more):\n");
    }
    for explanation in &report.explanations {
        let device = explanation.device.as_deref().unwrap_or("node");
        let priority = explanation
            .priority
            .map_or_else(String::new, |priority| format!(" on priority {priority}"));
        let _ = writeln!(
            out,
            "    {device:<10} {}{priority} ({}, confidence {}): {}",
            explanation.says,
            explanation.check,
            explanation.confidence,
            explanation.evidence.join(", ")
        );
    }
    if let Some(baseline) = &report.baseline {
        let _ = match baseline.regressions.len() {
            0 => writeln!(out, "\n  no worse than the run of {}", baseline.with),
            _ => writeln!(out, "\n  worse than the run of {}:", baseline.with),
        };
        for regression in &baseline.regressions {
            let _ = writeln!(out, "    {:<10} {}", regression.device, regression.says);
        }
    }
    out
}

/// What began and ended, by the time since the command was started.
fn events(report: &Report, out: &mut String) {
    // A report of this program has a time.
    let started: Option<Timestamp> = report.started.parse().ok();
    let started = started.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
    let Some(started) = started.filter(|_| !report.events.is_empty()) else {
        return;
    };
    out.push_str("\n  what happened, from the start on (docs/events.md tells more):\n");
    for (at, what) in timeline::changes(&report.events) {
        let _ = writeln!(out, "    {:>12}  {what}", timeline::after(started, at));
    }
    if report.further_events > 0 {
        let _ = writeln!(out, "    and {} further events", report.further_events);
    }
}

const HEADINGS: [&str; 11] = [
    "port",
    "link",
    "sent",
    "1 s",
    "peak",
    "received",
    "1 s",
    "peak",
    "paused",
    "CE",
    "CNP in/out",
];

fn table(ports: &[&PortReport], seconds: f64, out: &mut String) {
    let rows: Vec<[String; HEADINGS.len()]> = std::iter::once(HEADINGS.map(str::to_owned))
        .chain(ports.iter().map(|port| cells(port, seconds)))
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..HEADINGS.len()).map(width).collect();
    out.push('\n');
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "  {cell:<width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn cells(port: &PortReport, seconds: f64) -> [String; HEADINGS.len()] {
    let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    [
        format!("{}/{}", port.device, port.number),
        port.bits_per_second
            .map_or("-".to_owned(), |speed| format!("{:.0} Gbit/s", speed / 1e9)),
        amount(&port.tx, seconds),
        percent(port.tx.busiest_second),
        percent(port.tx.peak),
        amount(&port.rx, seconds),
        percent(port.rx.busiest_second),
        percent(port.rx.peak),
        worst_pause(port),
        count(port.ce_packets),
        format!("{}/{}", count(port.cnps_received), count(port.cnps_sent)),
    ]
}

/// Bandwidth over the run, or RDMA packets where bytes are not counted.
fn amount(traffic: &Traffic, seconds: f64) -> String {
    let bytes = traffic.bytes.or(traffic.rdma_bytes);
    match (bytes, traffic.utilization, traffic.rdma_packets) {
        (Some(bytes), Some(share), _) => {
            format!(
                "{:.1} Gbit/s ({:.0} %)",
                bytes * 8.0 / seconds / 1e9,
                share * 100.0
            )
        }
        // Of a line whose speed nobody knows, or that carried more than a line can.
        (Some(bytes), None, _) => format!("{:.3} GB", bytes / 1e9),
        (None, _, Some(packets)) => format!("{packets:.0} packets"),
        (None, _, None) => "-".to_owned(),
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// Received pause is what slows this node.
fn worst_pause(port: &PortReport) -> String {
    let received = port.pauses.iter().filter(|pause| pause.direction == "rx");
    let worst = received.filter_map(|pause| pause.seconds).reduce(f64::max);
    worst.map_or("-".to_owned(), |seconds| format!("{seconds:.3} s"))
}

impl PortReport {
    /// Nothing passed, and nothing happened.
    fn is_idle(&self) -> bool {
        let nothing = |value: Option<f64>| value.unwrap_or(0.0) == 0.0;
        let quiet = |traffic: &Traffic| nothing(traffic.bytes) && nothing(traffic.rdma_packets);
        quiet(&self.rx) && quiet(&self.tx) && self.faults.is_empty() && self.pauses.is_empty()
    }
}
