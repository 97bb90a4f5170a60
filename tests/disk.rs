//! A disk that is full: a small file system of its own, in a mount namespace of its own, that a file fills and leaves.

#![allow(clippy::disallowed_methods)] // tests start processes and write files
#![allow(clippy::print_stdout)] // a test that cannot run says so

mod support;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::{Daemon, binary, hurried_config, run};

const PAUSED: &str = "rocewatch_archive_paused";
const LIMIT: Duration = Duration::from_secs(60);

/// True where a file system can be mounted in a namespace of one's own.
fn may_mount() -> bool {
    let tried = Command::new("unshare")
        .args(["--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"])
        .output();
    tried.is_ok_and(|output| output.status.success())
}

/// A daemon whose state is on a file system of four megabytes, and where that is for other processes.
fn daemon(folder: &Path, config: &Path) -> (Daemon, PathBuf) {
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=4m tmpfs \"$1\" && shift && exec \"$@\"";
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(folder)
        .arg(binary())
        .args(["demo", "--ports", "2", "--speed", "10", "--config"])
        .arg(config)
        .arg("--state")
        .arg(folder);
    let daemon = Daemon::start_by(command);
    let root = PathBuf::from(format!("/proc/{}/root", daemon.id()));
    let inside = root.join(folder.strip_prefix("/").expect("temporary folders are absolute"));
    (daemon, inside)
}

/// Takes all the room that there is.
fn fill(path: &Path) {
    let mut file = File::create(path).expect("a file can be made");
    let piece = vec![0x55; 4096];
    while file.write_all(&piece).is_ok() {}
}

/// Wall times of the rows of one counter.
fn times(archive: &Path) -> Vec<String> {
    let archive = archive.to_str().expect("paths are text");
    let output = run(&[
        "history",
        "--format",
        "csv",
        "--signal",
        "rx_packets_phy",
        "--port",
        "mlx5_0",
        "--since",
        "-1d",
        "--until",
        "2100-01-01 00:00",
        "--archive",
        archive,
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("it prints text");
    let time = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
    text.lines().skip(1).map(time).collect()
}

#[test]
fn a_full_disk_costs_neither_samples_nor_scrapes_nor_rows() {
    if !may_mount() {
        println!("skipped: mounting a file system in a namespace of one's own needs root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let (daemon, inside) = daemon(folder.path(), &hurried_config(elsewhere.path(), 10));
    daemon.wait_until_ready();
    let archive = inside.join("archive");
    daemon.wait_for("rows are archived", LIMIT, |now| {
        now.get("rocewatch_archive_rows_total", &[]) > Some(200.0)
    });
    assert!(
        !folder.path().join("archive").exists(),
        "the file system is the daemon's alone"
    );

    fill(&inside.join("ballast"));
    let full = daemon.wait_for("the disk is full", LIMIT, |now| now.get(PAUSED, &[]) == Some(1.0));
    let samples = |of: &support::Metrics| {
        let labels = [("device", "mlx5_0"), ("source", "hw_counters")];
        of.value("rocewatch_samples_total", &labels)
    };
    // It goes on sampling and being scraped, for many seconds of its clock.
    let errors = "rocewatch_archive_write_errors_total";
    let later = daemon.wait_for("seconds pass", LIMIT, |now| now.get(errors, &[]) > Some(20.0));
    assert!(samples(&later) > samples(&full) + 20.0, "{}", daemon.log());
    assert!(daemon.log().contains("is not written: "), "{}", daemon.log());
    assert!(
        daemon.log().contains("No space left on device"),
        "{}",
        daemon.log()
    );
    // What is there can be looked up meanwhile.
    let before = times(&archive);
    let newest = before.last().expect("there are rows").clone();

    std::fs::remove_file(inside.join("ballast")).expect("the file can be removed");
    let again = daemon.wait_for("it is written again", LIMIT, |now| {
        now.get(PAUSED, &[]) == Some(0.0)
    });
    assert!(again.value("rocewatch_archive_lost_rows_total", &[]) < 0.5);
    assert!(daemon.log().contains("is written again"), "{}", daemon.log());
    // The rows of the time in which the disk was full had waited.
    let after = times(&archive);
    assert_eq!(after[..before.len()], before);
    let waited = after.iter().filter(|time| **time > newest).count();
    assert!(waited >= 20, "{waited} rows after {newest}");
    let (status, _) = daemon.terminate();
    assert_eq!(status, Some(0));
}
