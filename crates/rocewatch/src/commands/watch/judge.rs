//! What of a run is worth saying. The numbers that decide are in `docs/jobs.md`.

use super::report::{
    Explanation, Finding, FindingKind, Pause, PortReport, RailShare, Rails, Traffic, Verdict,
};
use crate::event::EventRecord;
use doctor::{Policy, PortWindow};

/// A port that never reached so much of its line for a second is said not to have, …
const LINE_RATE: f64 = 0.8;
/// … unless it had less for a second than this share of its peak: then its traffic came in bursts, and those that are shorter
/// than a sampling interval may have been at full rate.
const SUSTAINED: f64 = 0.75;
/// A port whose peak was below this share of the line carried nothing to speak of.
const USED: f64 = 0.01;
/// Of two directions the lesser one is judged too from this share of the other on: less is acknowledgements.
const BOTH_WAYS: f64 = 0.5;
/// Pause is said from this share of the run on, …
const PAUSED: f64 = 0.01;
/// … or from this share of its busiest second on.
const PAUSED_A_SECOND: f64 = 0.1;
/// Marks are said from this share of the received RDMA packets on.
const MARKED: f64 = 0.01;
/// So many marks without a single CNP are no chance.
const MARKS: u64 = 100;
/// A rail that carried less than this share of the rails' median is said to.
const EVEN: f64 = 0.8;
/// A rail with less than this share of the busiest one's traffic took no part.
const TAKES_PART: f64 = 0.01;
/// What queue pairs do when they are torn down with work outstanding: told, not judged.
const ENDINGS: [&str; 2] = ["requester_flush", "responder_flush"];

/// The rails beside each other; `None` if fewer than two carried anything.
pub(super) fn rails(ports: &[PortReport]) -> Option<Rails> {
    let rails: Vec<_> = ports.iter().filter(|port| port.rail.is_some()).collect();
    let all = |amount: fn(&PortReport) -> Option<f64>| -> Option<Vec<f64>> {
        rails.iter().map(|port| amount(port)).collect()
    };
    let (unit, amounts) = match all(PortReport::bytes) {
        Some(amounts) => ("bytes", amounts),
        None => ("packets", all(PortReport::rdma_packets)?),
    };
    let busiest = amounts.iter().copied().fold(0.0, f64::max);
    let mut taking_part: Vec<_> = amounts
        .iter()
        .zip(&rails)
        .filter(|(amount, _)| **amount > 0.0 && **amount >= TAKES_PART * busiest)
        .map(|(amount, port)| (*amount, port.device.as_str()))
        .collect();
    taking_part.sort_by(|a, b| a.0.total_cmp(&b.0));
    let [least, .., most] = taking_part[..] else {
        return None;
    };
    let median = median(&taking_part);
    let share = |(amount, device): (f64, &str)| RailShare {
        device: device.to_owned(),
        of_median: amount / median,
    };
    Some(Rails {
        unit: unit.to_owned(),
        carrying: taking_part.len(),
        of: rails.len(),
        median,
        least: share(least),
        most: share(most),
    })
}

fn median(sorted: &[(f64, &str)]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1].0, sorted[middle].0)
    } else {
        sorted[middle].0
    }
}

/// Everything that is worth saying of the ports.
pub(super) fn findings(ports: &[PortReport], rails: Option<&Rails>) -> Vec<Finding> {
    let mut findings: Vec<_> = ports.iter().flat_map(of_port).collect();
    findings.extend(rails.and_then(uneven));
    findings
}

/// All in a word.
pub(super) fn verdict(ports: &[PortReport], findings: &[Finding], events: &[EventRecord]) -> Verdict {
    let measured = |port: &PortReport| port.bytes().is_some() || port.rdma_packets().is_some();
    let quiet = findings.is_empty() && events.iter().all(|event| event.severity == "info");
    match (ports.iter().any(measured), quiet) {
        (false, _) => Verdict::NotMeasured,
        (true, true) => Verdict::Clean,
        (true, false) => Verdict::Findings,
    }
}

/// What two looks at each port mean, by the doctor's table of verdicts.
pub(super) fn explanations(windows: &[PortWindow]) -> Vec<Explanation> {
    let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let explain = |verdict: doctor::Verdict| Explanation {
        check: verdict.check.id.to_owned(),
        device: verdict.port.map(|port| port.device),
        priority: verdict.priority,
        confidence: verdict.confidence.as_str().to_owned(),
        says: verdict.check.title.to_owned(),
        evidence: verdict
            .evidence
            .iter()
            .map(|evidence| format!("{}: {}", evidence.what, evidence.says))
            .collect(),
        otherwise: text(verdict.otherwise),
        advice: verdict.check.advice.to_owned(),
    };
    let verdicts = doctor::verdicts(windows, &Policy::default());
    verdicts.into_iter().map(explain).collect()
}

fn of_port(port: &PortReport) -> Vec<Finding> {
    let mut said = Vec::new();
    let mut say = |kind, says: String| {
        said.push(Finding {
            kind,
            device: Some(port.device.clone()),
            says,
        });
    };
    if port.gone {
        say(
            FindingKind::PortGone,
            "the port went away; what it did until then is told".to_owned(),
        );
    }
    for (direction, traffic) in port.judged() {
        let sustained = |busiest: &f64| *busiest >= SUSTAINED * traffic.peak.unwrap_or(0.0);
        if let Some(busiest) = traffic.busiest_second.filter(sustained)
            && busiest < LINE_RATE
        {
            let says = format!(
                "{direction} at {:.0} % of the line in its busiest second, below {:.0} %",
                busiest * 100.0,
                LINE_RATE * 100.0
            );
            say(FindingKind::BelowLineRate, says);
        }
    }
    for pause in port.pauses.iter().filter(|pause| is_noteworthy(pause)) {
        let (kind, whom) = match pause.direction.as_str() {
            "rx" => (FindingKind::Paused, "the fabric stopped this port"),
            _ => (FindingKind::Pausing, "this port stopped the fabric"),
        };
        say(kind, format!("{whom}{}", paused(pause)));
    }
    if let Some(share) = port.ce_share.filter(|share| *share >= MARKED) {
        let says = format!(
            "{:.1} % of the received RDMA packets were CE-marked: a switch on the way was congested",
            share * 100.0
        );
        say(FindingKind::Marked, says);
    }
    if let (Some(marks @ MARKS..), Some(0)) = (port.ce_packets, port.cnps_sent) {
        let says = format!("{marks} packets were CE-marked and no CNP was sent: notification is off");
        say(FindingKind::MarkedWithoutCnp, says);
    }
    if let Some(ignored @ 1..) = port.cnps_ignored {
        let says = format!(
            "{ignored} received CNPs were ignored: rate control is off, or they came on a wrong priority"
        );
        say(FindingKind::CnpIgnored, says);
    }
    let faults = port
        .faults
        .iter()
        .filter(|fault| !ENDINGS.contains(&fault.kind.as_str()));
    let faults: Vec<_> = faults.map(ToString::to_string).collect();
    if !faults.is_empty() {
        say(FindingKind::Faults, faults.join(", "));
    }
    if let Some(downs @ 1..) = port.link_downs {
        say(FindingKind::LinkDown, format!("the link went down {downs} times"));
    }
    if port.began_anew > 0 {
        let says = format!(
            "{} counters began anew, as when a driver is reloaded: what they counted is left out",
            port.began_anew
        );
        say(FindingKind::CountersBeganAnew, says);
    }
    said
}

/// Where time is measured it decides; frames alone say nothing of how long traffic stood still, but global pause has no
/// place on a port with RDMA at all.
fn is_noteworthy(pause: &Pause) -> bool {
    pause.share.is_some_and(|share| share >= PAUSED)
        || pause.busiest_second.is_some_and(|share| share >= PAUSED_A_SECOND)
        || (pause.seconds.is_none() && pause.frames.is_some_and(|frames| frames > 0.0))
}

fn paused(pause: &Pause) -> String {
    let on = pause.priority.map_or(" by global pause".to_owned(), |priority| {
        format!(" on priority {priority}")
    });
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let long = match (pause.seconds, pause.share) {
        (Some(seconds), Some(share)) => format!(" for {seconds:.3} s, {} of the run", percent(share)),
        (Some(seconds), None) => format!(" for {seconds:.3} s"),
        (None, _) => format!(
            " with {:.0} frames (this NIC does not measure for how long)",
            pause.frames.unwrap_or(0.0)
        ),
    };
    let busiest = pause
        .busiest_second
        .map(|share| format!(" ({} of the worst second)", percent(share)));
    format!("{on}{long}{}", busiest.unwrap_or_default())
}

fn uneven(rails: &Rails) -> Option<Finding> {
    (rails.least.of_median < EVEN).then(|| Finding {
        kind: FindingKind::RailsUneven,
        device: None,
        says: format!(
            "{} carried {:.0} % of what the middle one of {} rails did",
            rails.least.device,
            rails.least.of_median * 100.0,
            rails.carrying
        ),
    })
}

impl PortReport {
    /// Received and sent.
    pub(super) fn bytes(&self) -> Option<f64> {
        let of = |traffic: &Traffic| traffic.bytes.or(traffic.rdma_bytes);
        Some(of(&self.rx)? + of(&self.tx)?)
    }

    pub(super) fn rdma_packets(&self) -> Option<f64> {
        Some(self.rx.rdma_packets? + self.tx.rdma_packets?)
    }

    /// The directions whose speed says something.
    pub(super) fn judged(&self) -> impl Iterator<Item = (&'static str, &Traffic)> {
        let peak = |traffic: &Traffic| traffic.peak.unwrap_or(0.0);
        let most = peak(&self.rx).max(peak(&self.tx));
        let least = (BOTH_WAYS * most).max(USED);
        [("received", &self.rx), ("sent", &self.tx)]
            .into_iter()
            .filter(move |(_, traffic)| peak(traffic) >= least)
    }
}

impl std::fmt::Display for super::report::Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The metric without what all of them begin and end with.
        let family = self
            .metric
            .trim_start_matches(catalog::PREFIX)
            .trim_end_matches("_total");
        write!(f, "{} {family}", self.count)?;
        if !self.kind.is_empty() {
            write!(f, " {}", self.kind)?;
        }
        self.priority
            .map_or(Ok(()), |priority| write!(f, " of priority {priority}"))
    }
}
