//! `rocewatch watch -- COMMAND`: the command is run as if nobody watched, and what the ports did is told.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

mod support;

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use support::{binary, run};

/// A capture of four NICs, each with two readings.
fn capture() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/drivers/rates");
    path.to_str().expect("a path of text").to_owned()
}

/// Under whatever the tests themselves were started: with nohup, or behind a shell's `&`, signals are ignored, and would be so
/// in everything below.
const AS_FROM_A_TERMINAL: [&str; 2] = ["env", "--default-signal"];

fn command(options: &[&str], script: &str) -> Command {
    let [env, default] = AS_FROM_A_TERMINAL;
    let mut command = Command::new(env);
    command.arg(default).arg(binary());
    command.args(["watch", "--replay", &capture()]).args(options);
    command.args(["--", "sh", "-c", script]);
    command
}

fn watch(options: &[&str], script: &str) -> Output {
    let output = command(options, script).stdin(Stdio::null()).output();
    output.expect("the binary can be started")
}

fn start(script: &str) -> Child {
    command(&[], script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started")
}

fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn port<'a>(report: &'a Value, device: &str) -> &'a Value {
    let ports = report["ports"].as_array().expect("ports are listed");
    let found = ports.iter().find(|port| port["device"] == device);
    found.unwrap_or_else(|| panic!("{device} is not in {report}"))
}

#[test]
fn the_status_is_that_of_the_command_or_128_and_its_signal() {
    for (script, status) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        let output = watch(&["--json"], script);
        assert_eq!(output.status.code(), Some(status), "{script}");
        assert_eq!(report(&output)["exit_status"], status, "{script}");
    }
}

#[test]
fn a_command_that_cannot_be_run_ends_as_under_env() {
    let capture = capture();
    let of = |command: &str| run(&["watch", "--replay", &capture, "--", command]);
    let missing = of("no-such-command");
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no-such-command: No such file"));
    assert_eq!(of("/etc/hostname").status.code(), Some(126));
    assert_eq!(run(&["watch"]).status.code(), Some(64));
}

#[test]
fn standard_streams_are_the_commands() {
    let mut child = start("read line; echo \"got $line\"; echo said >&2");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"something\n").expect("the command reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.stdout, b"got something\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("said\nrocewatch: sh -c"), "{said}");
}

#[test]
fn signals_sent_to_it_are_passed_on() {
    for (signal, status) in [("TERM", 21), ("HUP", 22), ("USR1", 23), ("INT", 24)] {
        let script = format!("trap 'exit {status}' {signal}; echo ready; while :; do sleep 0.05; done");
        let mut child = start(&script);
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("the command writes");
        assert_eq!(line, "ready\n");
        let sent = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status();
        assert!(sent.expect("kill is there").success());
        let ended = child.wait_with_output().expect("it ends").status;
        assert_eq!(ended.code(), Some(status), "{signal}");
    }
}

#[test]
fn what_is_typed_at_the_terminal_comes_once() {
    let script = "trap 'echo interrupted' INT; echo ready; sleep 0.6; sleep 0.6; exit 7";
    // script(1) starts $SHELL, and one that stays in between, as dash does, would end by the ^C itself.
    let line = format!(
        "exec {} {} watch --replay {} -- sh -c \"{script}\"",
        AS_FROM_A_TERMINAL.join(" "),
        binary().display(),
        capture()
    );
    let mut terminal = Command::new("script")
        .args([
            "--quiet",
            "--return",
            "--echo",
            "never",
            "--command",
            &line,
            "/dev/null",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script (bsdutils) is there");
    let mut output = BufReader::new(terminal.stdout.take().expect("piped"));
    let mut shown = String::new();
    while !shown.contains("ready") {
        assert_ne!(output.read_line(&mut shown).expect("text"), 0, "{shown}");
    }
    let mut keyboard = terminal.stdin.take().expect("piped");
    keyboard.write_all(b"\x03").expect("^C");
    while output.read_line(&mut shown).is_ok_and(|read| read > 0) {}
    assert_eq!(terminal.wait().expect("it ends").code(), Some(7), "{shown}");
    let interrupted = shown.lines().filter(|line| line.trim() == "interrupted");
    assert_eq!(interrupted.count(), 1, "{shown}");
}

#[test]
fn under_nohup_the_command_is_under_nohup_too() {
    let script = "kill -HUP $$; exit 5";
    let status = Command::new("nohup")
        .arg(binary())
        .args(["watch", "--replay", &capture(), "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("nohup is there");
    assert_eq!(status.code(), Some(5));
    assert_eq!(watch(&[], script).status.code(), Some(129));
}

#[test]
fn what_the_ports_did_is_told_and_compared_with_another_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.json");
    let file = file.to_str().expect("text");
    let first = report(&watch(&["--json", "--save", file], "sleep 1.5"));
    assert_eq!(first["shape"], 1);
    assert!(first["seconds"].as_f64().expect("a number") >= 1.5);
    // Between its readings the capture grows evenly: a second of pause to 80 GB received and 40 GB sent.
    let port = port(&first, "mlx5_0");
    assert_eq!(port["bits_per_second"], 400e9);
    let paused = &port["pauses"][0];
    assert_eq!(
        (&paused["direction"], &paused["priority"]),
        (&"rx".into(), &3.into())
    );
    let number = |value: &Value| value.as_f64().expect("a number");
    let (seconds, sent) = (number(&paused["seconds"]), number(&port["tx"]["bytes"]));
    assert!(
        seconds > 0.1 && (sent / seconds / 40e9 - 1.0).abs() < 0.01,
        "{port:#}"
    );
    assert!(
        (number(&port["rx"]["bytes"]) / sent - 2.0).abs() < 0.01,
        "{port:#}"
    );
    // The capture has ended: nothing grows any more.
    let mut saved: Value =
        serde_json::from_str(&std::fs::read_to_string(file).expect("written")).expect("JSON");
    assert_eq!(saved, first);
    let slower = watch(&["--json", "--baseline", file], "exit 0");
    let worse = report(&slower)["baseline"]["regressions"]
        .as_array()
        .expect("a list")
        .len();
    assert_eq!(slower.status.code(), Some(if worse == 0 { 0 } else { 123 }));
    // The same run beside one that was twice as fast.
    for traffic in ["rx", "tx"] {
        for key in ["busiest_second", "utilization"] {
            for port in saved["ports"].as_array_mut().expect("ports") {
                let value = port[traffic][key].as_f64();
                port[traffic][key] = value.map_or(Value::Null, |value| (value * 100.0).into());
            }
        }
    }
    std::fs::write(file, saved.to_string()).expect("written");
    let slower = watch(&["--baseline", file], "exit 0");
    assert_eq!(slower.status.code(), Some(123));
    assert!(String::from_utf8_lossy(&slower.stderr).contains("worse than the run of"));
    assert_eq!(watch(&["--baseline", file], "exit 4").status.code(), Some(4));
    std::fs::write(file, "{}").expect("written");
    let wrong = watch(&["--baseline", file], "echo never run");
    assert_eq!((wrong.status.code(), wrong.stdout.len()), (Some(64), 0));
}
