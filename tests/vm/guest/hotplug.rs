//! NICs that come and go while the daemon is scraped.

use super::bench::{NICS, bring_up, calm, daemon, device, series_with, shell, steer, wait_for};
use super::scraper::{
    Footprint, SHOWN, Scraper, check_signed, settled, shows_signed, sign, wait_until_shown, watch,
    watch_those,
};
use super::support::Daemon;
use std::ops::Range;
use std::time::Duration;

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
fn a_device_that_is_back_before_it_is_missed_has_begun_anew() {
    calm();
    steer("mlx5_5 hw.np_cnp_sent 777");
    let daemon = daemon();
    let labels = [("device", "mlx5_5")];
    let limit = Duration::from_secs(20);
    let before = daemon.wait_for("it is there", limit, |metrics| {
        metrics.get("rocewatch_cnp_sent_total", &labels) == Some(777.0)
    });
    let resets = before.get("rocewatch_resets_total", &labels);
    assert_eq!(resets, Some(0.0));
    steer("unplug 5;plug 5;mlx5_5 hw.np_cnp_sent 5");
    shell("ip link set rail5 up");
    let after = daemon.wait_for("it is back, with its own counters", limit, |metrics| {
        metrics.get("rocewatch_cnp_sent_total", &labels) == Some(5.0)
    });
    let resets = after.get("rocewatch_resets_total", &labels);
    assert!(resets >= Some(1.0), "{resets:?}: {}", daemon.log());
}

/// All series of a NIC that is gone are gone, within this.
const GONE: Duration = Duration::from_secs(10);

fn wait_until_gone(daemon: &Daemon, nics: Range<usize>) {
    wait_for(daemon, "no series of a NIC that is gone", GONE, |text, _| {
        nics.clone().all(|nic| {
            series_with(text, "device", &device(nic)) == 0
                && series_with(text, "netdev", &format!("rail{nic}")) == 0
                && series_with(text, "device", &format!("rail{nic}")) == 0
        })
    });
}

fn plug_signed(nics: Range<usize>) {
    for nic in nics {
        steer(&format!("plug {nic}"));
        sign(nic);
    }
}

fn unplug(nics: Range<usize>) {
    for nic in nics {
        steer(&format!("unplug {nic}"));
    }
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_hundred_rounds_of_unplugging_leave_nothing_behind() {
    calm();
    let daemon = settled();
    let scraper = watch(&daemon);
    let churned = 6..8;
    let mut warm = None;
    for round in 0..100 {
        unplug(churned.clone());
        let looked_at = round % 10 == 0;
        if looked_at {
            wait_until_gone(&daemon, churned.clone());
        }
        plug_signed(churned.clone());
        if looked_at {
            bring_up(churned.clone());
            wait_until_shown(&daemon, churned.clone());
        }
        // By then the allocator has what it keeps: measured, it takes its last step at the fiftieth round or before.
        if round == 50 {
            warm = Some(Footprint::rested(&daemon));
        }
    }
    wait_until_shown(&daemon, 1..NICS);
    scraper.finish();
    Footprint::rested(&daemon).assert_no_more_than(warm.expect("there was a fiftieth round"));
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn two_dozen_functions_come_and_go() {
    calm();
    let daemon = settled();
    let scraper = watch_those(&daemon, (1..NICS + 24).map(|nic| (device(nic), nic)).collect());
    let functions = NICS..NICS + 24;
    let few = Footprint::rested(&daemon);
    plug_signed(functions.clone());
    bring_up(functions.clone());
    wait_for(&daemon, "32 NICs are shown", SHOWN * 2, |_, metrics| {
        functions
            .clone()
            .all(|nic| shows_signed(metrics, &device(nic), nic))
    });
    println!("with 32 NICs {:?}", Footprint::of(&daemon));
    unplug(functions.clone());
    wait_until_gone(&daemon, functions);
    wait_until_shown(&daemon, 1..NICS);
    scraper.finish();
    let left = Footprint::rested(&daemon);
    println!("before {few:?}, after {left:?}");
    assert_eq!(left.threads, few.threads);
    assert!(left.descriptors <= few.descriptors + 2);
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn the_driver_is_reloaded() {
    calm();
    let daemon = settled();
    let scraper = Scraper::start(&daemon, |metrics| {
        for nic in 1..NICS {
            check_signed(metrics, &device(nic), nic);
        }
    });
    shell("rmmod fakeroce");
    wait_until_gone(&daemon, 0..NICS);
    let text = daemon.text("/metrics");
    assert_eq!(series_with(&text, "driver", "mlx5_core"), 0);
    shell(&format!("modprobe fakeroce nics={NICS}"));
    (1..NICS).for_each(sign);
    bring_up(0..NICS);
    wait_until_shown(&daemon, 1..NICS);
    scraper.finish();
}
