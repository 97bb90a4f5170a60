//! `rocewatch nccl-env`: a shell can read what it prints, and it finds what is set wrong, here and in another process.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

mod support;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{binary, run};

/// A capture of two rails: RoCE v2 over IPv4 at GID 3, DSCP 26 on priority 3, which has PFC, and the other on 0.
fn capture(folder: &Path) -> String {
    let mut sys = String::from("bus/pci/drivers/mlx5_core/\n");
    for rail in 0..2 {
        let device = format!("devices/pci0000:{rail}0/0000:{rail}0:00.0");
        let port = format!("{device}/infiniband/mlx5_{rail}/ports/1");
        let up = "../../..";
        let _ = write!(
            sys,
            "class/infiniband/mlx5_{rail} -> ../../{device}/infiniband/mlx5_{rail}\n\
             class/net/rail{rail} -> ../../{device}/net/rail{rail}\n\
             bus/pci/devices/0000:{rail}0:00.0 -> {up}/{device}\n\
             {device}/driver -> {up}/bus/pci/drivers/mlx5_core\n\
             {device}/class = 0x020000\n\
             {device}/infiniband/mlx5_{rail}/device -> {up}/0000:{rail}0:00.0\n\
             {device}/infiniband/mlx5_{rail}/node_guid = 0200:00ff:fe00:100{rail}\n\
             {port}/state = 4: ACTIVE\n\
             {port}/link_layer = Ethernet\n\
             {device}/net/rail{rail}/device -> {up}/0000:{rail}0:00.0\n\
             {device}/net/rail{rail}/address = 02:00:00:00:00:0{rail}\n\
             {device}/net/rail{rail}/ifindex = {index}\n\
             {device}/net/rail{rail}/type = 1\n\
             {device}/net/rail{rail}/flags = 0x1003\n\
             {device}/net/rail{rail}/operstate = up\n\
             {device}/net/rail{rail}/dev_port = 0\n\
             {device}/net/rail{rail}/carrier = 1\n",
            index = rail + 2,
        );
        let gids = [
            ("fe80:0000:0000:0000:0000:00ff:fe00:0010", "IB/RoCE v1"),
            ("fe80:0000:0000:0000:0000:00ff:fe00:0010", "RoCE v2"),
            ("0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1"),
            ("0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2"),
        ];
        for (index, (gid, kind)) in gids.into_iter().enumerate() {
            let _ = write!(
                sys,
                "{port}/gids/{index} = {gid}\n{port}/gid_attrs/types/{index} = {kind}\n{port}/gid_attrs/ndevs/{index} = rail{rail}\n"
            );
        }
        let dcb = folder.join(format!("netdev/rail{rail}"));
        std::fs::create_dir_all(&dcb).expect("a folder");
        let mapped: String = (0..64)
            .map(|dscp| format!("dscp{dscp}_prio: {}\n", if dscp == 26 { 3 } else { 0 }))
            .collect();
        std::fs::write(
            dcb.join("dcb.1"),
            format!("pfc_enabled: 8\npfc_capable: 8\n{mapped}"),
        )
        .expect("written");
    }
    std::fs::write(folder.join("sys.txt"), sys).expect("written");
    std::fs::write(folder.join("capture.toml"), "format = 1\n").expect("written");
    folder.to_str().expect("a path of text").to_owned()
}

fn check(capture: &str, set: &[(&str, &str)]) -> Output {
    Command::new(binary())
        .args(["nccl-env", "--check", "--replay", capture])
        .env_clear()
        .envs(set.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the binary can be started")
}

#[test]
fn a_shell_takes_over_what_is_right_and_finds_it_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = capture(folder.path());
    let script = format!(
        "eval \"$({program} nccl-env --replay {capture})\" && echo \"$NCCL_IB_HCA $NCCL_IB_GID_INDEX $NCCL_IB_TC\" && \
         {program} nccl-env --check --replay {capture}",
        program = binary().display()
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("sh is there");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.starts_with("=mlx5_0:1,mlx5_1:1 3 106\n"), "{text}");
    assert!(
        text.contains("DSCP 26 -> priority 3, which has PFC: it is lossless"),
        "{text}"
    );
}

#[test]
fn what_is_set_wrong_is_found_and_ends_with_status_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = capture(folder.path());
    let output = check(
        &capture,
        &[
            ("NCCL_IB_TC", "96"),
            ("NCCL_IB_GID_INDEX", "3"),
            ("NCCL_IB_HCA", "mlx5"),
        ],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("WRONG     NCCL_IB_TC=96\n          DSCP 24 -> priority 0, which has no PFC"),
        "{text}"
    );
    assert!(text.contains("right     NCCL_IB_GID_INDEX=3"), "{text}");
}

#[test]
fn another_process_is_looked_at_and_one_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = capture(folder.path());
    let mut other = Command::new("sleep")
        .arg("60")
        .env("NCCL_IB_GID_INDEX", "2")
        .spawn()
        .expect("sleep is there");
    let pid = other.id().to_string();
    let output = run(&["nccl-env", "--json", "--pid", &pid, "--replay", &capture]);
    other.kill().expect("it runs");
    other.wait().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let checked: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let found = checked
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"] == "NCCL_IB_GID_INDEX");
    let found = found.expect("it was checked");
    assert_eq!((&found["state"], &found["value"]), (&"wrong".into(), &"2".into()));
    assert_eq!(found["place"], format!("the environment of process {pid}"));
    let gone = run(&["nccl-env", "--pid", &pid, "--replay", &capture]);
    assert!(
        String::from_utf8_lossy(&gone.stderr).contains("name a process that runs"),
        "{gone:?}"
    );
}
