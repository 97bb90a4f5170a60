//! What the binary says and how it ends when something is not as it should be.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

mod support;
#[path = "support/tree.rs"]
mod tree;

use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::time::Duration;
use support::{Daemon, run};

#[track_caller]
fn assert_fails(output: &Output, status: i32, says: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for words in says {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
}

fn config(folder: &Path, text: &str) -> String {
    let path = folder.join("rocewatch.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_unknown_option_or_command_is_a_usage_error() {
    assert_fails(&run(&["run", "--lisen", "x"]), 64, &["--lisen", "--listen"]);
    assert_fails(&run(&["rum"]), 64, &["rum", "run"]);
    assert_fails(
        &run(&["run", "--listen", "everywhere"]),
        64,
        &["everywhere", "--listen"],
    );
    assert_fails(&run(&["demo", "--scenario", "incats"]), 64, &["incats", "incast"]);
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["demo", "--help"],
        &["ports", "--help"],
    ] {
        let output = run(arguments);
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_configuration_that_is_not_there_names_the_file() {
    assert_fails(
        &run(&["run", "--config", "/nowhere/rocewatch.toml"]),
        64,
        &["/nowhere/rocewatch.toml", "check the path"],
    );
}

#[test]
fn a_configuration_that_is_a_folder_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_fails(
        &run(&["run", "--config", path]),
        64,
        &[path, "cannot read the configuration"],
    );
}

#[test]
fn every_mistake_in_a_configuration_is_named_with_file_line_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(
        folder.path(),
        "\nlisten = \"127.0.0.1:0\"\n[smapling]\n[http]\nmax_conections = 3\n",
    );
    assert_fails(
        &run(&["run", "--config", &path]),
        64,
        &[
            &path,
            "line 3: unknown key `smapling`; did you mean `sampling`?",
            "line 5: unknown key `http.max_conections`; did you mean `max_connections`?",
        ],
    );
}

#[test]
fn a_taken_port_says_how_to_find_who_has_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_fails(
        &run(&["demo", "--listen", &address]),
        1,
        &[
            &format!("cannot listen on {address}"),
            "another program has it",
            "--listen",
        ],
    );
}

#[test]
fn an_address_that_this_machine_lacks_says_so() {
    // 192.0.2.0/24 is reserved for documentation (RFC 5737); nothing is sent there.
    assert_fails(
        &run(&["demo", "--listen", "192.0.2.1:14791"]),
        1,
        &["this machine does not have that address"],
    );
}

#[test]
fn a_sysfs_that_is_not_there_says_what_to_do() {
    assert_fails(
        &run(&["run", "--sysfs", "/nowhere", "--listen", "127.0.0.1:0"]),
        1,
        &["/nowhere", "--sysfs"],
    );
}

#[test]
fn a_node_without_any_port_is_watched_all_the_same() {
    let empty = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(empty.path().join("class/net")).unwrap();
    let daemon = Daemon::start(&["run", "--sysfs", empty.path().to_str().unwrap()]);
    daemon.wait_until_ready();
    assert_eq!(daemon.scrape().all("rocewatch_port_info", &[]).count(), 0);
    daemon.wait_for_log("no port found");
    let output = run(&["ports", "--sysfs", empty.path().to_str().unwrap()]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("No port"));
}

#[test]
fn sigterm_ends_the_daemon_within_two_seconds_also_while_a_client_hangs() {
    let daemon = Daemon::start(&["demo"]);
    let mut hanging = std::net::TcpStream::connect(daemon.address()).unwrap();
    std::io::Write::write_all(&mut hanging, b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
    let (status, took) = daemon.terminate();
    assert_eq!(status, Some(0));
    assert!(took < Duration::from_secs(2), "the end took {took:?}");
}

#[test]
fn sighup_takes_up_a_new_configuration_and_keeps_the_old_one_if_it_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("class/net")).unwrap();
    let path = config(folder.path(), "[log]\nlevel = \"info\"\n");
    let daemon = Daemon::start(&["run", "--config", &path, "--sysfs", tree.path().to_str().unwrap()]);
    let reloads = |result: &'static str| {
        move |metrics: &support::Metrics| {
            metrics.value("rocewatch_config_reloads_total", &[("result", result)]) > 0.5
        }
    };
    config(folder.path(), "[log]\nlevl = \"info\"\n");
    daemon.signal("HUP");
    daemon.wait_for(
        "a wrong configuration is refused",
        Duration::from_secs(5),
        reloads("failure"),
    );
    daemon.wait_for_log("unknown key `log.levl`; did you mean `level`?");
    config(folder.path(), "[log]\nlevel = \"debug\"\n");
    daemon.signal("HUP");
    daemon.wait_for(
        "a right one is taken up",
        Duration::from_secs(5),
        reloads("success"),
    );
}

#[test]
fn sighup_switches_sources_off_and_on() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree::lay_out("mlx5");
    let path = config(folder.path(), "[sampling]\nhwmon = \"1s\"\n");
    let daemon = Daemon::start(&["run", "--config", &path, "--sysfs", tree.path().to_str().unwrap()]);
    daemon.wait_until_ready();
    let temperature = |metrics: &support::Metrics| {
        let labels = [("device", "mlx5_0"), ("sensor", "module")];
        metrics.get("rocewatch_temperature_celsius", &labels)
    };
    let limit = Duration::from_secs(10);
    daemon.wait_for("a sensor is read", limit, |metrics| {
        temperature(metrics) == Some(48.5)
    });
    config(folder.path(), "[sampling]\nhwmon = \"off\"\nmodule = \"1m\"\n");
    daemon.signal("HUP");
    let asked = |metrics: &support::Metrics, source| {
        metrics
            .all("rocewatch_source_state", &[("source", source)])
            .count()
            > 0
    };
    daemon.wait_for("another source is asked", limit, |metrics| {
        asked(metrics, "module") && !asked(metrics, "hwmon") && temperature(metrics).is_none()
    });
}

#[test]
fn the_demo_says_everywhere_that_it_is_one() {
    let daemon = Daemon::start(&["demo", "--scenario", "healthy", "--seed", "7"]);
    daemon.wait_until_ready();
    assert!(daemon.log().contains("simulated"), "{}", daemon.log());
    assert!(daemon.text("/").contains("simulated"));
    assert!(daemon.text("/api/v1/status").contains("simulated"));
    assert!(
        daemon
            .scrape()
            .all("rocewatch_port_info", &[])
            .all(|(series, _)| series.contains("simulated"))
    );
}

#[test]
fn the_service_manager_is_told_when_it_is_ready_that_it_lives_and_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let environment = [
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", "400000"),
    ];
    let daemon = Daemon::start_with(&["demo"], &environment);
    let mut heard = String::new();
    let mut hear_until = |words: &str| {
        while !heard.contains(words) {
            let mut message = [0; 1024];
            let length = socket
                .recv(&mut message)
                .unwrap_or_else(|error| panic!("{words} was never said ({error}): {heard}"));
            heard.push_str(std::str::from_utf8(&message[..length]).unwrap());
            heard.push('\n');
        }
        heard.clear();
    };
    hear_until("READY=1");
    hear_until("WATCHDOG=1");
    hear_until("WATCHDOG=1");
    daemon.signal("HUP");
    hear_until("RELOADING=1");
    hear_until("READY=1");
    daemon.terminate();
    hear_until("STOPPING=1");
}

#[test]
fn a_state_directory_that_cannot_be_made_says_so() {
    assert_fails(
        &run(&["demo", "--state", "/proc/nowhere", "--listen", "127.0.0.1:0"]),
        1,
        &["/proc/nowhere", "--state"],
    );
}

#[test]
fn what_is_not_there_and_what_is_too_large_is_refused() {
    let daemon = Daemon::start(&["demo"]);
    daemon.wait_until_ready();
    let (head, body) = daemon.get("/metric", &[]);
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("/ lists what there is"));
    let (head, _) = daemon.get("/metrics", &["Content-Length: 1000000"]);
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    let long = format!("X: {}", "x".repeat(100_000));
    let (head, _) = daemon.get("/metrics", &[&long]);
    assert!(head.starts_with("HTTP/1.1 431"), "{head}");
    assert!(daemon.scrape().len() > 100);
}

#[test]
fn clients_that_say_nothing_are_let_go_and_hold_up_nobody_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("class/net")).unwrap();
    let path = config(
        folder.path(),
        "[http]\nmax_connections = 2\nheader_timeout = \"300ms\"\n",
    );
    let daemon = Daemon::start(&["run", "--config", &path, "--sysfs", tree.path().to_str().unwrap()]);
    // Twice as many as there are places, each silent in the middle of its request.
    let silent: Vec<_> = (0..4)
        .map(|_| {
            let mut client = std::net::TcpStream::connect(daemon.address()).unwrap();
            std::io::Write::write_all(&mut client, b"GET /metrics HTTP/1.1\r\n").unwrap();
            client
        })
        .collect();
    assert!(daemon.text("/healthz").contains("ok"));
    drop(silent);
}

/// Runs the binary as a user that may do nothing; `None` if this test may not change its user.
fn run_as_nobody(arguments: &[&str]) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let program = folder.path().join("rocewatch");
    std::fs::copy(support::binary(), &program).unwrap();
    let mut command = std::process::Command::new(program);
    std::os::unix::process::CommandExt::uid(&mut command, 65534);
    std::os::unix::process::CommandExt::gid(&mut command, 65534);
    match command.args(arguments).output() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => None,
        output => Some(output.unwrap()),
    }
}

#[test]
fn without_permission_the_message_says_which_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "");
    let secret = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, secret).unwrap();
    let Some(output) = run_as_nobody(&["run", "--config", &path]) else {
        return;
    };
    assert_fails(&output, 64, &[&path, "check the path and its permissions"]);
    let Some(output) = run_as_nobody(&["demo", "--listen", "127.0.0.1:7"]) else {
        return;
    };
    assert_fails(
        &output,
        1,
        &["127.0.0.1:7", "ports below 1024 need a privilege", "--listen"],
    );
    let Some(output) = run_as_nobody(&["demo", "--state", "/root/state", "--listen", "127.0.0.1:0"]) else {
        return;
    };
    assert_fails(&output, 1, &["/root/state", "--state"]);
}

#[test]
fn explain_knows_counters_signals_and_metrics() {
    let says = |name: &str| {
        let output = run(&["explain", name]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let counter = says("rx_prio3_pause_duration");
    for words in [
        "ethtool of mlx5_core",
        "pfc.rx_pause_duration, priority 3, rx",
        "microseconds",
        "rocewatch_pfc_pause_seconds_total",
    ] {
        assert!(counter.contains(words), "{words:?} is not in\n{counter}");
    }
    let signal = says("cnp.tx");
    for driver in ["mlx5_ib", "bnxt_re", "irdma"] {
        assert!(
            signal.contains(&format!("hw_counters of {driver}")),
            "{driver} is not in\n{signal}"
        );
    }
    assert!(says("rocewatch_cnp_sent_total").contains("np_cnp_sent of mlx5_ib"));
    assert_fails(
        &run(&["explain", "np_cnp_send"]),
        64,
        &["np_cnp_send", "np_cnp_sent"],
    );
}

#[test]
fn check_config_names_mistakes_or_says_that_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "[metrics]\nraw = \"all\"\n");
    let output = run(&["check-config", &path]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("is in order"));
    let path = config(folder.path(), "[metrics]\nraw = \"some\"\n");
    assert_fails(
        &run(&["check-config", &path]),
        64,
        &[&path, "line 2", "some", "unexposed"],
    );
}

#[test]
fn log_lines_are_text_or_json_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("class/net")).unwrap();
    let path = config(folder.path(), "[log]\nformat = \"text\"\n");
    let plain = Daemon::start(&["run", "--config", &path, "--sysfs", tree.path().to_str().unwrap()]);
    plain.wait_until_ready();
    assert!(plain.log().contains(" INFO serving http://"), "{}", plain.log());
    let config = config(folder.path(), "[log]\nformat = \"json\"\n");
    let json = Daemon::start(&[
        "run",
        "--config",
        &config,
        "--sysfs",
        tree.path().to_str().unwrap(),
    ]);
    json.wait_until_ready();
    for line in json.log().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
    }
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let commands = [
        "run",
        "demo",
        "ports",
        "counters",
        "capture",
        "explain",
        "check-config",
        "watch",
        "nccl-env",
    ];
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["generate", "completions", shell]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for word in commands.iter().chain(&["replay", "sysfs"]) {
            assert!(text.contains(word), "{shell} does not complete {word}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let output = run(&["generate", "man", pages.to_str().unwrap()]);
    assert!(output.status.success());
    let page = |name: &str| {
        std::fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    assert!(page("rocewatch.1").contains("rocewatch\\-capture(1)"));
    for command in commands {
        let text = page(&format!("rocewatch-{command}.1"));
        assert!(text.contains(".SH OPTIONS"), "{command}");
    }
    assert!(page("rocewatch-ports.1").contains("\\-\\-replay"));
}
