//! Drivers that hang, fail and recover.

use super::bench::{NICS, calm, daemon, sleep, steer};
use super::support::Metrics;
use std::time::{Duration, Instant};

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
        log.matches("the source does not answer").count(),
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
