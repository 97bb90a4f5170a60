//! The table of events as a document.

use super::Thresholds;
use super::info::EVENTS;
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
        "\nNothing opens in the first {} after a port was first looked at. In the first {} after a boot, while links train,\n\
         nothing of the link opens. While a link is down, and for {} after, nothing opens that this explains.\n",
        time(thresholds.startup_grace),
        time(thresholds.boot_grace),
        time(thresholds.link_grace),
    );
    text.push_str("These are the defaults. A window is a second, a sampling interval mostly 200 ms.\n\n| event | severity | what is measured | opens | closes |\n| --- | --- | --- | --- | --- |\n");
    for info in EVENTS {
        let rule = thresholds.rule(info.kind);
        let _ = writeln!(
            text,
            "| [`{kind}`](#{kind}) | {} | {} | ≥ {}{} | < {}{} |",
            info.severity.as_str(),
            info.measure,
            rule.open_at,
            lasting(rule.open_after),
            rule.close_below,
            lasting(rule.close_after),
            kind = info.kind,
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
