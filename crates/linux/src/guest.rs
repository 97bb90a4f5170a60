//! What needs a NIC with PFC: run by `tests/vm/run --nics 2`, where `fakeroce` says what the numbers are.
//!
//! `tests/vm/run --nics 2 --share target/debug/deps -- /host/linux-HASH --ignored --test-threads 1 guest::`
#![allow(clippy::disallowed_methods)] // tests steer the guest by files and programs
#![allow(clippy::print_stdout)] // and say how hard they tried

use crate::ethtool::Interface;
use crate::netlink::{ANSWER, Request, Socket};
use crate::netns::{self, attempt, ip, port, run};
use crate::{Context, changes, dcb, ethtool, link, settings};
use model::{ABSENT, Change, Opened, Port, Read, Source};
use neli::consts::socket::NlFamily;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const GUEST: &str = "needs the guest of tests/vm with --nics 2";

fn ctx() -> Context {
    assert!(std::env::var_os("ROCEWATCH_GUEST").is_some(), "{GUEST}");
    netns::context("/sys".as_ref(), true)
}

fn rail(number: u32) -> Port {
    port(&format!("rail{number}"))
}

fn active(opened: Opened) -> Box<dyn Source> {
    match opened {
        Opened::Active(source) => source,
        Opened::NotApplicable(why) | Opened::Failed(why) => panic!("{why}"),
    }
}

fn steer(lines: &str) {
    fs::write("/proc/fakeroce", lines).unwrap();
}

/// How often the kernel has called a function of the driver of NIC 0.
fn calls(function: &str) -> u64 {
    let text = fs::read_to_string("/proc/fakeroce").unwrap();
    let words: Vec<_> = text
        .lines()
        .find(|line| line.starts_with("mlx5_0 "))
        .unwrap()
        .split(' ')
        .collect();
    let at = words.iter().position(|word| *word == function).unwrap();
    words[at + 1].parse().unwrap()
}

/// Runs the tool `dcb`, which numbers its requests by the second and fails with "Protocol error" when the second changes
/// between two of them.
fn dcb_tool(arguments: &str) {
    for _ in 0..5 {
        match attempt("dcb", arguments) {
            Ok(()) => return,
            Err(said) => assert!(said.contains("Protocol error"), "dcb {arguments}: {said}"),
        }
    }
    panic!("dcb {arguments}: failed again and again");
}

fn names(source: &dyn Source) -> Vec<String> {
    source
        .schema()
        .columns
        .iter()
        .map(|column| column.name.to_string())
        .collect()
}

/// Reads until there is a row.
fn row(source: &mut dyn Source) -> BTreeMap<String, u64> {
    loop {
        let mut cells = vec![7; source.schema().columns.len()];
        match source.read(&mut cells) {
            Read::Row => return names(source).into_iter().zip(cells).collect(),
            Read::SchemaChanged => {}
            Read::Missing(why) => panic!("{why}"),
        }
    }
}

/// Sends DCB requests that change a setting.
struct Setter(Socket);

impl Setter {
    fn new() -> Self {
        Self(Socket::open(NlFamily::Route, &[], ANSWER).unwrap())
    }

    /// `DCB_CMD_IEEE_SET` of `struct ieee_pfc`.
    fn pfc(&mut self, enabled: u8) {
        let mut pfc = [0; 136];
        pfc[1] = enabled;
        let request = Request::new(79, &[0, 20, 0, 0])
            .with(1, b"rail0\0")
            .with_nest(13, &[(2, &pfc)]);
        self.0.ask(&mut request.clone()).unwrap();
    }

    /// `DCB_CMD_SDCBX`.
    fn dcbx(&mut self, mode: u8) {
        let request = Request::new(79, &[0, 23, 0, 0])
            .with(1, b"rail0\0")
            .with(14, &[mode]);
        self.0.ask(&mut request.clone()).unwrap();
    }
}

/// Gives the counters of priority p the value p000000, so that a value tells whose it is.
fn mark_priorities() {
    let lines: Vec<_> = (0..8)
        .map(|p| format!("mlx5_0 eth.rx_prio{p}_pause {p}000000"))
        .collect();
    steer(&lines.join(";"));
}

fn rightly_named(row: &BTreeMap<String, u64>) -> bool {
    (0..8).all(|p| {
        row.get(&format!("rx_prio{p}_pause"))
            .is_none_or(|&value| value == p * 1_000_000)
    })
}

#[derive(Debug, Default)]
struct Tally {
    rows: u32,
    schemas: u32,
    /// Rows with a value under another counter's name.
    wrong: u32,
}

/// Reads statistics while `change` is done again and again, `rest` apart, until it is `enough`.
fn race(rest: Duration, change: impl FnMut(u8) + Send, enough: impl Fn(&Tally) -> bool) -> Tally {
    let mut source = active(ethtool::open(&ctx(), &rail(0)));
    let mut tally = Tally::default();
    let read = |source: &mut dyn Source, tally: &mut Tally| {
        let mut cells = vec![0; source.schema().columns.len()];
        match source.read(&mut cells) {
            Read::Row => {
                tally.rows += 1;
                tally.wrong += u32::from(!rightly_named(&names(source).into_iter().zip(cells).collect()));
            }
            Read::SchemaChanged => tally.schemas += 1,
            Read::Missing(why) => assert_eq!(why.reason, "unsteady"),
        }
    };
    while_changing(rest, change, || {
        while !enough(&tally) {
            read(&mut *source, &mut tally);
        }
    });
    println!("{tally:?}");
    tally
}

fn while_changing(rest: Duration, mut change: impl FnMut(u8) + Send, test: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for pfc in [0x10, 0x08].into_iter().cycle() {
                change(pfc);
                if done.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(rest);
            }
        });
        test();
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn pfc_that_moves_by_dcb_gives_no_row_under_wrong_names() {
    ctx();
    mark_priorities();
    let mut setter = Setter::new();
    let enough = |tally: &Tally| tally.rows >= 100 && tally.schemas >= 100;
    assert_eq!(
        race(Duration::from_millis(3), |pfc| setter.pfc(pfc), enough).wrong,
        0
    );
    setter.pfc(0x08);
}

/// Longer than one read takes under emulation: two changes without notice between the values and the look at the names
/// would cancel out.
const UNDETECTED: Duration = Duration::from_millis(400);

#[test]
#[ignore = "needs the guest of tests/vm"]
fn pfc_that_firmware_moves_gives_no_row_under_wrong_names() {
    ctx();
    mark_priorities();
    let mut setter = Setter::new();
    // DCB_CAP_DCBX_LLD_MANAGED, DCB_CAP_DCBX_VER_IEEE: from now on the firmware may change PFC and tell nobody.
    setter.dcbx(0x0a);
    let change = |pfc| steer(&format!("mlx5_0 !pfc_en {pfc}"));
    let enough = |tally: &Tally| tally.rows >= 100 && tally.schemas >= 10;
    assert_eq!(race(UNDETECTED, change, enough).wrong, 0);
    setter.dcbx(0x09);
    steer("mlx5_0 !pfc_en 8");
}

/// The two tests above can fail: where the change is neither told nor to be expected, rows are wrong until the names are
/// looked at again, which is what the source's once-a-minute look is for. Does not end if there is no race.
#[test]
#[ignore = "needs the guest of tests/vm"]
fn the_race_is_real() {
    ctx();
    mark_priorities();
    let change = |pfc| steer(&format!("mlx5_0 !pfc_en {pfc}"));
    race(UNDETECTED, change, |tally| tally.wrong > 0);
    steer("mlx5_0 !pfc_en 8");
}

/// Two functions of one port (Socket Direct) share its PFC; the notice tells of the one through which it was set.
#[test]
#[ignore = "needs the guest of tests/vm"]
fn pfc_that_is_set_through_another_function_of_the_port_is_seen() {
    ctx();
    let mut source = active(ethtool::open(&ctx(), &rail(0)));
    assert!(row(&mut *source).contains_key("rx_prio3_pause"));
    steer("mlx5_0 !pfc_en 16");
    dcb_tool("pfc set dev rail1 prio-pfc 3:off 4:on");
    let moved = row(&mut *source);
    assert!(moved.contains_key("rx_prio4_pause") && !moved.contains_key("rx_prio3_pause"));
    steer("mlx5_0 !pfc_en 8");
    dcb_tool("pfc set dev rail1 prio-pfc 3:on 4:off");
}

/// How much dearer a row is whose names are looked at.
#[test]
#[ignore = "needs the guest of tests/vm"]
fn what_a_look_at_the_names_costs() {
    let cost = || {
        let mut source = active(ethtool::open(&ctx(), &rail(0)));
        row(&mut *source);
        let mut cells = vec![0; source.schema().columns.len()];
        let took = (0..50).map(|_| {
            let began = Instant::now();
            assert_eq!(source.read(&mut cells), Read::Row);
            began.elapsed()
        });
        (took.min().unwrap(), cells.len())
    };
    let (guarded, columns) = cost();
    let mut setter = Setter::new();
    setter.dcbx(0x0a);
    let (compared, _) = cost();
    setter.dcbx(0x09);
    println!("{columns} statistics: {guarded:?} by notices, {compared:?} with the names");
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn global_pause_in_place_of_pfc_is_seen() {
    ctx();
    let mut source = active(ethtool::open(&ctx(), &rail(0)));
    assert!(row(&mut *source).contains_key("rx_prio3_pause"));
    // As many names as before, by another way than DCB: the driver switches PFC off first.
    steer("mlx5_0 !pfc_en 0");
    run("ethtool", "-A rail0 rx on tx on");
    assert!(row(&mut *source).contains_key("rx_global_pause"));
    run("ethtool", "-A rail0 rx off tx off");
    assert!(!row(&mut *source).contains_key("rx_global_pause"));
    steer("mlx5_0 !pfc_en 8");
    row(&mut *source);
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn a_warm_read_asks_for_values_and_for_nothing_else() {
    let mut source = active(ethtool::open(&ctx(), &rail(0)));
    row(&mut *source);
    let before = [
        "ethtool_stats",
        "ethtool_strings",
        "ethtool_sset",
        "dcb_pfc",
        "dcb_dcbx",
    ]
    .map(calls);
    row(&mut *source);
    let after = [
        "ethtool_stats",
        "ethtool_strings",
        "ethtool_sset",
        "dcb_pfc",
        "dcb_dcbx",
    ]
    .map(calls);
    let made: Vec<_> = after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .collect();
    assert_eq!(
        made,
        [1, 0, 1, 0, 1],
        "the kernel itself asks for the number; DCBX is in the driver's memory"
    );
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn dcb_is_read_as_it_was_set() {
    let mut source = active(dcb::open(&ctx(), &rail(0)));
    let before = row(&mut *source);
    assert_eq!(
        (before["pfc_enabled"], before["pfc_capable"], before["dcbx"]),
        (0x08, 8, 0x09)
    );
    assert!(!before.keys().any(|name| name.starts_with("dscp")));
    dcb_tool("pfc set dev rail0 prio-pfc 3:on 5:on");
    run(
        "dcb",
        "app replace dev rail0 dscp-prio 26:3 48:6 dgram-port-prio 4791:3",
    );
    run(
        "dcb",
        "ets set dev rail0 tc-tsa 0:ets 1:ets 2:strict tc-bw all:0 0:40 1:60 prio-tc 3:1 6:2",
    );
    let after = row(&mut *source);
    assert_eq!(after["pfc_enabled"], 0x28);
    assert_eq!(
        (after["dscp26_prio"], after["dscp48_prio"], after["roce_udp_prio"]),
        (3, 6, 3)
    );
    assert_eq!((after["tc0_bandwidth"], after["tc1_bandwidth"]), (40, 60));
    assert_eq!((after["tc0_algorithm"], after["tc2_algorithm"]), (2, 0));
    assert_eq!((after["prio3_tc"], after["prio6_tc"]), (1, 2));
    dcb_tool("app del dev rail0 dscp-prio 48:6");
    assert!(!row(&mut *source).contains_key("dscp48_prio"));
    dcb_tool("pfc set dev rail0 prio-pfc 5:off");
    dcb_tool("app flush dev rail0");
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn settings_are_read_as_they_are() {
    steer(
        "mlx5_0 fec.corrected_blocks 1001;mlx5_0 fec.uncorrectable_blocks 2;mlx5_0 fec.corrected_bits 3003",
    );
    run("ethtool", "-A rail0 rx on tx off");
    let mut source = active(settings::open(&ctx(), &rail(0)));
    let told = row(&mut *source);
    assert_eq!((told["speed"], told["lanes"]), (400_000, 4));
    assert_eq!((told["pause_rx"], told["pause_tx"]), (1, 0));
    assert!(told.contains_key("rx_pause_frames") && told.contains_key("tx_pause_frames"));
    assert_eq!(
        (told["fec_corrected_blocks"], told["fec_uncorrectable_blocks"]),
        (1001, 2)
    );
    assert_eq!(told["pfc_storm_prevention_ms"], 8000);
    run("ethtool", "-A rail0 rx off tx off");
    steer("mlx5_0 !pfc_storm_tout 65535;mlx5_0 !carrier 0");
    let down = row(&mut *source);
    assert_eq!((down["speed"], down["pfc_storm_prevention_ms"]), (ABSENT, 65535));
    // One kind of question fails, the others answer.
    steer("mlx5_0 !carrier 1;mlx5_0 !fail_eth 5");
    let failing = row(&mut *source);
    assert_eq!((failing["speed"], failing["pause_rx"]), (ABSENT, 0));
    steer("mlx5_0 !fail_eth 0;mlx5_0 !pfc_storm_tout 8000;mlx5_0 !pfc_en 8");
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn dcb_and_links_are_told() {
    let mut changes = changes::open(&ctx()).unwrap();
    let ifindex = Interface::new("rail0").unwrap().ifindex().unwrap();
    let mut told = || {
        let mut found = Vec::new();
        changes.wait(Duration::from_secs(5), &mut found).unwrap();
        found
    };
    let mut setter = Setter::new();
    setter.pfc(0x18);
    assert!(told().contains(&Change::Dcb { ifindex }));
    setter.pfc(0x08);
    told();
    steer("mlx5_0 !carrier 0");
    assert!(told().contains(&Change::Link { ifindex }));
    steer("mlx5_0 !carrier 1");
    assert!(told().contains(&Change::Link { ifindex }));
    steer("unplug 1");
    let mut seen = Vec::new();
    while !seen.contains(&Change::Devices) {
        seen.extend(told());
    }
    steer("plug 1");
    ip("link set rail1 up");
    while !told().contains(&Change::Devices) {}
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn the_link_is_what_its_files_say() {
    let mut source = active(link::open(&ctx(), &rail(0)));
    let counts = ["carrier_up_count", "carrier_down_count"];
    let told = counts.map(|name| {
        move || {
            let text = fs::read_to_string(format!("/sys/class/net/rail0/{name}")).unwrap();
            text.trim_end().parse::<u64>().unwrap()
        }
    });
    let mut seen = Vec::new();
    for carrier in [1, 0, 1, 0, 1] {
        steer(&format!("mlx5_0 !carrier {carrier}"));
        let row = row(&mut *source);
        assert_eq!(counts.map(|name| row[name]), told.each_ref().map(|told| told()));
        seen.push(row["carrier_down_count"]);
    }
    assert_eq!(seen[4], seen[0] + 2, "{seen:?}");
    ip("link set rail0 down");
    let down = row(&mut *source);
    ip("link set rail0 up");
    assert_eq!(
        down["carrier"], ABSENT,
        "nobody knows of a netdev that is taken down"
    );
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn a_driver_that_fails_gives_missing_rows_and_recovers() {
    let mut source = active(ethtool::open(&ctx(), &rail(0)));
    steer("mlx5_0 !fail_eth 5");
    let mut cells = vec![0; source.schema().columns.len()];
    let read = source.read(&mut cells);
    steer("mlx5_0 !fail_eth 0");
    assert!(matches!(read, Read::Missing(why) if why.reason == "EIO"));
    row(&mut *source);
}
