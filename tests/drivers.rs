//! NICs of every driver, each on a machine of its own: whatever the driver calls its counters, the same metrics show them.
//!
//! A folder under `tests/fixtures/drivers` is a capture of a machine; its `capture.toml` says where the names come from. The
//! text beside it is what has to be shown of it: every counter and every ratio, and nothing else, so that what a driver
//! cannot tell is absent. Where there is a configuration beside it, the daemon has that.

#![allow(clippy::disallowed_methods)] // tests read files and wait

mod support;

use catalog::{DRIVERS, FAMILIES, FamilyKind, Origin};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{Daemon, Metrics};

const LIMIT: Duration = Duration::from_secs(20);

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/drivers")
        .join(name)
}

fn read(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A daemon on the machine, every source of which has been read.
fn started_on(machine: &str) -> Daemon {
    let mut arguments = vec!["run".into(), "--replay".into(), path(machine)];
    let config = path(&format!("{machine}.toml"));
    if config.exists() {
        arguments.extend(["--config".into(), config]);
    }
    let arguments: Vec<_> = arguments
        .iter()
        .map(|argument| argument.to_str().expect("paths are text"))
        .collect();
    let daemon = Daemon::start(&arguments);
    daemon.wait_until_ready();
    // What is derived needs several rows of what counts. The rest is read every few seconds.
    let counts = |series: &str| series.contains("ethtool") || series.contains("hw_counters");
    daemon.wait_for("every source is read", LIMIT, |metrics| {
        metrics
            .all("rocewatch_samples_total", &[])
            .all(|(series, samples)| samples >= if counts(series) { 3.0 } else { 1.0 })
    });
    daemon
}

/// What is compared: all that is told of the NIC, and of the agent only what it makes of it. Histograms go on growing.
fn is_compared(line: &str) -> bool {
    let name = line.split('{').next().unwrap_or(line);
    FAMILIES.iter().any(|family| {
        let counted = family.origin != Origin::Agent && family.kind != FamilyKind::Histogram;
        // What the doctor finds comes a moment after what is read, and has a test of its own.
        let of_the_nic = counted && family.name != "doctor_finding";
        of_the_nic && name.trim_end_matches("_total") == format!("rocewatch_{}", family.name)
    })
}

/// What the daemon shows once it is right, or after the limit.
fn scraped_until(daemon: &Daemon, is_right: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + LIMIT;
    loop {
        let exposition = daemon.text("/metrics");
        if is_right(&exposition) || Instant::now() > end {
            return exposition;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The lines beside the machine and the daemon's own have to be the same.
fn shows_what_is_right(machine: &str) {
    let daemon = started_on(machine);
    let right = read(&format!("{machine}.txt"));
    let right: BTreeSet<_> = right.lines().filter(|line| !line.starts_with('#')).collect();
    let exposition = scraped_until(&daemon, |text| {
        let found: BTreeSet<_> = text.lines().collect();
        right.is_subset(&found)
    });
    let found: BTreeSet<_> = exposition.lines().filter(|line| is_compared(line)).collect();
    let missing: Vec<_> = right.difference(&found).collect();
    let made_up: Vec<_> = found.difference(&right).collect();
    assert!(
        missing.is_empty() && made_up.is_empty(),
        "{machine}: missing {missing:#?}, not right {made_up:#?}\n{}",
        daemon.log()
    );
}

macro_rules! machines {
    ($($(#[$attribute:meta])* $test:ident: $machine:literal,)*) => {
        const MACHINES: &[&str] = &[$($machine),*];
        $(
            $(#[$attribute])*
            #[test]
            fn $test() {
                shows_what_is_right($machine);
            }
        )*
    };
}

machines! {
    bnxt: "bnxt",
    efa: "efa",
    erdma: "erdma",
    hns: "hns",
    i40e: "i40e",
    infiniband_is_listed_and_not_read: "infiniband",
    ionic: "ionic",
    irdma: "irdma",
    mana: "mana",
    mlx5: "mlx5",
    mlx5_bond: "mlx5-bond",
    mlx5_functions_have_nothing_of_the_port: "mlx5-functions",
    mlx5_optional_counters: "mlx5-optional",
    mlx5_switchdev: "mlx5-switchdev",
    mlx5_bytes_are_words_times_four: "mlx5-words",
    qede: "qede",
    soft_roce_and_iwarp: "software",
    names_are_shown_as_they_are: "unknown",
}

/// Ratio, device, direction where it has one, and value.
type Ratio = (&'static str, &'static str, Option<&'static str>, f64);

/// The machine `rates`, whose counters grow. Bytes of a packet on the wire are those counted and 20 more; an XOFF frame
/// holds a priority for at most 65535 quanta of 512 bits, 335.5 µs at 100 Gbit/s.
const RATIOS: [Ratio; 20] = [
    ("port_utilization_ratio", "mlx5_0", Some("rx"), 0.402),
    ("port_utilization_ratio", "mlx5_0", Some("tx"), 0.201),
    ("port_utilization_ratio", "bnxt_re0", Some("rx"), 0.1),
    ("port_utilization_ratio", "ionic_0", Some("rx"), 0.3),
    ("port_utilization_ratio", "irdma0", Some("rx"), 0.5),
    ("pfc_pause_ratio", "mlx5_0", Some("rx"), 0.25),
    ("pfc_pause_ratio", "mlx5_0", Some("tx"), 0.001),
    ("pfc_pause_ratio", "bnxt_re0", Some("rx"), 0.1),
    ("pfc_pause_ratio", "bnxt_re0", Some("tx"), 0.02),
    ("pfc_pause_ratio", "ionic_0", Some("rx"), 0.05),
    ("pfc_pause_ratio", "ionic_0", Some("tx"), 0.07),
    ("pfc_pause_upper_bound_ratio", "irdma0", Some("rx"), 0.03355),
    ("pfc_pause_upper_bound_ratio", "irdma0", Some("tx"), 0.0671),
    ("ecn_marked_ratio", "mlx5_0", None, 0.005),
    ("ecn_marked_ratio", "bnxt_re0", None, 0.03),
    ("ecn_marked_ratio", "irdma0", None, 0.04),
    ("cnp_per_marked_packet", "mlx5_0", None, 0.5),
    ("cnp_per_marked_packet", "bnxt_re0", None, 0.1),
    ("cnp_ignored_ratio", "mlx5_0", None, 0.1),
    ("cnp_ignored_ratio", "irdma0", None, 0.25),
];

fn ratio(metrics: &Metrics, (name, device, direction, _): Ratio) -> Option<f64> {
    let labels = [("device", device)].into_iter();
    let labels: Vec<_> = labels
        .chain(direction.map(|direction| ("direction", direction)))
        .collect();
    metrics.get(&format!("rocewatch_{name}"), &labels)
}

#[test]
fn ratios_come_out_alike_on_every_nic() {
    let daemon = started_on("rates");
    let wrong = |text: &str| {
        let metrics = Metrics::parse(text);
        let found = RATIOS.map(|wanted| (wanted, ratio(&metrics, wanted)));
        let is_wrong = |(wanted, found): &(Ratio, Option<f64>)| {
            found.is_none_or(|found| (found / wanted.3 - 1.0).abs() > 0.03)
        };
        found.into_iter().filter(is_wrong).collect::<Vec<_>>()
    };
    let text = scraped_until(&daemon, |text| wrong(text).is_empty());
    assert!(wrong(&text).is_empty(), "{:#?}", wrong(&text));
    let metrics = Metrics::parse(&text);
    let ratios: BTreeSet<_> = RATIOS.iter().map(|(name, ..)| *name).collect();
    let all: usize = ratios
        .iter()
        .map(|name| metrics.all(&format!("rocewatch_{name}"), &[]).count())
        .sum();
    assert_eq!(all, RATIOS.len(), "a ratio is shown that cannot be known");
}

type State = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Machine, device, source, and what is said of it: state and reason.
const STATES: [State; 7] = [
    ("mlx5-bond", "mlx5_bond_0", "hw_counters", "active", ""),
    (
        "mlx5-switchdev",
        "mlx5_0",
        "hw_counters",
        "not_applicable",
        "ENOENT",
    ),
    ("mlx5-switchdev", "mlx5_0", "device_counters", "active", ""),
    ("qede", "qedr0", "hw_counters", "not_applicable", "ENOENT"),
    ("qede", "qedr0", "port_counters", "failed", "EINVAL"),
    ("software", "siw0", "ethtool", "not_applicable", "EOPNOTSUPP"),
    ("unknown", "ens192", "ethtool", "active", ""),
];

#[test]
fn a_source_that_is_not_read_says_why() {
    let machines: BTreeSet<_> = STATES.iter().map(|(machine, ..)| *machine).collect();
    for machine in machines {
        let metrics = started_on(machine).scrape();
        for (_, device, source, state, reason) in STATES.iter().filter(|wanted| wanted.0 == machine) {
            let of_the_source = [("device", *device), ("source", *source)];
            let found: Vec<_> = metrics.all("rocewatch_source_state", &of_the_source).collect();
            let says = |(series, _): &(&str, f64)| {
                series.contains(&format!("state=\"{state}\",reason=\"{reason}\""))
            };
            assert!(found.len() == 1 && found.iter().all(says), "{machine}: {found:?}");
        }
    }
}

/// `rocewatch counters` shows the statistics of a driver that the catalogue does not know as well, and so does `raw = "all"`.
#[test]
fn a_statistic_keeps_its_name_however_odd_it_is() {
    let machine = path("unknown");
    let machine = machine.to_str().expect("paths are text");
    let output = support::run(&["counters", "ens192", "--json", "--all", "--replay", machine]);
    let counters: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let statistics = counters.iter().filter(|counter| counter["source"] == "ethtool");
    let found: Vec<_> = statistics
        .map(|counter| {
            (
                counter["counter"].as_str().expect("a name"),
                counter["value"].as_u64(),
            )
        })
        .collect();
    // Of several with one name the first counts.
    let right = [
        ("Tx Queue#", 0),
        ("  TSO pkts tx", 5100),
        ("  pkts tx err", 5101),
        ("     giant hdr", 5102),
        ("  ring full", 5103),
        ("  giant hdr", 5104),
        ("Rx Queue#", 0),
        ("  pkts rx OOB", 5106),
        ("     err", 5107),
        ("tx timeout count", 5108),
    ];
    assert_eq!(found, right.map(|(name, value)| (name, Some(value))));
}

#[test]
fn every_machine_is_tested() {
    let entries = std::fs::read_dir(path("")).expect("the fixtures are there");
    let folders: BTreeSet<_> = entries
        .map(|entry| entry.expect("the fixtures can be listed").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    let tested = MACHINES.iter().chain(&["rates"]).map(|name| (*name).to_owned());
    assert_eq!(folders, tested.collect());
}

#[test]
fn every_vocabulary_of_the_catalogue_has_a_machine() {
    let machines: Vec<_> = MACHINES.iter().map(|machine| kernel_of(machine)).collect();
    for driver in DRIVERS.iter().filter(|driver| driver.name != "*") {
        let shown = machines.iter().any(|text| {
            let bound = driver.bound_as.iter().any(|name| text.contains(name));
            let counts = driver.entries.iter().any(|entry| text.contains(entry.name));
            bound && (driver.entries.is_empty() || counts)
        });
        assert!(shown, "{} has no machine", driver.file);
    }
}

/// All text of a machine that stands for its kernel.
fn kernel_of(machine: &str) -> String {
    let netdevs = std::fs::read_dir(path(machine).join("netdev"))
        .into_iter()
        .flatten();
    let statistics = netdevs.map(|netdev| {
        let path = netdev
            .expect("the fixtures can be listed")
            .path()
            .join("ethtool.1");
        std::fs::read_to_string(path).expect("a netdev has statistics")
    });
    std::iter::once(read(&format!("{machine}/sys.txt")))
        .chain(statistics)
        .collect()
}
