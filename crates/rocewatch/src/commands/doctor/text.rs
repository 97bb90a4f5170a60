//! What the doctor says, for people.

use super::Examination;
use doctor::{Check, Evidence, Finding, PortName, Severity, Verdict};
use std::fmt::Write as _;

/// Ports of one check that are shown with their evidence; further ones are named.
const SHOWN: usize = 3;

/// The whole answer.
pub(super) fn of(found: &Examination, colour: bool) -> String {
    if found.ports == 0 && found.findings.is_empty() && found.verdicts.is_empty() {
        return "No RDMA device with RoCE: nothing to check.\n".to_owned();
    }
    let mut page = Page {
        text: String::new(),
        colour,
    };
    for severity in Severity::ALL {
        page.findings(severity, &found.findings);
        page.verdicts(severity, &found.verdicts);
    }
    page.end(found);
    page.text
}

struct Page {
    text: String,
    colour: bool,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// `text` in the colour of the severity.
    fn coloured(&self, severity: Severity, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    fn heading(&mut self, check: &Check) {
        let severity = self.coloured(check.severity, check.severity.as_str());
        self.line(&format!("{severity}: {} [{}]", check.title, check.id));
    }

    /// The findings of one severity, by check.
    fn findings(&mut self, severity: Severity, all: &[Finding]) {
        let mut told: Vec<&Check> = Vec::new();
        for first in all.iter().filter(|finding| finding.severity() == severity) {
            if told.contains(&first.check) {
                continue;
            }
            told.push(first.check);
            self.heading(first.check);
            let same = || all.iter().filter(|finding| finding.check == first.check);
            for finding in same().take(SHOWN) {
                self.evidence(finding.port.as_ref(), &finding.evidence);
            }
            let others: Vec<_> = same()
                .skip(SHOWN)
                .map(|finding| name(finding.port.as_ref()))
                .collect();
            if !others.is_empty() {
                self.line(&format!("  the same on {}", others.join(", ")));
            }
            self.line(&format!("  why: {}", first.check.why));
            self.line(&format!("  mend: {}", first.check.advice));
            for finding in same().take(SHOWN) {
                for command in &finding.commands {
                    self.line(&format!("    {command}"));
                }
            }
            self.line("");
        }
    }

    fn verdicts(&mut self, severity: Severity, all: &[Verdict]) {
        for verdict in all.iter().filter(|verdict| verdict.check.severity == severity) {
            self.heading(verdict.check);
            self.evidence(verdict.port.as_ref(), &verdict.evidence);
            self.line(&format!("  confidence: {}", verdict.confidence));
            for otherwise in verdict.otherwise {
                self.line(&format!("  or: {otherwise}"));
            }
            self.line(&format!("  why: {}", verdict.check.why));
            self.line(&format!("  mend: {}", verdict.check.advice));
            self.line("");
        }
    }

    fn evidence(&mut self, port: Option<&PortName>, evidence: &[Evidence]) {
        let read: Vec<_> = evidence
            .iter()
            .map(|evidence| format!("{}: {}", evidence.what, evidence.says))
            .collect();
        self.line(&format!("  {}  {}", name(port), read.join("; ")));
    }

    fn end(&mut self, found: &Examination) {
        let count = |severity| found.severities().filter(|other| *other == severity).count();
        let ports = counted(found.ports, "RoCE port");
        let counts = Severity::ALL.map(|severity| (severity, count(severity)));
        if counts.iter().all(|(_, count)| *count == 0) {
            self.line(&format!("{ports}: nothing wrong was found."));
            return;
        }
        let some: Vec<_> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(severity, count)| counted(*count, severity.as_str()))
            .collect();
        let _ = writeln!(
            self.text,
            "{ports}: {}. `rocewatch doctor --explain CHECK` tells more.",
            some.join(", ")
        );
    }
}

fn name(port: Option<&PortName>) -> String {
    match port {
        None => "node".to_owned(),
        Some(port) => match &port.netdev {
            Some(netdev) if *netdev != port.device => format!("{} ({netdev})", port.device),
            _ => port.device.clone(),
        },
    }
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
