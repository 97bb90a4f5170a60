//! What one read of a source gave, in the form of `ethtool -S`.

use model::{ABSENT, Why, errno};
use std::fmt::Write as _;
use std::time::Duration;

/// How `ethtool -S` indents each statistic; what stands behind is the driver's name, spaces and colons included.
const INDENT: &str = "     ";
const HEADING: &str = "NIC statistics:";
const AFTER: &str = "# after ";
const ERROR: &str = "ERROR: ";
const NOT_APPLICABLE: &str = "NOT APPLICABLE: ";
/// The value of a counter that could not be read while others of its row could.
const NOT_READ: &str = "not read";

/// One read of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Time since the first reading of the source.
    pub after: Option<Duration>,
    /// What it gave.
    pub answer: Answer,
}

/// What a read gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Counters by the driver's names, in the driver's order; [`ABSENT`] for one that could not be read.
    Row(Vec<(String, u64)>),
    /// There is nothing to read, and why.
    NotApplicable(Why),
    /// It failed.
    Error(Why),
}

/// Reads the text of a reading. `what` tells in a message whose reading it is.
///
/// # Errors
/// The line that is wrong, and what is right.
pub(crate) fn parse(text: &str, what: &str) -> Result<Reading, crate::BadLine> {
    let mut after = None;
    let mut row = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let bad = |what: String| crate::BadLine { line: at + 1, what };
        if let Some(milliseconds) = line.strip_prefix(AFTER) {
            after = Some(milliseconds_of(milliseconds).map_err(bad)?);
        } else if let Some(error) = line.strip_prefix(ERROR) {
            let answer = match why(error, what) {
                // What node_exporter and people note for an interface without statistics.
                why if why.reason == "EOPNOTSUPP" => Answer::NotApplicable(why),
                why => Answer::Error(why),
            };
            return Ok(Reading { after, answer });
        } else if let Some(error) = line.strip_prefix(NOT_APPLICABLE) {
            let answer = Answer::NotApplicable(why(error, what));
            return Ok(Reading { after, answer });
        } else if !line.trim().is_empty() && !line.starts_with('#') && line != HEADING {
            row.push(counter(line).map_err(bad)?);
        }
    }
    Ok(Reading {
        after,
        answer: Answer::Row(row),
    })
}

fn milliseconds_of(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix(" ms").and_then(|number| number.parse().ok());
    number
        .map(Duration::from_millis)
        .ok_or_else(|| format!("{text:?} is no time: write it as in \"# after 1000 ms\""))
}

/// `95`, `EIO` or `no_statistics`, and what may follow it.
fn why(error: &str, what: &str) -> Why {
    let (word, detail) = error.trim_end().split_once(' ').unwrap_or((error.trim_end(), ""));
    let number = word.parse().ok().or_else(|| errno::number(word));
    match number {
        Some(number) if detail.is_empty() => errno::why(number, what),
        Some(number) => Why::new(errno::name(number), detail),
        // A word of this program's own. It lives as long as the process, as labels do; a capture is read once.
        None => Why::new(word.to_owned().leak(), detail),
    }
}

fn counter(line: &str) -> Result<(String, u64), String> {
    let wrong = || format!("{line:?} is no statistic: write it as ethtool does, \"     NAME: VALUE\"");
    let (name, value) = line.rsplit_once(": ").ok_or_else(wrong)?;
    let name = name.strip_prefix(INDENT).unwrap_or_else(|| name.trim_start());
    let value = if value == NOT_READ {
        ABSENT
    } else {
        value.trim().parse().map_err(|_| wrong())?
    };
    Ok((name.to_owned(), value))
}

/// The text of a reading, which [`parse`] reads back.
#[must_use]
pub(crate) fn print(reading: &Reading) -> String {
    let mut out = String::new();
    if let Some(after) = reading.after.filter(|after| !after.is_zero()) {
        let _ = writeln!(out, "{AFTER}{} ms", after.as_millis());
    }
    match &reading.answer {
        Answer::NotApplicable(why) => {
            let _ = writeln!(out, "{NOT_APPLICABLE}{}", one_line(why));
        }
        Answer::Error(why) => {
            let _ = writeln!(out, "{ERROR}{}", one_line(why));
        }
        Answer::Row(row) => {
            let _ = writeln!(out, "{HEADING}");
            for (name, value) in row {
                let _ = match *value {
                    ABSENT => writeln!(out, "{INDENT}{name}: {NOT_READ}"),
                    value => writeln!(out, "{INDENT}{name}: {value}"),
                };
            }
        }
    }
    out
}

fn one_line(why: &Why) -> String {
    format!("{} {}", why.reason, why.detail.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(text: &str) -> Vec<(String, u64)> {
        match parse(text, "x").unwrap().answer {
            Answer::Row(row) => row,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_output_of_ethtool_is_read_as_it_is() {
        // Names of vmxnet3 [node_exporter 2185].
        let text = "NIC statistics:\n     rx_packets: 12\n     Tx Queue#: 0\n          err: 3\n       bytes: 18446744073709551614\n";
        let right = [
            ("rx_packets", 12),
            ("Tx Queue#", 0),
            ("     err", 3),
            ("  bytes", u64::MAX - 1),
        ];
        let right: Vec<_> = right
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        assert_eq!(row(text), right);
    }

    #[test]
    fn an_error_is_a_content_too() {
        let answer = |text| parse(text, "ethtool statistics of bond0").unwrap().answer;
        let unsupported = answer("ERROR: 95\n");
        assert!(
            matches!(&unsupported, Answer::NotApplicable(why) if why.reason == "EOPNOTSUPP" && why.detail.contains("bond0")),
            "{unsupported:?}"
        );
        assert!(matches!(answer("ERROR: EIO"), Answer::Error(why) if why.reason == "EIO"));
        assert_eq!(
            answer("NOT APPLICABLE: no_statistics eth0 has none\n"),
            Answer::NotApplicable(Why::new("no_statistics", "eth0 has none"))
        );
    }

    #[test]
    fn what_is_no_statistic_is_named() {
        let bad = parse("NIC statistics:\n     rx: many\n", "x").unwrap_err();
        assert_eq!(bad.line, 2);
        assert!(bad.what.contains("NAME: VALUE"));
        assert!(parse("# after 5 s\n", "x").is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            names in prop::collection::vec(("[ a-zA-Z0-9_,:#]{0,30}[a-z0-9]", any::<u64>()), 0..20),
            after in prop::option::of(1..100_000u64),
        ) {
            let reading = Reading { after: after.map(Duration::from_millis), answer: Answer::Row(names) };
            prop_assert_eq!(parse(&print(&reading), "x").unwrap(), reading);
        }

        #[test]
        fn no_text_is_a_crash(text in "\\PC{0,200}") {
            let _ = parse(&text, "x");
        }
    }
}
