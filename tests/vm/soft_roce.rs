//! Real RDMA traffic on soft-RoCE, inside the guest of `tests/vm`, as `./x vm` starts it.

#![allow(clippy::print_stderr)] // figures for whoever reads the test's output
#![allow(clippy::disallowed_methods)] // tests start processes and wait

#[path = "../support/mod.rs"]
mod support;

use std::process::Command;
use std::time::{Duration, Instant};
use support::Daemon;

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn traffic_of_ib_send_bw_shows_up() {
    let daemon = Daemon::start(&["run"]);
    daemon.wait_until_ready();
    let sent = [("device", "rxe0"), ("direction", "tx")];
    let received = [("device", "rxe1"), ("direction", "rx")];
    let name = "rocewatch_rdma_packets_total";
    let before = daemon.wait_for("soft-RoCE is watched", Duration::from_secs(10), |metrics| {
        metrics.get(name, &sent).is_some() && metrics.get(name, &received).is_some()
    });
    let messages = 200;
    let bandwidth_test = format!(
        "ib_send_bw -d rxe1 -x 1 -n {messages} -s 4096 >/tmp/server 2>&1 & sleep 2; \
         ib_send_bw -d rxe0 -x 1 -n {messages} -s 4096 10.8.0.2 >/tmp/client 2>&1; status=$?; wait; exit $status"
    );
    let status = Command::new("sh")
        .args(["-c", &bandwidth_test])
        .status()
        .expect("sh is there");
    assert!(
        status.success(),
        "{}",
        std::fs::read_to_string("/tmp/client").unwrap_or_default()
    );
    // Each message is four packets of the default MTU of 1024 bytes.
    let least = f64::from(messages);
    daemon.wait_for(
        "the traffic shows at both ends",
        Duration::from_secs(10),
        |after| {
            after.value(name, &sent) - before.value(name, &sent) >= least
                && after.value(name, &received) - before.value(name, &received) >= least
        },
    );
}

/// A driver may wait with the removal of a device until every program has closed it.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_device_whose_events_are_followed_can_be_removed() {
    std::fs::write("/tmp/verbs.toml", "[sampling]\nverbs = \"200ms\"\n").expect("/tmp is writable");
    let daemon = Daemon::start(&["run", "--config", "/tmp/verbs.toml"]);
    daemon.wait_until_ready();
    let labels = [("device", "rxe1"), ("event", "device_fatal")];
    daemon.wait_for("events are followed", Duration::from_secs(10), |metrics| {
        metrics.get("rocewatch_rdma_async_events_total", &labels) == Some(0.0)
    });
    let began = Instant::now();
    let rdma = |arguments: &[&str]| {
        let status = Command::new("timeout")
            .args(["20", "rdma", "link"])
            .args(arguments)
            .status()
            .expect("rdma is there");
        assert!(status.success(), "rdma link {arguments:?}\n{}", daemon.log());
    };
    rdma(&["delete", "rxe1"]);
    eprintln!("removed within {:?}", began.elapsed());
    rdma(&["add", "rxe1", "type", "rxe", "netdev", "veth1"]);
    daemon.wait_for("the new device is followed", Duration::from_secs(30), |metrics| {
        metrics.get("rocewatch_rdma_async_events_total", &labels) == Some(0.0)
    });
}

/// Two ends of `ib_send_bw` on the guest's two devices; the first is started by `with`.
fn bandwidth_test(with: &str, options: &str) -> std::process::Output {
    let script = format!(
        "ib_send_bw -d rxe1 -x 1 {options} >/tmp/server 2>&1 & sleep 2; \
         {with} ib_send_bw -d rxe0 -x 1 {options} 10.8.0.2; status=$?; wait; exit $status"
    );
    Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("sh is there")
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn watch_measures_real_traffic_and_leaves_the_output_to_the_command() {
    let watch = format!(
        "{} watch --json --save /tmp/run.json --",
        support::binary().display()
    );
    let messages = 200;
    let output = bandwidth_test(&watch, &format!("-n {messages} -s 4096"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("BW average"),
        "{told}"
    );
    let report: serde_json::Value =
        serde_json::from_str(&told).expect("the report alone is on standard error");
    let port = |device: &str| {
        let ports = report["ports"].as_array().expect("ports are listed");
        let port = ports.iter().find(|port| port["device"] == device);
        port.unwrap_or_else(|| panic!("{device} is not in {told}"))
            .clone()
    };
    // Each message is four packets of the default MTU of 1024 bytes; the other direction is acknowledgements.
    let packets =
        |device: &str, direction: &str| port(device)[direction]["rdma_packets"].as_f64().unwrap_or(-1.0);
    let least = f64::from(messages) * 4.0;
    assert!(
        packets("rxe0", "tx") >= least && packets("rxe1", "rx") >= least,
        "{told}"
    );
    assert!(
        packets("rxe0", "rx") < least && packets("rxe1", "tx") < least,
        "{told}"
    );
    eprintln!(
        "{messages} messages: {} packets sent, {} received",
        packets("rxe0", "tx"),
        packets("rxe1", "rx")
    );
    // The same again, at most a tenth slower, is no regression; a tenth of it is one.
    let mut faster: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string("/tmp/run.json").expect("saved")).expect("JSON");
    for port in faster["ports"].as_array_mut().expect("ports") {
        let packets = port["tx"]["rdma_packets"].as_f64().unwrap_or(0.0);
        port["tx"]["rdma_packets"] = (packets * 100.0).into();
    }
    std::fs::write("/tmp/faster.json", faster.to_string()).expect("/tmp is writable");
    let watch = format!(
        "{} watch --baseline /tmp/faster.json --",
        support::binary().display()
    );
    let output = bandwidth_test(&watch, &format!("-n {messages} -s 4096"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(123), "{told}");
    assert!(told.contains("sent in RDMA packets per second"), "{told}");
}

/// What `rocewatch ports --who --json` tells of a device, as `run` starts it.
fn who(device: &str, run: &str) -> serde_json::Value {
    let asked = format!("{} ports --who --json", support::binary().display());
    let output = Command::new("sh")
        .args(["-c", &run.replace("{}", &asked)])
        .output()
        .expect("sh is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let devices: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = devices
        .as_array()
        .expect("a list")
        .iter()
        .find(|found| found["device"] == device);
    found
        .unwrap_or_else(|| panic!("{device} is not in {devices}"))
        .clone()
}

fn owners(device: &serde_json::Value) -> Vec<serde_json::Value> {
    device["owners"].as_array().expect("it is told").clone()
}

/// What a device tells of the owner of this name.
fn owner(device: &serde_json::Value, comm: &str) -> Option<serde_json::Value> {
    owners(device).into_iter().find(|owner| owner["comm"] == comm)
}

/// The queue pairs of an owner that are connected: the receiving end of a bandwidth test never gets ready to send.
fn connected(owner: &serde_json::Value) -> Vec<serde_json::Value> {
    let pairs = owner["queue_pairs"].as_array().expect("pairs").iter();
    let connected =
        pairs.filter(|pair| pair["type"] == "RC" && (pair["state"] == "RTR" || pair["state"] == "RTS"));
    connected.cloned().collect()
}

/// A script that ends with the test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `script`, and waits until `condition` holds of what is told of both devices.
fn while_it_runs<T>(script: &str, condition: impl Fn(&[serde_json::Value; 2]) -> Option<T>) -> (Running, T) {
    let mut command = Command::new("sh");
    let client = Running(command.args(["-c", script]).spawn().expect("sh is there"));
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let devices = [who("rxe0", "{}"), who("rxe1", "{}")];
        if let Some(found) = condition(&devices) {
            return (client, found);
        }
        let said = std::fs::read_to_string("/tmp/client").unwrap_or_default();
        assert!(Instant::now() < end, "{devices:#?}\n{said}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A client in a control group that is named as docker names them, and a server in none.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn who_holds_queue_pairs_is_told_with_its_container() {
    let container = "4bc0a1f2d3e4958677869504a3b2c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f60514";
    let script = format!(
        "mkdir -p /tmp/cgroup && mount -t cgroup2 none /tmp/cgroup && mkdir -p /tmp/cgroup/docker/{container}; \
         ib_write_bw -d rxe1 -x 1 -q 2 -s 4096 -D 30 >/tmp/server 2>&1 & sleep 2; \
         echo $$ >/tmp/cgroup/docker/{container}/cgroup.procs; \
         exec ib_write_bw -d rxe0 -x 1 -q 2 -s 4096 -D 30 10.8.0.2 >/tmp/client 2>&1"
    );
    let (client, (sender, receiver)) = while_it_runs(&script, |devices| {
        let both = devices.each_ref().map(|device| owner(device, "ib_write_bw"));
        let [Some(sender), Some(receiver)] = both else {
            return None;
        };
        (connected(&sender).len() == 2 && connected(&receiver).len() == 2).then_some((sender, receiver))
    });
    assert_eq!(sender["pid"], client.0.id());
    assert_eq!(
        (&sender["container"], &sender["runtime"]),
        (&container.into(), &"docker".into())
    );
    assert_eq!(receiver["container"], serde_json::Value::Null);
    let numbers = |owner: &serde_json::Value, key: &str| {
        let mut numbers: Vec<_> = connected(owner)
            .iter()
            .filter_map(|pair| pair[key].as_u64())
            .collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(&sender, "remote_number"), numbers(&receiver, "number"));
    assert_eq!(numbers(&receiver, "remote_number"), numbers(&sender, "number"));
    // The kernel's own, by name.
    let kernel = owners(&who("rxe0", "{}"))
        .into_iter()
        .find(|owner| owner["owner"] == "kernel");
    eprintln!("{:#}\n{:#}", sender, kernel.expect("it holds one for management"));
    // Without any right the process is named all the same.
    let by_nobody = who("rxe0", "su nobody -c '{}'");
    let named = owner(&by_nobody, "ib_write_bw").unwrap_or_else(|| panic!("{by_nobody:#}"));
    assert_eq!(
        (&named["pid"], &named["container"]),
        (&client.0.id().into(), &container.into())
    );
    // From another PID namespace nobody can name it, and that is said.
    let elsewhere = who("rxe0", "unshare -p -f {}");
    assert!(owner(&elsewhere, "ib_write_bw").is_none(), "{elsewhere:#}");
    let unseen = owners(&elsewhere)
        .into_iter()
        .find(|owner| owner["owner"] == "unseen");
    assert_eq!(
        unseen.map_or(0, |owner| connected(&owner).len()),
        2,
        "{elsewhere:#}"
    );
    drop(client);
    let end = Instant::now() + Duration::from_secs(20);
    while owner(&who("rxe0", "{}"), "ib_write_bw").is_some() {
        assert!(Instant::now() < end, "the queue pairs stay");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Where a connection leads is known of those that the connection manager made. Both ends are on rxe1, since its address is
/// this machine's own.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn who_is_at_the_other_end_is_told_of_managed_connections() {
    let script = "ib_send_bw -R -d rxe1 -s 4096 -D 15 >/tmp/server 2>&1 & sleep 2; \
                  exec ib_send_bw -R -d rxe1 -s 4096 -D 15 10.8.0.2 >/tmp/client 2>&1";
    let (_client, addresses) = while_it_runs(script, |[_, device]| {
        let pairs = owners(device).into_iter().flat_map(|owner| connected(&owner));
        let addresses = pairs.filter_map(|pair| Some(pair["remote_address"].as_str()?.to_owned()));
        let addresses: Vec<_> = addresses.collect();
        (addresses.len() >= 2).then_some(addresses)
    });
    eprintln!("{addresses:?}");
    assert!(
        addresses.iter().all(|address| address.starts_with("10.8.0.2:")),
        "{addresses:?}"
    );
}

/// A daemon without any right names the process and the container that held queue pairs when something happened: here, when
/// a storm met a NIC that is none of theirs.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn an_incident_tells_who_held_queue_pairs_when_it_began() {
    let container = "9d2e1f0a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6";
    let shell = |command: &str| {
        let status = Command::new("sh").args(["-c", command]).status();
        assert!(status.expect("sh is there").success(), "{command}");
    };
    let state = "/tmp/state_of_nobody";
    shell(&format!(
        "modprobe fakeroce nics=1; ip link set rail0 up; mkdir {state}; chown nobody {state}; \
         mkdir -p /tmp/groups && mount -t cgroup2 none /tmp/groups && mkdir -p /tmp/groups/docker/{container}"
    ));
    let eager =
        "[sampling]\ndevice_duty_percent = 20.0\nrtnl_duty_percent = 60.0\nsettings = \"2s\"\ndcb = \"2s\"\n";
    std::fs::write("/tmp/eager.toml", eager).expect("/tmp is writable");
    let daemon = format!(
        "exec su nobody -c \"exec {} run --config /tmp/eager.toml --state {state} $*\"",
        support::binary().display()
    );
    std::fs::write("/tmp/as_nobody", daemon).expect("/tmp is writable");
    let mut daemon = Command::new("sh");
    daemon.arg("/tmp/as_nobody");
    let daemon = Daemon::start_by(daemon);
    daemon.wait_until_ready();
    let script = format!(
        "ib_write_bw -d rxe1 -x 1 -q 64 -s 4096 -D 60 >/tmp/server 2>&1 & sleep 2; \
         echo $$ >/tmp/groups/docker/{container}/cgroup.procs; \
         exec ib_write_bw -d rxe0 -x 1 -q 64 -s 4096 -D 60 10.8.0.2 >/tmp/client 2>&1"
    );
    let (client, ()) = while_it_runs(&script, |[device, _]| {
        let owner = owner(device, "ib_write_bw")?;
        (connected(&owner).len() == 64).then_some(())
    });
    // The grace of a start.
    std::thread::sleep(Duration::from_secs(12));
    what_a_count_costs();
    shell("echo 'mlx5_0 rx_prio3_pause_duration 0 1000000;mlx5_0 rx_prio3_pause 0 6000' >/proc/fakeroce");
    let archive = format!("{state}/archive");
    let end = Instant::now() + Duration::from_secs(30);
    let report = loop {
        let shown = support::run(&["incident", "show", "last", "--json", "--archive", &archive]);
        let report: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        if !report["incident"]["holders"].is_null() {
            break report;
        }
        assert!(Instant::now() < end, "{report:#}\n{}", daemon.log());
        std::thread::sleep(Duration::from_millis(200));
    };
    let event = &report["incident"]["events"][0];
    assert_eq!(
        (&event["event"], &event["device"]),
        (&"pfc_storm".into(), &"mlx5_0".into())
    );
    let devices = report["incident"]["holders"]["devices"]
        .as_array()
        .expect("a list");
    let device = devices.iter().find(|device| device["device"] == "rxe0");
    let owners = owners(device.expect("it was asked"));
    let sender = owners.iter().find(|owner| owner["comm"] == "ib_write_bw");
    let sender = sender.unwrap_or_else(|| panic!("{owners:#?}"));
    assert_eq!(
        (&sender["pid"], &sender["container"], &sender["runtime"]),
        (&client.0.id().into(), &container.into(), &"docker".into())
    );
    let pairs = &sender["queue_pairs"][0];
    assert_eq!(
        (&pairs["count"], &pairs["type"], &pairs["state"]),
        (&64.into(), &"RC".into(), &"RTS".into())
    );
    let page = support::run(&["incident", "show", "last", "--archive", &archive]);
    let page = String::from_utf8_lossy(&page.stdout);
    assert!(page.contains("  container 9d2e1f0a3b4c (docker)\n"), "{page}");
    eprintln!("{page}");
}

/// Prints what it costs to count queue pairs, and what to ask who holds them.
fn what_a_count_costs() {
    const TIMES: usize = 200;
    let kernel = linux::Kernel::new(&linux::Options::default()).expect("sysfs is there");
    let ports = model::Host::ports(&kernel).expect("they are listed");
    let port = ports
        .iter()
        .find(|port| port.device == "rxe0")
        .expect("it is there");
    let median = |ask: &dyn Fn()| {
        let mut times: Vec<_> = (0..TIMES)
            .map(|_| {
                let began = Instant::now();
                ask();
                began.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[TIMES / 2]
    };
    let count = model::Host::queue_pair_count(&kernel, port).expect("the kernel counts");
    assert!(count >= 64, "{count}");
    let counted = median(&|| assert!(model::Host::queue_pair_count(&kernel, port).is_some()));
    let asked = median(&|| assert!(model::Host::queue_pairs(&kernel, port).is_ok()));
    eprintln!("{count} queue pairs: counted within {counted:?}, asked for within {asked:?} (medians)");
}
