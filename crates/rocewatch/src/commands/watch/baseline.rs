//! A run beside an earlier one. What counts as worse is in `docs/jobs.md`.

use super::report::{Comparison, Fault, Pause, PortReport, Regression, Report, SHAPE};
use crate::failure::Failure;
use crate::files;
use std::path::Path;

/// The busiest second may be so much slower than then, …
const BUSIEST: f64 = 0.05;
/// … and the whole run, in which starting up counts too.
const AVERAGE: f64 = 0.1;
/// Pause and marks may take so much more of the run, or of the packets.
const SHARE: f64 = 0.01;
/// Errors of a kind may be twice as many and so many more.
const FAULTS: u64 = 10;

/// The report of the earlier run.
pub(super) fn load(path: &Path) -> Result<Report, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!(
            "{}: {error}; a baseline is what `rocewatch watch --save FILE -- COMMAND` writes",
            path.display()
        ))
    };
    let text = files::read_text(path).map_err(|error| wrong(&error))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    if report.shape == SHAPE {
        Ok(report)
    } else {
        Err(wrong(&format!("it is of shape {}, not {SHAPE}", report.shape)))
    }
}

/// What is worse now, in a run of `seconds`.
pub(super) fn compare(then: &Report, now: &[PortReport], seconds: f64) -> Comparison {
    let of_port = |was: &PortReport| {
        let same = |is: &&PortReport| (&is.device, is.number) == (&was.device, was.number);
        let Some(is) = now.iter().find(same) else {
            return missing(was);
        };
        let mut worse = Worse {
            device: &was.device,
            found: Vec::new(),
        };
        worse.traffic(was, is, seconds / then.seconds);
        worse.pauses(was, is);
        worse.marks(was, is);
        worse.faults(was, is);
        worse.found
    };
    Comparison {
        with: then.started.clone(),
        regressions: then.ports.iter().flat_map(of_port).collect(),
    }
}

fn missing(was: &PortReport) -> Vec<Regression> {
    let mut worse = Worse {
        device: &was.device,
        found: Vec::new(),
    };
    if was.bytes().or(was.rdma_packets()) > Some(0.0) {
        worse.note("port", 1.0, 0.0, "it carried traffic then, and is not there now");
    }
    worse.found
}

/// What is worse of one port.
struct Worse<'a> {
    device: &'a str,
    found: Vec<Regression>,
}

impl Worse<'_> {
    fn note(&mut self, what: impl Into<String>, was: f64, is: f64, says: impl Into<String>) {
        self.found.push(Regression {
            device: self.device.to_owned(),
            what: what.into(),
            was,
            is,
            says: says.into(),
        });
    }

    /// Speed, in the directions in which there was any; `longer` is how many times as long this run took.
    fn traffic(&mut self, was: &PortReport, is: &PortReport, longer: f64) {
        let judged: Vec<_> = was.judged().map(|(direction, _)| direction).collect();
        for (direction, was, is) in [("received", &was.rx, &is.rx), ("sent", &was.tx, &is.tx)] {
            if judged.contains(&direction) {
                self.slower(
                    direction,
                    "in the busiest second",
                    (was.busiest_second, is.busiest_second),
                    BUSIEST,
                );
                self.slower(
                    direction,
                    "over the run",
                    (was.utilization, is.utilization),
                    AVERAGE,
                );
            } else if was.bytes.is_none() {
                // Without bytes packets tell, per time.
                let packets = is.rdma_packets.map(|packets| packets / longer);
                self.slower(
                    direction,
                    "in RDMA packets per second",
                    (was.rdma_packets, packets),
                    AVERAGE,
                );
            }
        }
    }

    fn slower(&mut self, direction: &str, when: &str, values: (Option<f64>, Option<f64>), tolerance: f64) {
        let what = format!("{direction} {when}");
        match values {
            (Some(was), None) if was > 0.0 => {
                let says = format!("{what}: it was measured then, and is not now");
                self.note(what, was, 0.0, says);
            }
            (Some(was), Some(is)) if is < was * (1.0 - tolerance) => {
                let says = format!(
                    "{what}: {:.1} % less than then, more than {:.0} %",
                    (1.0 - is / was) * 100.0,
                    tolerance * 100.0
                );
                self.note(what, was, is, says);
            }
            _ => {}
        }
    }

    fn pauses(&mut self, was: &PortReport, is: &PortReport) {
        for pause in &is.pauses {
            let like =
                |other: &&Pause| (&other.direction, other.priority) == (&pause.direction, pause.priority);
            let before = was.pauses.iter().find(like).and_then(|pause| pause.share);
            let priority = pause
                .priority
                .map_or("all".to_owned(), |priority| priority.to_string());
            let what = format!("{} pause of priority {priority}", pause.direction);
            self.larger_share(&what, before, pause.share);
        }
    }

    fn marks(&mut self, was: &PortReport, is: &PortReport) {
        self.larger_share("CE-marked packets", was.ce_share, is.ce_share);
    }

    fn larger_share(&mut self, what: &str, was: Option<f64>, is: Option<f64>) {
        // What was zero then was left out.
        let (was, is) = (was.unwrap_or(0.0), is.unwrap_or(0.0));
        if is > was + SHARE {
            let says = format!("{what}: {:.1} % instead of {:.1} %", is * 100.0, was * 100.0);
            self.note(what, was, is, says);
        }
    }

    fn faults(&mut self, was: &PortReport, is: &PortReport) {
        for fault in &is.faults {
            let like = |other: &&Fault| {
                (&other.metric, &other.kind, other.priority) == (&fault.metric, &fault.kind, fault.priority)
            };
            let before = was.faults.iter().find(like).map_or(0, |fault| fault.count);
            if fault.count > 2 * before + FAULTS {
                let says = format!("{fault} instead of {before}");
                self.note(&fault.kind, before as f64, fault.count as f64, says);
            }
        }
        let (before, downs) = (was.link_downs.unwrap_or(0), is.link_downs.unwrap_or(0));
        if downs > before {
            let says = format!("the link went down {downs} times instead of {before}");
            self.note("link down", before as f64, downs as f64, says);
        }
    }
}
