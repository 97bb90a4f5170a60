//! The table of events as a document.

use super::info::{EVENTS, EventInfo};
use super::latch::Rule;
use super::{EventKind, Thresholds};
use std::fmt::Write;

const INTRODUCTION: &str = "# Events

What Rocewatch notices by itself: when it begins and ends, what it means, what it does not mean, and what to do. This file is
written by `UPDATE_DOCS=1 cargo test -p rocewatch-signals` from the table in `crates/signals/src/detect/info.rs`, which also
feeds the help texts and runbook links.

An event opens when its value has been at the opening threshold or above for the opening time, and closes when it has been
below the closing threshold for the closing time. It *began* with the first sample that showed it, which is before it opened,
and *ended* with the first that no longer did. What cannot be seen opens nothing and closes nothing: a source that fails, a
counter that began anew, or PFC that was switched off is no recovery. Nothing is judged by totals, only by their change; and no
traffic is not a fault.
";

/// `docs/events.md`.
#[must_use]
pub fn events() -> String {
    let thresholds = Thresholds::default();
    let mut text = INTRODUCTION.to_owned();
    let _ = writeln!(
        text,
        "\nNothing opens in the first {} after a port was first looked at. In the first {} after a boot, while links train, \
         nothing of the link opens. While a link is down, and for {} after, nothing opens that this explains.\n",
        time(thresholds.startup_grace),
        time(thresholds.boot_grace),
        time(thresholds.link_grace),
    );
    text.push_str("| event | what | severity | opens | closes |\n| --- | --- | --- | --- | --- |\n");
    for EventInfo {
        kind,
        title,
        severity,
        ..
    } in EVENTS
    {
        let (value, rule) = rule(&thresholds, *kind);
        let _ = writeln!(
            text,
            "| [`{kind}`](#{kind}) | {title} | {} | {value} ≥ {}{} | < {}{} |",
            severity.as_str(),
            number(rule.open_at),
            lasting(rule.open_after),
            number(rule.close_below),
            lasting(rule.close_after),
        );
    }
    for info in EVENTS {
        let _ = write!(
            text,
            "\n## {}\n\n**{}** ({}). {}\n\n**What it does not mean.** {}\n\n**What to do.** {}\n",
            info.kind,
            info.title,
            info.severity.as_str(),
            info.meaning,
            info.not_meaning,
            info.what_to_do
        );
    }
    text
}

/// What decides about a kind, and how.
fn rule(thresholds: &Thresholds, kind: EventKind) -> (&'static str, Rule) {
    let t = thresholds;
    match kind {
        EventKind::PfcStorm => ("share of an interval paused (sent: 0.9)", t.storm_rx),
        EventKind::SustainedPause => ("share of a window paused", t.sustained_pause),
        EventKind::PauseWithoutCe => ("share of a window paused, no CNP", t.pause_without_ce),
        EventKind::PauseOnLossyPriority => ("frames a second", t.pause_on_lossy_priority),
        EventKind::GlobalPause => ("frames a second", t.global_pause),
        EventKind::DropsOnLosslessPriority => ("drops a second", t.drops_on_lossless_priority),
        EventKind::CnpSpike => ("times the usual CNPs per packet", t.cnp_spike),
        EventKind::CeWithoutCnp => ("marks a second, no CNP", t.ce_without_cnp),
        EventKind::CnpIgnored => ("share of CNPs ignored", t.cnp_ignored),
        EventKind::TransportErrors => ("errors a second", t.transport_errors),
        EventKind::LinkDown => ("carrier lost", t.link_down),
        EventKind::LinkFlap => ("losses in ten minutes", t.link_flap),
        EventKind::SpeedBelowUsual => ("share of the speed missing", t.speed_below_usual),
        EventKind::FecDegraded => (
            "multiple of 1e-5 bit errors, or lost code words a second",
            t.fec_degraded,
        ),
        EventKind::PcieBackpressure => ("percent stalled, or drops a second", t.pcie_backpressure),
        EventKind::RailImbalance => ("busiest rail by the mean", t.rail_imbalance),
        EventKind::CounterReset => ("counters", t.counter_reset),
        EventKind::SourceStalled => ("sources", t.source_stalled),
        EventKind::SourceFrozen => ("sources", t.source_frozen),
        EventKind::DeviceGone => ("devices", t.device_gone),
    }
}

fn number(value: f64) -> String {
    value.to_string()
}

fn lasting(nanoseconds: u64) -> String {
    if nanoseconds == 0 {
        ", at once".to_owned()
    } else {
        format!(" for {}", time(nanoseconds))
    }
}

fn time(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds / 1_000_000;
    if milliseconds.is_multiple_of(1000) {
        format!("{} s", milliseconds / 1000)
    } else {
        format!("{milliseconds} ms")
    }
}
