//! What only a kernel can show: these tests run inside the guest of `tests/vm`, as `./x vm` starts them.
//!
//! `fakeroce` has the truth in `/proc/fakeroce_values`; every test sets counters there and compares.

#![allow(clippy::print_stdout, clippy::print_stderr)] // figures and reasons for whoever reads the test's output
#![allow(clippy::disallowed_methods)] // tests start processes, wait and read files

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Daemon, Metrics};

/// Reading is far slower under emulation than on a machine; with the shares of a real node the intervals would be
/// many seconds long and the tests with them.
const CONFIG: &str =
    "[sampling]\ndevice_duty_percent = 60.0\nrtnl_duty_percent = 60.0\nsettings = \"2s\"\ndcb = \"2s\"\n";
const NICS: usize = 8;

fn steer(lines: &str) {
    std::fs::write("/proc/fakeroce", lines)
        .unwrap_or_else(|error| panic!("fakeroce refuses {lines:?}: {error}"));
}

/// Counters back to nothing, everything well.
fn calm() {
    for nic in 0..NICS {
        let _ = std::fs::write("/proc/fakeroce", format!("plug {nic}"));
        steer(&format!(
            "rate_all mlx5_{nic} 0;mlx5_{nic} !stall_ms 0;mlx5_{nic} !fail 0;mlx5_{nic} !pfc_en 8;mlx5_{nic} !speed 400000;mlx5_{nic} !carrier 1"
        ));
        shell(&format!("ip link set rail{nic} up"));
    }
}

fn shell(command: &str) {
    let output = Command::new("sh")
        .args(["-c", command])
        .output()
        .expect("sh is there");
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The true values of one NIC's counters now, by `section.name`.
fn truth(device: &str) -> BTreeMap<String, f64> {
    let text = std::fs::read_to_string("/proc/fakeroce_values").expect("fakeroce is loaded");
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            (words.next()? == device).then_some(())?;
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        })
        .collect()
}

fn daemon() -> Daemon {
    std::fs::write("/tmp/rocewatch.toml", CONFIG).expect("/tmp is writable");
    let daemon = Daemon::start(&["run", "--config", "/tmp/rocewatch.toml"]);
    daemon.wait_until_ready();
    daemon
}

fn assert_close(what: &str, value: f64, right: f64) {
    assert!(
        (value - right).abs() <= right * 0.01,
        "{what}: {value}, but {right} within 1 % is right"
    );
}

fn sleep(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn known_rates_are_shown_within_one_percent() {
    calm();
    // A 400 Gbit/s port at half load with 4096-byte packets, paused 30 % of the time; CE marks answered one in five.
    let (bytes, packets) = (25_000_000_000u64, 5_900_000u64);
    for nic in 0..NICS {
        steer(&format!(
            "mlx5_{nic} rx_bytes_phy 0 {bytes};mlx5_{nic} rx_packets_phy 0 {packets};\
             mlx5_{nic} rx_prio3_pause_duration 0 300000;mlx5_{nic} rx_prio3_pause 0 4000;\
             mlx5_{nic} hw.np_ecn_marked_roce_packets 0 50000;mlx5_{nic} hw.np_cnp_sent 0 10000;\
             mlx5_{nic} rx_vport_rdma_unicast_packets 0 5000000;mlx5_{nic} hw.rp_cnp_handled 0 900;\
             mlx5_{nic} hw.rp_cnp_ignored 0 100;mlx5_{nic} hw.out_of_sequence 0 7;mlx5_{nic} rx_discards_phy 0 11"
        ));
    }
    let daemon = daemon();
    sleep(5);
    let (began, first) = (Instant::now(), daemon.scrape());
    sleep(40);
    let (span, last) = (began.elapsed().as_secs_f64(), daemon.scrape());
    for nic in 0..NICS {
        let device = format!("mlx5_{nic}");
        let port = |more: &[(&'static str, &'static str)]| {
            let mut labels = vec![("device", device.clone())];
            labels.extend(more.iter().map(|(label, value)| (*label, (*value).to_owned())));
            labels
        };
        let value = |metrics: &Metrics, name: &str, more: &[(&'static str, &'static str)]| {
            let labels = port(more);
            let labels: Vec<_> = labels
                .iter()
                .map(|(label, value)| (*label, value.as_str()))
                .collect();
            metrics.value(name, &labels)
        };
        let rate = |name: &str, more: &[(&'static str, &'static str)]| {
            (value(&last, name, more) - value(&first, name, more)) / span
        };
        let rx3 = &[("direction", "rx"), ("priority", "3")];
        assert_close(
            "bytes",
            rate("rocewatch_port_bytes_total", &[("direction", "rx")]),
            bytes as f64,
        );
        assert_close("pause time", rate("rocewatch_pfc_pause_seconds_total", rx3), 0.3);
        assert_close("PFC frames", rate("rocewatch_pfc_frames_total", rx3), 4000.0);
        assert_close(
            "CE marks",
            rate("rocewatch_ecn_marked_packets_total", &[]),
            50_000.0,
        );
        assert_close("CNPs", rate("rocewatch_cnp_sent_total", &[]), 10_000.0);
        assert_close("pause ratio", value(&last, "rocewatch_pfc_pause_ratio", rx3), 0.3);
        let utilization = (bytes as f64 + 20.0 * packets as f64) / 50e9;
        assert_close(
            "utilization",
            value(&last, "rocewatch_port_utilization_ratio", &[("direction", "rx")]),
            utilization,
        );
        assert_close("CE share", value(&last, "rocewatch_ecn_marked_ratio", &[]), 0.01);
        assert_close(
            "CNPs per mark",
            value(&last, "rocewatch_cnp_per_marked_packet", &[]),
            0.2,
        );
        assert_close(
            "ignored CNPs",
            value(&last, "rocewatch_cnp_ignored_ratio", &[]),
            0.1,
        );
        assert_close(
            "speed",
            value(&last, "rocewatch_port_speed_bytes_per_second", &[]),
            50e9,
        );
        assert!(value(&last, "rocewatch_port_up", &[]) > 0.0);
    }
}

/// Every pause counter has a range of values of its own, so that a value in the wrong column cannot go unseen.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn pfc_moves_between_priorities_without_one_wrong_value() {
    calm();
    let counters = [
        ("pause", "rocewatch_pfc_frames_total", 1.0),
        ("pause_duration", "rocewatch_pfc_pause_seconds_total", 1e6),
    ];
    let mut own = 0u64;
    for direction in ["rx", "tx"] {
        for priority in 0..8 {
            for (suffix, _, _) in counters {
                own += 1;
                steer(&format!(
                    "mlx5_0 {direction}_prio{priority}_{suffix} {} 100000",
                    own * 1_000_000_000_000
                ));
            }
        }
    }
    let daemon = daemon();
    let before = truth("mlx5_0");
    let check = |metrics: &Metrics| {
        let now = truth("mlx5_0");
        let mut seen = 0;
        for direction in ["rx", "tx"] {
            for priority in 0..8 {
                for (suffix, family, scale) in counters {
                    let labels = [
                        ("device", "mlx5_0"),
                        ("direction", direction),
                        ("priority", &priority.to_string()),
                    ];
                    let Some(value) = metrics.get(family, &labels) else {
                        continue;
                    };
                    let name = format!("eth.{direction}_prio{priority}_{suffix}");
                    let range = before[&name] - 1e6..=now[&name] + 1.0;
                    assert!(
                        range.contains(&(value * scale)),
                        "{family}{labels:?} is {value}, but {name} is in {range:?}"
                    );
                    seen += 1;
                }
            }
        }
        seen
    };
    let mut scrapes = 0;
    for (from, to) in [(3, 4), (4, 3), (3, 4), (4, 3)] {
        shell(&format!("dcb pfc set dev rail0 prio-pfc {from}:off {to}:on"));
        let end = Instant::now() + Duration::from_secs(4);
        while Instant::now() < end {
            check(&daemon.scrape());
            scrapes += 1;
        }
        let label = to.to_string();
        let labels = [
            ("device", "mlx5_0"),
            ("direction", "rx"),
            ("priority", label.as_str()),
        ];
        daemon.wait_for(
            "the pause time of the new priority shows",
            Duration::from_secs(10),
            |metrics| {
                metrics
                    .get("rocewatch_pfc_pause_seconds_total", &labels)
                    .is_some()
            },
        );
    }
    assert!(scrapes > 20, "only {scrapes} scrapes in 16 s");
    assert!(check(&daemon.scrape()) > 0);
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn fifty_carrier_losses_in_ten_seconds_are_fifty() {
    calm();
    let daemon = daemon();
    let labels = [("device", "mlx5_2")];
    let before = daemon.wait_for("the link is watched", Duration::from_secs(10), |metrics| {
        metrics.get("rocewatch_link_down_events_total", &labels).is_some()
    });
    for _ in 0..50 {
        steer("mlx5_2 !carrier 0");
        std::thread::sleep(Duration::from_millis(100));
        steer("mlx5_2 !carrier 1");
        std::thread::sleep(Duration::from_millis(100));
    }
    let name = "rocewatch_link_down_events_total";
    let counted = |metrics: &Metrics| metrics.value(name, &labels) - before.value(name, &labels);
    daemon.wait_for("50 losses are counted", Duration::from_secs(5), |metrics| {
        counted(metrics) >= 50.0
    });
    sleep(2);
    assert!((counted(&daemon.scrape()) - 50.0).abs() < 0.5);
    assert!(daemon.scrape().value("rocewatch_port_up", &labels) > 0.0);
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_device_that_hangs_holds_up_no_other() {
    calm();
    let daemon = daemon();
    sleep(5);
    let hw_samples = |metrics: &Metrics, nic: usize| {
        metrics.value(
            "rocewatch_samples_total",
            &[("device", &format!("mlx5_{nic}")), ("source", "hw_counters")],
        )
    };
    let (start, first) = (Instant::now(), daemon.scrape());
    sleep(10);
    let (calm_span, second) = (start.elapsed().as_secs_f64(), daemon.scrape());
    let usual: Vec<_> = (0..NICS)
        .map(|nic| (hw_samples(&second, nic) - hw_samples(&first, nic)) / calm_span)
        .collect();

    steer("mlx5_3 !stall_ms 60000");
    let stalled_at = Instant::now();
    // One lane outside rtnl and one under it, each in whatever source of the device it came to first.
    let stalled = |metrics: &Metrics| {
        let series = metrics.all("rocewatch_source_stalled", &[]);
        series
            .filter(|(_, stalled)| *stalled > 0.0)
            .map(|(series, _)| series.to_owned())
            .collect::<Vec<_>>()
    };
    daemon.wait_for(
        "both lanes are named as stalled",
        Duration::from_secs(5),
        |metrics| stalled(metrics).len() == 2,
    );
    let told_after = stalled_at.elapsed();
    sleep(2);
    let (start, third) = (Instant::now(), daemon.scrape());
    while stalled_at.elapsed() < Duration::from_secs(55) {
        let asked = Instant::now();
        let metrics = daemon.scrape();
        assert!(
            asked.elapsed() < Duration::from_secs(2),
            "a scrape waited for the stalled device"
        );
        let stalled = stalled(&metrics);
        let of_the_device = stalled
            .iter()
            .filter(|series| series.contains("device=\"mlx5_3\""))
            .count();
        assert_eq!((of_the_device, stalled.len()), (2, 2), "{stalled:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
    let (span, fourth) = (start.elapsed().as_secs_f64(), daemon.scrape());
    for nic in (0..NICS).filter(|nic| *nic != 3) {
        let rate = (hw_samples(&fourth, nic) - hw_samples(&third, nic)) / span;
        assert!(
            rate > usual[nic] * 0.8,
            "mlx5_{nic}: {rate} samples a second during the stall, {} before",
            usual[nic]
        );
    }
    // A counter that nobody could read for a minute must not look as if it stood still.
    assert_eq!(
        fourth.get(
            "rocewatch_port_bytes_total",
            &[("device", "mlx5_3"), ("direction", "rx")]
        ),
        None
    );

    steer("mlx5_3 !stall_ms 0");
    daemon.wait_for("everything recovers", Duration::from_secs(30), |metrics| {
        metrics
            .all("rocewatch_source_stalled", &[])
            .all(|(_, stalled)| stalled < 0.5)
            && (0..NICS).all(|nic| {
                let device = format!("mlx5_{nic}");
                metrics
                    .get(
                        "rocewatch_port_bytes_total",
                        &[("device", &device), ("direction", "rx")],
                    )
                    .is_some()
                    && metrics
                        .get("rocewatch_cnp_sent_total", &[("device", &device)])
                        .is_some()
            })
    });
    println!("the stall was told after {told_after:?}");
    let log = daemon.log();
    assert_eq!(
        log.matches("does not answer").count(),
        2,
        "each stall is logged once when it begins:\n{log}"
    );
    assert_eq!(
        log.matches("answers again").count(),
        2,
        "and once when it ends:\n{log}"
    );
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_device_is_unplugged_and_plugged() {
    calm();
    steer("mlx5_5 hw.np_cnp_sent 777");
    let daemon = daemon();
    let labels = [("device", "mlx5_5")];
    let limit = Duration::from_secs(20);
    daemon.wait_for("it is there", limit, |metrics| {
        metrics.get("rocewatch_cnp_sent_total", &labels) == Some(777.0)
    });
    steer("unplug 5");
    let gone = daemon.wait_for("it is gone", limit, |metrics| {
        metrics.all("rocewatch_port_info", &labels).count() == 0
    });
    assert_eq!(gone.all("rocewatch_cnp_sent_total", &labels).count(), 0);
    assert_eq!(gone.all("rocewatch_port_info", &[]).count(), NICS - 1);
    steer("plug 5");
    shell("ip link set rail5 up");
    steer("mlx5_5 hw.np_cnp_sent 5");
    daemon.wait_for("it is back, with its own counters", limit, |metrics| {
        metrics.get("rocewatch_cnp_sent_total", &labels) == Some(5.0)
            && metrics.get("rocewatch_port_up", &labels) == Some(1.0)
    });
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_read_that_fails_is_a_gap_and_counted_and_ends() {
    calm();
    let daemon = daemon();
    let hw = [("device", "mlx5_6"), ("source", "hw_counters")];
    daemon.wait_for("it is read", Duration::from_secs(10), |metrics| {
        metrics.value("rocewatch_samples_total", &hw) > 3.0
    });
    steer("mlx5_6 !fail 5");
    let failing = daemon.wait_for("failures are counted", Duration::from_secs(10), |metrics| {
        metrics
            .all("rocewatch_source_errors_total", &hw)
            .map(|(_, count)| count)
            .sum::<f64>()
            > 0.0
    });
    assert!(
        failing
            .get(
                "rocewatch_port_bytes_total",
                &[("device", "mlx5_6"), ("direction", "rx")]
            )
            .is_some()
    );
    daemon.wait_for(
        "what cannot be read is absent, not old",
        Duration::from_secs(15),
        |metrics| {
            metrics
                .get("rocewatch_cnp_sent_total", &[("device", "mlx5_6")])
                .is_none()
        },
    );
    steer("mlx5_6 !fail 0;mlx5_6 hw.np_cnp_sent 99");
    daemon.wait_for("it is read again", Duration::from_secs(40), |metrics| {
        metrics.get("rocewatch_cnp_sent_total", &[("device", "mlx5_6")]) == Some(99.0)
    });
    let log = daemon.log();
    let of_source = |words: &str| {
        log.lines()
            .filter(|line| line.contains(words) && line.contains("hw_counters\""))
            .count()
    };
    assert_eq!(
        (of_source("reading fails"), of_source("reading works again")),
        (1, 1),
        "{log}"
    );
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn ports_tells_what_there_is() {
    calm();
    let output = support::run(&["ports", "--json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let ports: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let ports = ports.as_array().expect("it is a list");
    let port = ports
        .iter()
        .find(|port| port["device"] == "mlx5_4")
        .expect("mlx5_4 is listed");
    assert_eq!(ports.len(), NICS);
    assert_eq!(port["netdev"], "rail4");
    assert_eq!(port["driver"], "mlx5_core");
    assert_eq!(port["state"], "ACTIVE");
    assert_eq!(port["speed_bits_per_second"], 400_000_000_000u64);
    assert_eq!(port["pfc_priorities"], serde_json::json!([3]));
    let state = |source: &str| {
        let sources = port["sources"].as_array().expect("sources are a list");
        sources
            .iter()
            .find(|found| found["source"] == source)
            .map(|found| found["state"].clone())
    };
    for source in [
        "ethtool",
        "hw_counters",
        "port_counters",
        "link",
        "settings",
        "dcb",
    ] {
        assert_eq!(state(source), Some("active".into()), "{source}: {port}");
    }
    assert_eq!(state("device_counters"), Some("not_applicable".into()));
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn what_is_asked_for_beyond_counters_is_shown_and_put_back() {
    calm();
    let more = format!("{CONFIG}verbs = \"200ms\"\nmodule = \"10s\"\noptional_counters = true\n");
    std::fs::write("/tmp/more.toml", more).expect("/tmp is writable");
    let daemon = Daemon::start(&["run", "--config", "/tmp/more.toml"]);
    daemon.wait_until_ready();
    let limit = Duration::from_secs(20);
    let name = "rocewatch_rdma_async_events_total";
    let labels = [("device", "mlx5_3"), ("event", "port_err")];
    daemon.wait_for("events are counted", limit, |metrics| {
        metrics.get(name, &labels) == Some(0.0)
    });
    steer("mlx5_3 !carrier 0;mlx5_3 !carrier 1");
    daemon.wait_for("the cable was pulled", limit, |metrics| {
        metrics.get(name, &labels) == Some(1.0)
    });
    let state = |source| {
        [
            ("device", "mlx5_3"),
            ("source", source),
            ("state", "not_applicable"),
        ]
    };
    let metrics = daemon.scrape();
    // fakeroce has neither a module nor a sensor.
    for source in ["module", "hwmon"] {
        assert_eq!(
            metrics.get("rocewatch_source_state", &state(source)),
            Some(1.0),
            "{source}: {}",
            daemon.log()
        );
    }
    shell("rdma statistic mode link mlx5_3/1 | grep -q cc_rx_cnp_pkts");
    let (status, _) = daemon.terminate();
    assert_eq!(status, Some(0));
    shell("! rdma statistic mode link mlx5_3/1 | grep -q cc_rx");
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn nobody_may_sample_without_privilege() {
    calm();
    // A user without any capability sees as much as root does.
    let output = Command::new("su")
        .args([
            "nobody",
            "-s",
            "/bin/sh",
            "-c",
            &format!("{} ports --json", support::binary().display()),
        ])
        .output()
        .expect("su is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert_eq!(text.matches("\"state\": \"failed\"").count(), 0, "{text}");
    assert_eq!(
        text.matches("\"source\": \"hw_counters\",\n        \"state\": \"active\"")
            .count(),
        NICS,
        "{text}"
    );
}
