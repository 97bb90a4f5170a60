//! Known rates, and settings that change under way, come out right.

use super::bench::{NICS, assert_close, calm, daemon, shell, sleep, steer, truth};
use super::support::Metrics;
use std::time::{Duration, Instant};

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
    for (from, to) in [(3, 4), (4, 3), (3, 4), (4, 3)] {
        shell(&format!("dcb pfc set dev rail0 prio-pfc {from}:off {to}:on"));
        let end = Instant::now() + Duration::from_secs(4);
        let mut scrapes = 0;
        while Instant::now() < end || scrapes < 6 {
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
