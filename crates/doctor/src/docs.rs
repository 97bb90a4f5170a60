//! The table of checks as texts.

use crate::check::{Area, Check, Severity, Status, check};
use crate::table::CHECKS;
use std::fmt::Write;

const INTRODUCTION: &str = "# Checks

What `rocewatch doctor` looks at, and what the daemon looks at when it starts, when something changes and every hour. This file is
written by `UPDATE_DOCS=1 cargo test -p rocewatch-doctor` from the table in `crates/doctor/src/table`, which also feeds
`rocewatch doctor --explain CHECK` and the labels of `rocewatch_doctor_finding`.

What cannot be read gives no finding. A fabric that is healthy but otherwise than most is described in the section `[policy]` of the
configuration, and then gives none either. A verdict on traffic never rests on one counter alone: it names its evidence, how sure it is,
and what else it could be.

`rocewatch doctor` ends with status 0 if nothing is found, 1 if the worst is a warning, 2 if it is an error; notes do not count.
`--fail-on error`, `--fail-on warning`, `--fail-on note` and `--fail-on never` say from which severity on the status is not 0.
";

/// `docs/checks.md`.
#[must_use]
pub fn checks() -> String {
    let mut text = INTRODUCTION.to_owned();
    for severity in Severity::ALL {
        let meaning = match severity {
            Severity::Error => "RDMA traffic is lost, stopped or far slower",
            Severity::Warning => "performance or safety is less than it could be",
            Severity::Note => "worth knowing",
        };
        let _ = write!(text, "\n- **{severity}**: {meaning}");
    }
    text.push('\n');
    for area in Area::ALL {
        let _ = writeln!(
            text,
            "\n## {}\n\n| check | severity | what is wrong |\n| --- | --- | --- |",
            area.title()
        );
        for check in of(area) {
            let _ = writeln!(
                text,
                "| [`{id}`](#{id}) | {} | {} |",
                check.severity,
                check.title,
                id = check.id
            );
        }
        for check in of(area) {
            let _ = write!(text, "\n### {}\n\n{}", check.id, body(check, "**", "**"));
        }
    }
    text
}

fn of(area: Area) -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().copied().filter(move |check| check.area == area)
}

/// The long story of a check, for a terminal; `None` if there is no check of this name.
#[must_use]
pub fn explain(id: &str) -> Option<String> {
    let check = check(id)?;
    Some(format!(
        "{} ({})\n\n{}",
        check.id,
        check.area.title(),
        body(check, "", "")
    ))
}

fn body(check: &Check, strong: &str, end: &str) -> String {
    let kind = match check.status() {
        Status::Configuration => "",
        Status::Traffic => ", on traffic",
    };
    let mut text = format!(
        "{strong}{}{end} ({}{kind}). {}\n\n{strong}When.{end} {}\n\n{strong}Read from.{end} {}.\n\n{strong}What to do.{end} {}\n",
        check.title, check.severity, check.why, check.fires, check.reads, check.advice
    );
    if !check.commands.is_empty() {
        text.push('\n');
        for command in check.commands {
            let _ = writeln!(text, "    {command}");
        }
    }
    text
}
