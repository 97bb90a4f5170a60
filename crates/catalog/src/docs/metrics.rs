//! `docs/metrics.md`: the metric reference.

use super::{anchor, code, driver_link, series_of};
use crate::{DRIVERS, FAMILIES, Family, FamilyKind, From, Origin, Status};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Metrics

Everything that `/metrics` can hold. This file is written from `crates/catalog/data/metrics.toml`; change it there.

What holds for all of them:

- **Base units.** Seconds, bytes, ratios from 0 to 1. Counters end in `_total`.
- **Absent is not zero.** A series is there if this NIC can tell the value, and only then. `rate()` of an absent series
  is nothing, not 0; use `or vector(0)` only where you know that the NIC counts.
- **Raw first.** Counters are the cumulative values of the hardware, turned into base units and nothing else. Rates and
  ratios stand beside them.
- **Direction** is as seen from this node. `rx` pause: the fabric stopped us. `tx` pause: we stopped the switch.
- **A port** is known by `device` (`mlx5_0`), `port` (`1`) and `netdev` (`eth0`; empty if it has none). What else is known of
  it is in `rocewatch_port_info`, for joins:
  `rate(rocewatch_cnp_sent_total[1m]) * on (device, port, netdev) group_left (rail) rocewatch_port_info`.
- **A priority, or the whole port.** A metric with the label `priority` holds what the NIC counts by priority, one
  without it what the NIC counts for the port. Neither is made from the other. What is counted by traffic class or CoS
  queue has no metric of its own.
- **One value from one place.** Where a NIC counts the same thing in several ways the best one present is used, and
  parts of one thing are added up; [counters.md](counters.md) says which.
- **Resets.** A counter restarts when the hardware's does; `rate()` and `increase()` allow for it.
";

/// All metric families, as Markdown.
#[must_use]
pub fn metrics() -> String {
    let mut text = INTRODUCTION.to_owned();
    write_contents(&mut text);
    let mut section = "";
    for family in FAMILIES {
        if family.section != section {
            section = family.section;
            let _ = writeln!(text, "\n## {section}");
        }
        write_family(&mut text, family);
    }
    text
}

fn write_contents(text: &mut String) {
    text.push_str(
        "\nThose marked *minimal* go out with every profile (`metrics.profile`), the others with `standard` and `full`; what a profile\n\
         costs is in [scale.md](scale.md).\n",
    );
    text.push_str("\n| metric | type | labels beside those of the port |\n| --- | --- | --- |\n");
    for family in FAMILIES {
        let name = family.exposed_name();
        let _ = writeln!(
            text,
            "| [`{name}`](#{}) | {}{} | {} |",
            anchor(&name),
            kind(family.kind),
            match (family.status, family.essential) {
                (Status::Planned, _) => ", planned",
                (Status::Live, true) => ", minimal",
                (Status::Live, false) => "",
            },
            own_labels(family)
        );
    }
}

fn kind(kind: FamilyKind) -> &'static str {
    match kind {
        FamilyKind::Counter => "counter",
        FamilyKind::Gauge => "gauge",
        FamilyKind::Histogram => "histogram",
    }
}

fn own_labels(family: &Family) -> String {
    match family.labels {
        ["device", "port", "netdev", own @ ..] => codes(own),
        [] => "none, and none of the port".to_owned(),
        others => format!("{} only", codes(others)),
    }
}

fn codes(names: &[&str]) -> String {
    names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
}

fn write_family(text: &mut String, family: &'static Family) {
    let _ = writeln!(text, "\n### {}\n", family.exposed_name());
    let unit = match family.unit {
        "" => String::new(),
        "ratio" => ", a ratio".to_owned(),
        other => format!(" in {}", other.replace('_', " ")),
    };
    let labels = if family.labels.is_empty() {
        String::new()
    } else {
        format!(", labels {}", codes(family.labels))
    };
    let _ = writeln!(text, "*{}{unit}{labels}*\n\n{}", kind(family.kind), family.help);
    if family.status == Status::Planned {
        text.push_str("\n**Planned.** The name is kept; nothing is exposed under it yet.\n");
    }
    match family.origin {
        Origin::Counters => write_origins(text, family),
        Origin::Raw => text.push_str("\nNot converted, and off or selected by the configuration.\n"),
        Origin::Derived => text.push_str("\nCalculated by the agent from counters or facts of the port.\n"),
        Origin::Agent => text.push_str("\nThe agent of itself.\n"),
    }
}

fn write_origins(text: &mut String, family: &'static Family) {
    text.push_str("\n| labels | signal | counted by |\n| --- | --- | --- |\n");
    for from in family.from {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            fixed_labels(family, from),
            code(from.signal.as_str()),
            counted_by(family, from).join(", ")
        );
    }
}

fn fixed_labels(family: &Family, from: &From) -> String {
    let fixed = from
        .labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""));
    let index = family.index_label().map(|label| format!("{label}=…"));
    fixed
        .chain(index)
        .map(|label| code(&label))
        .collect::<Vec<_>>()
        .join(" ")
}

fn counted_by(family: &Family, from: &From) -> Vec<String> {
    DRIVERS
        .iter()
        .filter(|driver| {
            driver.entries.iter().any(|entry| {
                entry.signal == from.signal
                    && series_of(entry).is_some_and(|(fed, _)| fed.name == family.name)
            })
        })
        .map(driver_link)
        .collect()
}
