//! The packages, installed where they are meant to be: `./x packages` and, in `./x test`, the same with the guest's program.

#![allow(clippy::disallowed_methods)] // tests start processes, wait and read files

#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tree.rs"]
mod tree;

mod container;
mod systemd;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The newest interface of glibc that the program may call: what Debian 12, Ubuntu 22.04 and RHEL 9 have.
const GLIBC: (u32, u32) = (2, 34);

/// A path in the project.
fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The folder with the packages, of which `packaging/build` made two releases.
fn packages() -> PathBuf {
    std::env::var_os("ROCEWATCH_PACKAGES")
        .expect("ROCEWATCH_PACKAGES names the folder with the packages; ./x packages sets it")
        .into()
}

/// The package of this release with this ending.
fn package(release: u32, ending: &str) -> PathBuf {
    let infix = format!("-{release}");
    let mut found: Vec<_> = std::fs::read_dir(packages())
        .expect("the folder is there")
        .map(|entry| entry.expect("it is readable").path())
        .filter(|path| {
            let name = path.file_name().expect("it has a name").to_string_lossy();
            name.ends_with(ending) && name.contains(&infix)
        })
        .collect();
    assert_eq!(found.len(), 1, "release {release}, {ending}: {found:?}");
    found.remove(0)
}

fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What the command prints; it has to succeed.
fn output(command: &mut Command) -> String {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

/// A Debian root with systemd, unpacked anew.
fn debian_root() -> tempfile::TempDir {
    let archive = output(&mut Command::new(project("tests/packages/root")));
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    output(
        Command::new("tar")
            .args([
                "--extract",
                "--numeric-owner",
                "--file",
                archive.trim(),
                "--directory",
            ])
            .arg(root.path()),
    );
    root
}

fn chroot(root: &Path) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root);
    command
}

#[test]
#[ignore = "needs packages and root: ./x packages"]
fn the_deb_lives_and_goes_under_systemd() {
    let root = debian_root();
    let to = root.path().join("packages");
    std::fs::create_dir(&to).unwrap();
    for release in [1, 2] {
        let file = package(release, ".deb");
        std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
    let fixture = tree::lay_out("mlx5");
    output(
        Command::new("cp")
            .arg("-a")
            .arg(fixture.path())
            .arg(root.path().join("srv/sysfs")),
    );
    output(
        Command::new("chmod")
            .args(["-R", "a+rX"])
            .arg(root.path().join("srv/sysfs")),
    );
    let told = output(
        Command::new(project("tests/packages/boot"))
            .arg(root.path())
            .arg(project("tests/packages/scenario")),
    );
    print!("{told}");
    assert!(told.contains("ok: purged"), "{told}");
}
