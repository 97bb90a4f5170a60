//! What the doctor says, as the API and `doctor --format json` tell it.

use doctor::{Check, Evidence, Finding, PortName, Verdict};
use serde::Serialize;

/// All that the doctor says.
#[derive(Serialize)]
pub(crate) struct Report {
    /// How long ago the configuration was looked at; absent before the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) looked_seconds_ago: Option<f64>,
    findings: Vec<Said>,
    verdicts: Vec<Said>,
}

/// One finding or verdict.
#[derive(Serialize)]
struct Said {
    check: &'static str,
    severity: &'static str,
    title: &'static str,
    device: Option<String>,
    port: Option<u32>,
    netdev: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<&'static str>,
    evidence: Vec<Read>,
    why: &'static str,
    advice: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    otherwise: &'static [&'static str],
}

#[derive(Serialize)]
struct Read {
    what: String,
    says: String,
}

impl Report {
    /// These findings and verdicts.
    pub(crate) fn of(findings: &[Finding], verdicts: &[Verdict]) -> Self {
        Self {
            looked_seconds_ago: None,
            findings: findings.iter().map(finding).collect(),
            verdicts: verdicts.iter().map(verdict).collect(),
        }
    }
}

fn said(check: &'static Check, port: Option<&PortName>, evidence: &[Evidence]) -> Said {
    let read = |evidence: &Evidence| Read {
        what: evidence.what.clone(),
        says: evidence.says.clone(),
    };
    Said {
        check: check.id,
        severity: check.severity.as_str(),
        title: check.title,
        device: port.map(|port| port.device.clone()),
        port: port.map(|port| port.id.number),
        netdev: port.and_then(|port| port.netdev.clone()),
        priority: None,
        confidence: None,
        evidence: evidence.iter().map(read).collect(),
        why: check.why,
        advice: check.advice,
        commands: Vec::new(),
        otherwise: &[],
    }
}

fn finding(finding: &Finding) -> Said {
    Said {
        commands: finding.commands.clone(),
        ..said(finding.check, finding.port.as_ref(), &finding.evidence)
    }
}

fn verdict(verdict: &Verdict) -> Said {
    Said {
        priority: verdict.priority,
        confidence: Some(verdict.confidence.as_str()),
        otherwise: verdict.otherwise,
        ..said(verdict.check, verdict.port.as_ref(), &verdict.evidence)
    }
}
