//! What is told of a simulated server, whose counters agree with each other.

use super::observer::{Observer, View};
use super::report::{Finding, FindingKind, PortReport, Report, SHAPE, Verdict};
use super::{baseline, judge, text, windows};
use doctor::Look;
use model::{Host, Opened, Port, Read, Source, SourceKind};
use ring::Window;
use signals::{Options, PortSignals};
use sim::{Scenario, Simulator, StepClock};
use std::sync::Arc;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(200);
const READ: [SourceKind; 6] = [
    SourceKind::Settings,
    SourceKind::Dcb,
    SourceKind::Ethtool,
    SourceKind::HwCounters,
    SourceKind::PortCounters,
    SourceKind::Link,
];

struct Rail {
    port: Port,
    sources: Vec<Box<dyn Source>>,
    signals: PortSignals,
}

impl Rail {
    fn new(host: &Simulator, port: Port) -> Self {
        let opened = READ.into_iter().filter_map(|kind| match host.open(&port, kind) {
            Opened::Active(source) => Some(source),
            _ => None,
        });
        let sources: Vec<_> = opened.collect();
        let mut signals = PortSignals::new(Options {
            window: 1_000_000_000,
        });
        sources
            .iter()
            .for_each(|source| signals.open(Arc::clone(source.schema())));
        signals.settle();
        Self {
            port,
            sources,
            signals,
        }
    }

    fn read(&mut self, now: u64) {
        for source in &mut self.sources {
            let kind = source.schema().source;
            let mut row = vec![0; source.schema().columns.len()];
            if source.read(&mut row) == Read::Row {
                let window = Window {
                    began: now,
                    ended: now,
                };
                self.signals.row(kind, window, &row);
                self.signals.set_fresh(kind, true);
            }
        }
    }
}

fn views(rails: &[Rail]) -> impl Iterator<Item = View<'_>> {
    rails.iter().enumerate().map(|(at, rail)| View {
        port: &rail.port,
        rail: Some(at),
        signals: &rail.signals,
    })
}

/// What is told of `seconds` of a scenario, from `after` on.
fn played(scenario: Scenario, seed: u64, after: u64, seconds: u32) -> Report {
    let clock = StepClock::default();
    let time = clock.clone();
    let host = Simulator::new(scenario, seed, move || time.now());
    let ports = host.ports().expect("the simulator lists its ports");
    let mut rails: Vec<_> = ports.into_iter().map(|port| Rail::new(&host, port)).collect();
    clock.advance(Duration::from_secs(after));
    rails.iter_mut().for_each(|rail| rail.read(clock.now()));
    let looks = |rails: &[Rail], now| -> Vec<Look> {
        views(rails)
            .map(|view| Look::at(now, view.port, view.signals))
            .collect()
    };
    let before = looks(&rails, clock.now());
    let mut observer = Observer::begin(views(&rails));
    for _ in 0..seconds * 5 {
        clock.advance(TICK);
        rails.iter_mut().for_each(|rail| rail.read(clock.now()));
        observer.look(views(&rails));
    }
    let windows = windows(&before, &looks(&rails, clock.now()));
    let seconds = f64::from(seconds);
    let ports = observer.end(seconds);
    let rails = judge::rails(&ports);
    let findings = judge::findings(&ports, rails.as_ref());
    Report {
        shape: SHAPE,
        rocewatch: "0".into(),
        command: vec!["all_reduce_perf".into()],
        started: "2026-11-29T03:12:00Z".into(),
        seconds,
        exit_status: 0,
        verdict: judge::verdict(&ports, &findings),
        ports,
        rails,
        findings,
        explanations: judge::explanations(&windows),
        baseline: None,
    }
}

fn kinds(report: &Report) -> Vec<(FindingKind, Option<&str>)> {
    let findings = report.findings.iter();
    findings
        .map(|finding| (finding.kind, finding.device.as_deref()))
        .collect()
}

fn says(report: &Report, kind: FindingKind) -> &Finding {
    let found = report.findings.iter().find(|finding| finding.kind == kind);
    found.unwrap_or_else(|| panic!("no {kind:?} in {:#?}", report.findings))
}

#[test]
fn a_healthy_job_is_clean_and_its_rails_are_even() {
    let report = played(Scenario::Healthy, 1, 30, 20);
    assert_eq!((report.verdict, kinds(&report)), (Verdict::Clean, vec![]));
    for port in &report.ports {
        for traffic in [&port.rx, &port.tx] {
            let [whole, busiest, peak] = [traffic.utilization, traffic.busiest_second, traffic.peak]
                .map(|share| share.expect("counted"));
            assert!(
                0.2 < whole && whole < busiest && busiest < peak && peak < 0.95,
                "{traffic:?}"
            );
            let bits = traffic.bytes.expect("counted") * 8.0 / report.seconds;
            assert!(bits < whole * 400e9 && bits > 0.95 * whole * 400e9, "{traffic:?}");
        }
    }
    assert_eq!(report.explanations, []);
    let rails = report.rails.as_ref().expect("eight rails");
    assert_eq!((rails.carrying, rails.of, rails.unit.as_str()), (8, 8, "bytes"));
    assert!(rails.least.of_median > 0.95 && rails.most.of_median < 1.05);
    let text = text::write(&report);
    assert!(text.contains("clean: nothing to say"), "{text}");
}

#[test]
fn each_trouble_is_found_on_the_port_that_has_it() {
    let incast = played(Scenario::Incast, 1, 30, 20);
    let marked = says(&incast, FindingKind::Marked);
    assert_eq!(marked.device.as_deref(), Some("mlx5_3"), "{:#?}", incast.findings);
    let storm = played(Scenario::PfcStorm, 1, 0, 120);
    let kinds_of_storm = kinds(&storm);
    assert!(
        kinds_of_storm
            .iter()
            .any(|(kind, _)| *kind == FindingKind::Paused),
        "{kinds_of_storm:?}"
    );
    let explained = |report: &Report| {
        let checks = report.explanations.iter();
        let told = checks.map(|told| (told.check.clone(), told.device.clone().unwrap_or_default()));
        told.collect::<Vec<_>>()
    };
    let text = text::write(&storm);
    assert!(
        !explained(&storm).is_empty() && text.contains("taken together"),
        "{text}"
    );
    let ignored = played(Scenario::CnpIgnored, 1, 30, 20);
    assert!(says(&ignored, FindingKind::CnpIgnored).says.contains("ignored"));
    let uneven = played(Scenario::RailImbalance, 1, 60, 20);
    says(&uneven, FindingKind::RailsUneven);
    let flapping = played(Scenario::LinkFlap, 1, 0, 120);
    says(&flapping, FindingKind::LinkDown);
    let cable = played(Scenario::BadCable, 1, 30, 60);
    says(&cable, FindingKind::Faults);
    let reset = played(Scenario::CounterReset, 1, 0, 120);
    says(&reset, FindingKind::CountersBeganAnew);
}

#[test]
fn a_worse_run_is_a_regression_and_an_equal_one_is_not() {
    let then = played(Scenario::Healthy, 1, 30, 20);
    let again = played(Scenario::Healthy, 2, 30, 20);
    assert_eq!(baseline::compare(&then, &again.ports, 20.0).regressions, []);
    let worse = played(Scenario::Incast, 1, 30, 20);
    let regressions = baseline::compare(&then, &worse.ports, 20.0).regressions;
    assert!(
        !regressions.is_empty() && regressions.iter().all(|regression| regression.device == "mlx5_3"),
        "{regressions:#?}"
    );
    let fewer = &again.ports[1..];
    let regressions = baseline::compare(&then, fewer, 20.0).regressions;
    assert_eq!(regressions.len(), 1);
    assert!(regressions[0].says.contains("not there now"), "{regressions:?}");
}

#[test]
fn a_report_reads_back_as_it_was_written() {
    let report = played(Scenario::Incast, 1, 30, 5);
    let text = serde_json::to_string(&report).unwrap();
    let read: Report = serde_json::from_str(&text).unwrap();
    // Numbers are written so that they read back; the parser is right to the last bit but one.
    assert_eq!(read.findings, report.findings);
    assert_eq!(read.ports.len(), 8);
    assert_eq!(read.ports[3].pauses.len(), report.ports[3].pauses.len());
    assert_eq!(baseline::compare(&read, &report.ports, 5.0).regressions, []);
}

#[test]
fn what_cannot_be_measured_is_not_zero() {
    let nothing = PortReport {
        device: "efa_0".into(),
        ..PortReport::default()
    };
    assert_eq!(
        judge::verdict(std::slice::from_ref(&nothing), &[]),
        Verdict::NotMeasured
    );
    assert_eq!(judge::rails(&[nothing]), None);
}
