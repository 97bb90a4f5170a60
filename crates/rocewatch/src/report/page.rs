//! The report of an incident as one page of text.

use super::timeline::{self, after, seconds};
use super::{Measured, Moved, PortCourse, Report, Told};
use crate::event::EventRecord;
use crate::shown::{number, sparkline};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt::Write as _;

/// Bars that a course is drawn in.
const BARS: usize = 40;
/// Signals that moved; more of them tell no more.
const MOST_MOVED: usize = 12;
/// A measure is shown if it is this many times what it was before, or as many times less.
const NOTEWORTHY: f64 = 1.5;
/// … and if it is not next to nothing: a share of a line or of a time, or so many a second.
const LEAST_SHARE: f64 = 0.001;
const LEAST_PER_SECOND: f64 = 10.0;
/// A line of text is this long at most.
const WIDTH: usize = 110;

/// The text, with times in `zone`.
pub(crate) fn page(report: &Report, zone: &TimeZone) -> String {
    let mut out = String::new();
    heading(report, zone, &mut out);
    verdicts(&report.verdicts, &mut out);
    timeline(report, &mut out);
    first_movers(report, &mut out);
    ports(&report.ports, &mut out);
    holders(report, zone, &mut out);
    if !report.damages.is_empty() {
        let _ = writeln!(out, "\nNot all of it can be read:");
        for damage in &report.damages {
            let _ = writeln!(out, "  {damage}");
        }
    }
    out
}

fn clock(time: i64, zone: &TimeZone, format: &str) -> String {
    let time = Timestamp::from_nanosecond(time.into()).unwrap_or_default();
    time.to_zoned(zone.clone()).strftime(format).to_string()
}

fn heading(report: &Report, zone: &TimeZone, out: &mut String) {
    let incident = &report.incident;
    let _ = writeln!(out, "Incident {}", incident.id);
    let began = clock(incident.began, zone, "%Y-%m-%d %H:%M:%S%.3f %Z");
    let node = incident.node.as_deref().unwrap_or("this node");
    let _ = writeln!(out, "{began} on {node}, {}", lasted(&incident.events));
    match report.rows {
        Some(rows) => {
            let time = |time| clock(time, zone, "%H:%M:%S");
            let _ = writeln!(
                out,
                "rows of {} ports at full rate from {} to {}",
                report.ports.len(),
                time(rows.from),
                time(rows.to)
            );
        }
        None => out.push_str("no rows of it can be read\n"),
    }
}

fn lasted(events: &[EventRecord]) -> String {
    if events.iter().any(|event| event.ended.is_none()) {
        return "still going on when its rows were kept".to_owned();
    }
    let first = events.iter().map(|event| event.began).min();
    let last = events.iter().filter_map(|event| event.ended).max();
    match first.zip(last) {
        Some((first, last)) => format!("over after {}", seconds(first, last)),
        None => "without an event".to_owned(),
    }
}

fn verdicts(verdicts: &[Told], out: &mut String) {
    out.push_str("\nVERDICT\n");
    if verdicts.is_empty() {
        out.push_str("  The traffic of these ports tells no cause: it cannot be told from this host.\n");
    }
    for verdict in verdicts {
        let place = match (&verdict.device, verdict.port) {
            (Some(device), Some(port)) => format!("{device}/{port}"),
            _ => "the node".to_owned(),
        };
        let priority = verdict
            .priority
            .map(|priority| format!(" priority {priority}"))
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "  {} ({place}{priority}; confidence {})",
            verdict.title, verdict.confidence
        );
        paragraph("because", &verdict.evidence.join("; "), out);
        if !verdict.otherwise.is_empty() {
            paragraph("or it is", &verdict.otherwise.join("; "), out);
        }
        paragraph("do", verdict.advice, out);
    }
}

/// Text under a label, wrapped.
fn paragraph(label: &str, text: &str, out: &mut String) {
    let mut line = format!("    {label:<9}");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(13);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

fn timeline(report: &Report, out: &mut String) {
    let began = report.incident.began;
    let mut changes = timeline::changes(&report.incident.events);
    let earlier = report.incident.earlier.iter();
    changes.extend(earlier.map(|event| {
        let what = timeline::words(event);
        (event.began, format!("{what}: had begun, and ended before"))
    }));
    changes.sort();
    out.push_str("\nTIMELINE\n");
    for (at, what) in changes {
        let _ = writeln!(out, "  {:>12}  {what}", after(began, at));
    }
}

fn first_movers(report: &Report, out: &mut String) {
    out.push_str("\nWHAT MOVED FIRST (within one reading's interval: the cause before its effects)\n");
    if report.moved.is_empty() {
        out.push_str("  Nothing left the range of the minute before.\n");
    }
    for moved in report.moved.iter().take(MOST_MOVED) {
        let _ = writeln!(
            out,
            "  {:>12}  {:<14} {:<36} {:>10}, usually {} to {}",
            after(report.incident.began, moved.at),
            format!("{}/{}", moved.device, moved.port),
            name(moved),
            number(moved.value),
            number(moved.usual.0),
            number(moved.usual.1)
        );
    }
    if let Some(more) = report
        .moved
        .len()
        .checked_sub(MOST_MOVED)
        .filter(|more| *more > 0)
    {
        let _ = writeln!(out, "  and {more} more; --json has all");
    }
}

fn name(moved: &Moved) -> String {
    match moved.priority {
        Some(priority) => format!("{} priority {priority}", moved.signal),
        None => moved.signal.to_owned(),
    }
}

fn ports(ports: &[PortCourse], out: &mut String) {
    out.push_str("\nPORTS\n");
    let mut quiet = Vec::new();
    for port in ports {
        let shown: Vec<_> = port
            .measures
            .iter()
            .filter(|measured| is_noteworthy(measured))
            .collect();
        let name = format!("{}/{}", port.device, port.port);
        if shown.is_empty() {
            quiet.push(name);
            continue;
        }
        let netdev = port.netdev.as_deref().unwrap_or_default();
        let _ = writeln!(
            out,
            "  {:<38} {:>10} {:>10} {:>10} {:>10}",
            format!("{name} {netdev}"),
            "before",
            "during",
            "peak",
            "after"
        );
        for measured in shown {
            measure(measured, out);
        }
    }
    if !quiet.is_empty() {
        let _ = writeln!(out, "  as before: {}", quiet.join(", "));
    }
}

/// Who was on the devices, those of what happened first.
fn holders(report: &Report, zone: &TimeZone, out: &mut String) {
    let incident = &report.incident;
    let Some(holders) = &incident.holders else {
        out.push_str("\nQUEUE PAIRS\n  Who held them is not known: nobody asked, or the agent ended before it had an answer.\n");
        return;
    };
    let at = clock(holders.at, zone, "%H:%M:%S");
    let _ = writeln!(out, "\nQUEUE PAIRS, held at {at}");
    let events = || incident.events.iter();
    let concerned = |device: &str| events().any(|event| event.subject.device.as_deref() == Some(device));
    holders.write(concerned, out);
}

fn measure(measured: &Measured, out: &mut String) {
    let shown = |value: Option<f64>| match value {
        Some(value) if measured.unit == "ratio" => format!("{:.1} %", value * 100.0),
        Some(value) if measured.unit == "state" => format!("{value:.1}"),
        Some(value) => format!("{}/s", number(value)),
        None => String::new(),
    };
    let _ = writeln!(
        out,
        "    {:<36} {:>10} {:>10} {:>10} {:>10}  {}",
        measured.measure,
        shown(measured.before),
        shown(measured.during),
        shown(measured.peak),
        shown(measured.after),
        course(&measured.course)
    );
}

fn is_noteworthy(measured: &Measured) -> bool {
    let (Some(before), Some(during)) = (measured.before, measured.during) else {
        return measured.during.is_some_and(|during| during > 0.0);
    };
    let least = match measured.unit {
        "ratio" => LEAST_SHARE,
        "state" => 0.0,
        _ => LEAST_PER_SECOND,
    };
    let (more, less) = (before.max(during), before.min(during));
    more > least && more >= less * NOTEWORTHY
}

/// A course as a row of bars, each the highest of its seconds.
fn course(values: &[Option<f64>]) -> String {
    let width = values.len().div_ceil(BARS).max(1);
    let bars: Vec<f64> = values
        .chunks(width)
        .map(|chunk| chunk.iter().flatten().copied().fold(0.0, f64::max))
        .collect();
    sparkline(&bars)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(unit: &'static str, before: f64, during: f64) -> Measured {
        Measured {
            measure: "pause received",
            unit,
            before: Some(before),
            during: Some(during),
            peak: None,
            after: None,
            course: Vec::new(),
        }
    }

    #[test]
    fn what_changed_is_noteworthy() {
        assert!(is_noteworthy(&measured("ratio", 0.0, 0.9)));
        assert!(
            is_noteworthy(&measured("state", 1.0, 0.2)),
            "a link that was down"
        );
        assert!(!is_noteworthy(&measured("ratio", 0.0, 0.000_5)));
        assert!(!is_noteworthy(&measured("per second", 100.0, 120.0)));
        assert!(!is_noteworthy(&measured("per second", 0.0, 3.0)));
    }

    #[test]
    fn a_course_shows_the_highest_of_each_bar() {
        let mut seconds = vec![Some(0.0); 120];
        seconds[60] = Some(1.0);
        let bars: Vec<char> = course(&seconds).chars().collect();
        assert_eq!((bars.len(), bars[20], bars[19]), (40, '█', '▁'));
    }
}
