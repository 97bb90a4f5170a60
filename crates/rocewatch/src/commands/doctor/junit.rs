//! What the doctor says, as `JUnit` XML: a test case for each check, which fails once for each finding.

use super::Examination;
use doctor::{CHECKS, Check, Evidence, PortName};
use std::fmt::Write as _;

/// The whole report. Verdicts and notes are failures as well: whoever reads it decides by `type`.
pub(super) fn of(found: &Examination) -> String {
    let failures: Vec<_> = CHECKS.iter().map(|check| of_check(found, check)).collect();
    let failed = failures.iter().filter(|failures| !failures.is_empty()).count();
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let counts = format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\"", CHECKS.len());
    let _ = writeln!(
        text,
        "<testsuites {counts}>\n<testsuite name=\"rocewatch doctor\" {counts}>"
    );
    for (check, failures) in CHECKS.iter().zip(failures) {
        let (class, name) = (escaped(check.area.title()), check.id);
        if failures.is_empty() {
            let _ = writeln!(text, "<testcase classname=\"{class}\" name=\"{name}\"/>");
        } else {
            let _ = writeln!(
                text,
                "<testcase classname=\"{class}\" name=\"{name}\">\n{}</testcase>",
                failures.concat()
            );
        }
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

fn of_check(found: &Examination, check: &Check) -> Vec<String> {
    let findings = found.findings.iter().filter(|finding| finding.check == check);
    let findings =
        findings.map(|finding| failure(check, finding.port.as_ref(), &finding.evidence, &finding.commands));
    let verdicts = found.verdicts.iter().filter(|verdict| verdict.check == check);
    let verdicts = verdicts.map(|verdict| failure(check, verdict.port.as_ref(), &verdict.evidence, &[]));
    findings.chain(verdicts).collect()
}

fn failure(check: &Check, port: Option<&PortName>, evidence: &[Evidence], commands: &[String]) -> String {
    let port = port.map_or("node", |port| &port.device);
    let mut body = String::new();
    for Evidence { what, says } in evidence {
        let _ = writeln!(body, "{what}: {says}");
    }
    let _ = writeln!(body, "{}\n{}", check.why, check.advice);
    for command in commands {
        let _ = writeln!(body, "    {command}");
    }
    format!(
        "<failure type=\"{}\" message=\"{}\">{}</failure>\n",
        check.severity,
        escaped(&format!("{port}: {}", check.title)),
        escaped(&body)
    )
}

/// Text for an element or attribute; what XML 1.0 cannot hold is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(character),
            other if other.is_control() => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_xml_is_escaped() {
        assert_eq!(escaped("a < b & \"c\"\u{1}\n"), "a &lt; b &amp; &quot;c&quot;\n");
    }
}
