//! A daemon on NICs whose counters say whose they are, a thread that scrapes it while a test changes the machine, and what
//! the daemon takes of the machine meanwhile.

use super::bench::{MODEST, NICS, daemon_with, device, pause, scrape, steer, wait_for};
use super::support::{Daemon, Metrics};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two scrapes, milliseconds.
const REST: u64 = 100;
/// What at least half of the scrapes stay below, …
const USUAL: Duration = Duration::from_secs(2);
/// … and all of them. Under emulation, on a machine that has other work, a scrape that waits for nothing but a processor takes
/// seconds now and then; one that waits for rtnl or a lane would wait in most rounds.
const SLOWEST: Duration = Duration::from_secs(20);

/// Scrapes and checks every exposition until it is told to stop.
pub(crate) struct Scraper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Scraper {
    /// Starts; `check` panics at what must not be shown.
    pub(crate) fn start(daemon: &Daemon, check: impl Fn(&Metrics) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, address) = (Arc::clone(&stop), daemon.address());
        let thread = std::thread::spawn(move || {
            let mut times = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let asked = Instant::now();
                let (_, metrics) = scrape(address);
                times.push(asked.elapsed());
                check(&metrics);
                pause(REST);
            }
            times
        });
        Self { stop, thread }
    }

    /// Ends, and fails if a check did or a scrape was slow.
    pub(crate) fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut times = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        times.sort_unstable();
        let (count, slowest) = (times.len(), times[times.len() - 1]);
        let usual = times[count / 2];
        println!("{count} scrapes: half of them within {usual:?}, the slowest {slowest:?}");
        assert!(
            usual < USUAL && slowest < SLOWEST,
            "scrapes took {usual:?}, up to {slowest:?}"
        );
    }
}

/// A daemon that has settled on the NICs as they are: NIC 0 counts steadily, the counters of the others stand still at values
/// that say whose they are.
pub(crate) fn settled() -> Daemon {
    run_steadily();
    (1..NICS).for_each(sign);
    let daemon = daemon_with(MODEST);
    wait_until_shown(&daemon, 1..NICS);
    wait_for(&daemon, "NIC 0 runs steadily", SHOWN, |_, metrics| {
        STEADY.iter().all(|(name, labels, right)| {
            let labels: Vec<_> = [("device", "mlx5_0")].iter().chain(*labels).copied().collect();
            metrics
                .get(name, &labels)
                .is_some_and(|value| value > right * 0.99)
        })
    });
    daemon
}

/// Every scrape from now on: NIC 0 runs steadily, the other NICs show nothing that is not theirs.
pub(crate) fn watch(daemon: &Daemon) -> Scraper {
    watch_those(daemon, (1..NICS).map(|nic| (device(nic), nic)).collect())
}

/// The same of these devices, by name and number of the NIC.
pub(crate) fn watch_those(daemon: &Daemon, devices: Vec<(String, usize)>) -> Scraper {
    Scraper::start(daemon, move |metrics| {
        check_steady(metrics);
        for (device, nic) in &devices {
            check_signed(metrics, device, *nic);
        }
    })
}

/// Gives counters of NIC `nic` values that say whose they are.
pub(crate) fn sign(nic: usize) {
    let own = signature(nic);
    steer(&format!(
        "mlx5_{nic} hw.np_cnp_sent {own};mlx5_{nic} rx_bytes_phy {own}"
    ));
}

/// The value of each signed counter of NIC `nic`.
pub(crate) fn signature(nic: usize) -> u64 {
    (nic as u64 + 1) * 1_000_003
}

/// The values of the signed counters that `device` shows.
fn signed<'a>(metrics: &'a Metrics, device: &'a str) -> [Option<f64>; 2] {
    [
        metrics.get("rocewatch_cnp_sent_total", &[("device", device)]),
        metrics.get(
            "rocewatch_port_bytes_total",
            &[("device", device), ("direction", "rx")],
        ),
    ]
}

/// Fails if a signed counter of `device` is shown with anything but its own value, or 0 as before it was signed.
pub(crate) fn check_signed(metrics: &Metrics, device: &str, nic: usize) {
    let known = [Some(0.0), Some(signature(nic) as f64), None];
    let values = signed(metrics, device);
    assert!(
        values.iter().all(|value| known.contains(value)),
        "{device} shows {values:?}, which NIC {nic} has never counted"
    );
}

/// True if the signed counters of `device` show those of NIC `nic`.
pub(crate) fn shows_signed(metrics: &Metrics, device: &str, nic: usize) -> bool {
    signed(metrics, device) == [Some(signature(nic) as f64); 2]
}

/// A NIC that came is shown with its values within this: its RDMA device may come seconds after its netdev.
pub(crate) const SHOWN: Duration = Duration::from_secs(20);

pub(crate) fn wait_until_shown(daemon: &Daemon, nics: Range<usize>) {
    wait_for(daemon, "the NICs show their own values", SHOWN, |_, metrics| {
        nics.clone().all(|nic| shows_signed(metrics, &device(nic), nic))
    });
}

/// What a steady NIC shows.
type Ratio = (&'static str, &'static [(&'static str, &'static str)], f64);
const STEADY: [Ratio; 2] = [
    (
        "rocewatch_pfc_pause_ratio",
        &[("direction", "rx"), ("priority", "3")],
        0.3,
    ),
    ("rocewatch_cnp_per_marked_packet", &[], 0.2),
];

/// A read that waited for rtnl, behind an unplug, is of an instant that is known to that wait only: 100 ms of a window of 1 s.
const UNCERTAIN: f64 = 0.15;

/// Has NIC 0 count at known rates.
fn run_steadily() {
    steer(
        "mlx5_0 rx_prio3_pause_duration 0 300000;mlx5_0 rx_prio3_pause 0 4000;\
         mlx5_0 hw.np_ecn_marked_roce_packets 0 50000;mlx5_0 hw.np_cnp_sent 0 10000",
    );
}

/// Fails if the ratios of NIC 0 are not what they are. They may be left out for a while, on a machine that has so much else to do
/// that a lane does not come to its turn for seconds.
fn check_steady(metrics: &Metrics) {
    for (name, labels, right) in STEADY {
        let labels: Vec<_> = [("device", "mlx5_0")].iter().chain(labels).copied().collect();
        if let Some(value) = metrics.get(name, &labels) {
            assert!(
                (value - right).abs() < right * UNCERTAIN,
                "{name} of mlx5_0: {value}, not {right}"
            );
        }
    }
}

/// What a process holds of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    pub(crate) resident_kib: usize,
}

impl Footprint {
    pub(crate) fn of(daemon: &Daemon) -> Self {
        let process = format!("/proc/{}", daemon.id());
        let entries = |directory| {
            std::fs::read_dir(format!("{process}/{directory}"))
                .expect("the daemon lives")
                .count()
        };
        let statm = std::fs::read_to_string(format!("{process}/statm")).expect("the daemon lives");
        let pages: usize = statm
            .split(' ')
            .nth(1)
            .expect("statm has fields")
            .parse()
            .expect("pages");
        Self {
            descriptors: entries("fd"),
            threads: entries("task"),
            resident_kib: pages * 4,
        }
    }

    /// The same once one thread reads all devices and another stands by: a device that did not answer at once has a thread of
    /// its own until it has been quick for a minute.
    pub(crate) fn rested(daemon: &Daemon) -> Self {
        let tasks = format!("/proc/{}/task", daemon.id());
        let is_reader = |task: std::io::Result<std::fs::DirEntry>| {
            let name = std::fs::read_to_string(task.ok()?.path().join("comm")).ok()?;
            (name.trim_end() == "reader").then_some(())
        };
        let end = Instant::now() + Duration::from_secs(180);
        loop {
            let readers = std::fs::read_dir(&tasks)
                .expect("the daemon lives")
                .filter_map(is_reader);
            if readers.count() <= 2 || Instant::now() > end {
                return Self::of(daemon);
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Fails if this is more than `before` by more than a connection or two, or than memory that an allocator keeps: the rings of
    /// a device alone are nearly a MiB, and would be lost in each round.
    pub(crate) fn assert_no_more_than(self, before: Self) {
        println!("before {before:?}, after {self:?}");
        assert!(
            self.descriptors <= before.descriptors + 2,
            "{self:?} after {before:?}"
        );
        assert!(self.threads <= before.threads, "{self:?} after {before:?}");
        assert!(
            self.resident_kib <= before.resident_kib + 1024,
            "{self:?} after {before:?}"
        );
    }
}
