//! What is told of a simulated server, whose counters agree with each other.

use super::super::agent;
use super::happened::Happened;
use super::observer::{Observer, View};
use super::report::{Finding, FindingKind, PortReport, Report, SHAPE, Verdict};
use super::{baseline, judge, text, windows};
use crate::clock::Clock;
use crate::config::Config;
use crate::event::EventRecord;
use doctor::Look;
use jiff::Timestamp;
use model::{Host, Opened, Port, Read, Source, SourceKind};
use ring::Window;
use signals::{Options, PortSignals};
use sim::{Scenario, Setup, Simulator, Speed, StepClock};
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
        for source in &sources {
            signals.open(Arc::clone(source.schema()));
        }
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

fn read(rails: &mut [Rail], now: u64) {
    for rail in rails {
        rail.read(now);
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
    read(&mut rails, clock.now());
    let looks = |rails: &[Rail], now| -> Vec<Look> {
        views(rails)
            .map(|view| Look::at(now, view.port, view.signals))
            .collect()
    };
    let before = looks(&rails, clock.now());
    let mut observer = Observer::begin(views(&rails));
    for _ in 0..seconds * 5 {
        clock.advance(TICK);
        read(&mut rails, clock.now());
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
        verdict: judge::verdict(&ports, &findings, &[]),
        ports,
        rails,
        findings,
        events: Vec::new(),
        further_events: 0,
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
        judge::verdict(std::slice::from_ref(&nothing), &[], &[]),
        Verdict::NotMeasured
    );
    assert_eq!(judge::rails(&[nothing]), None);
}

#[test]
fn what_the_detectors_find_meanwhile_is_told_with_its_times() {
    const SPEED: u32 = 20;
    const STORM: &str = "PFC storm rx priority 3";
    let clock = Clock::start().faster(SPEED);
    let setup = Setup {
        speed: Speed::new(SPEED).unwrap(),
        ..Setup::new(Scenario::PfcStorm, 1)
    };
    let host: Arc<dyn Host> = Arc::new(Simulator::with(setup, move || clock.now()));
    let agent = agent::watch(&host, &Config::default(), clock).unwrap();
    let mut happened = Happened::begin(agent.world().events());
    let started = clock.wall();
    let is_over = |happened: &Happened| {
        let storms = happened.events.iter().filter(|event| event.event == "pfc_storm");
        storms.filter(|event| event.ended.is_some()).count() > 0
    };
    // A storm of 20 s begins once a minute.
    let limit = clock.now() + 300_000_000_000;
    while !is_over(&happened) {
        assert!(clock.now() < limit, "{happened:?}");
        agent::pause(Duration::from_millis(20));
        happened.look(agent.world().events());
    }
    assert_eq!(
        judge::verdict(&played(Scenario::Healthy, 1, 30, 5).ports, &[], &happened.events),
        Verdict::Findings
    );
    let report = Report {
        started: Timestamp::from_nanosecond(started.into()).unwrap().to_string(),
        events: happened.events,
        further_events: 7,
        ..played(Scenario::Healthy, 1, 30, 5)
    };
    let is_over = |event: &&EventRecord| event.event == "pfc_storm" && event.ended.is_some();
    let storm = report.events.iter().find(is_over).unwrap();
    let (began, ended) = (storm.began, storm.ended.unwrap());
    let page = text::write(&report);
    for line in [
        format!(
            "    {:>12}  mlx5_5/1       {STORM}: begins\n",
            format!("{:+.3} s", (began - started) as f64 / 1e9)
        ),
        format!(
            "    {:>12}  mlx5_5/1       {STORM}: ends after {:.3} s\n",
            format!("{:+.3} s", (ended - started) as f64 / 1e9),
            (ended - began) as f64 / 1e9
        ),
        "    and 7 further events\n".to_owned(),
    ] {
        assert!(page.contains(&line), "{line:?} is not in\n{page}");
    }
    let json = serde_json::to_value(&report).unwrap();
    let storms = json["events"].as_array().unwrap().iter();
    assert!(
        storms.filter(|event| event["event"] == "pfc_storm").count() > 0,
        "{json}"
    );
}
