//! What a poll costs the driver: calls of its functions, each of which is firmware commands on a real NIC.

use super::bench::{calls, calm, daemon_with, pause, shell, sleep};
use super::support::Metrics;
use std::collections::BTreeMap;

/// Rows that may lie between a look at the calls and a look at the samples.
const SLACK: u64 = 5;

/// Rows of a source between two scrapes.
fn rows(first: &Metrics, last: &Metrics, source: &str) -> u64 {
    let labels = [("device", "mlx5_0"), ("source", source)];
    let count = |metrics: &Metrics| metrics.value("rocewatch_samples_total", &labels);
    format!("{:.0}", count(last) - count(first))
        .parse()
        .expect("it is a whole number")
}

fn assert_near(what: &str, calls: u64, right: u64, slack: u64) {
    assert!(
        calls.abs_diff(right) <= slack,
        "{what}: {calls} calls, but {right} (within {slack}) are needed"
    );
}

/// Calls since `before`.
fn since(before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    calls("mlx5_0")
        .into_iter()
        .map(|(function, count)| {
            let made = count - before[&function];
            (function, made)
        })
        .collect()
}

/// The default intervals, on one NIC, with ten times the share of rtnl: under emulation the default one leaves too few rows.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_row_costs_the_fewest_calls_that_it_can() {
    calm();
    let daemon = daemon_with("[devices]\ninclude = [\"mlx5_0\"]\n[sampling]\nrtnl_duty_percent = 2.0\n");
    sleep(8);
    let (first, before) = (daemon.scrape(), calls("mlx5_0"));
    sleep(20);
    let (made, last) = (since(&before), daemon.scrape());
    let [hw, ethtool, pma, settings, dcb] = ["hw_counters", "ethtool", "port_counters", "settings", "dcb"]
        .map(|source| rows(&first, &last, source));
    println!(
        "rows: hw_counters {hw}, ethtool {ethtool}, port_counters {pma}, settings {settings}, dcb {dcb}; calls {made:?}"
    );
    assert!(hw > 50 && ethtool > 1 && pma > 3);

    assert_near("hw_counters by STAT_GET", made["hw_stats"], hw, SLACK);
    assert_near("ethtool statistics", made["ethtool_stats"], ethtool, SLACK);
    // The kernel itself asks for the number with each; names are looked at once a minute.
    let looks = made["ethtool_strings"];
    assert!(looks <= 1, "names were asked for {looks} times in 20 s");
    let counted = made["ethtool_stats"] + looks;
    assert_near("number of statistics", made["ethtool_sset"], counted, 1);
    assert_near(
        "owner of DCB, from memory",
        made["dcb_dcbx"],
        ethtool + dcb,
        SLACK,
    );
    assert_near("traffic counters", made["pma"], 4 * pma, 4 * SLACK);
    for (function, source, rows) in [
        ("link_settings", "settings", settings),
        ("pause_stats", "settings", settings),
        ("fec_stats", "settings", settings),
        ("dcb_pfc", "dcb", dcb),
        ("dcb_ets", "dcb", dcb),
    ] {
        assert_near(&format!("{function} of {source}"), made[function], rows, 1);
    }
    for function in ["query_port", "drvinfo", "group_stats", "channels"] {
        assert_eq!(made[function], 0, "nobody needs {function}");
    }
}

/// What the same row costs one who walks the directories, as most exporters do.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_naive_walk_costs_a_call_for_each_file() {
    calm();
    let walk = |command: &str| {
        // Longer than the kernel's cache answers.
        pause(50);
        let before = calls("mlx5_0");
        shell(command);
        since(&before)
    };
    let port = "/sys/class/infiniband/mlx5_0/ports/1";
    // In the order of the alphabet the one counter whose read fills the cache comes last.
    let hw = walk(&format!(
        "for file in {port}/hw_counters/[!l]* {port}/hw_counters/local*; do cat $file; done"
    ))["hw_stats"];
    let pma = walk(&format!("cat {port}/counters/*"))["pma"];
    let ethtool = walk("ethtool -S rail0");
    println!(
        "a walk: hw_stats {hw}, pma {pma}, sset {}, strings {}",
        ethtool["ethtool_sset"], ethtool["ethtool_strings"]
    );
    assert!(
        hw >= 28,
        "{hw} queries for 31 files: fakeroce does not follow mlx5's rule"
    );
    assert_eq!(pma, 21);
    assert!(ethtool["ethtool_strings"] == 1 && ethtool["ethtool_sset"] >= 3);
}
