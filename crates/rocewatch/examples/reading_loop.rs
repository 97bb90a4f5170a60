//! The floors, for `scripts/bench-peers`: programs that keep every counter file of a sysfs open and read them, parse
//! nothing, keep nothing, and tell nobody. `reading_loop TREE` reads all once a second on one thread; with `--often` it reads
//! `hw_counters` ten times a second and the rest once, as the daemon does; with `--lanes` each device has a thread.
#![allow(clippy::disallowed_methods)] // a program beside the daemon reads the files itself, and waits

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let tree = arguments.next().unwrap_or_else(|| "/sys".to_owned());
    let options: Vec<_> = arguments.collect();
    let asked = |option: &str| options.iter().any(|given| given == option);
    let (times, lanes) = (if asked("--often") { 10 } else { 1 }, asked("--lanes"));
    let mut ports = Vec::new();
    for device in fs::read_dir(Path::new(&tree).join("class/infiniband"))? {
        ports.push(device?.path().join("ports/1"));
    }
    let began = Instant::now();
    let read = move |ports: &[PathBuf]| {
        read_for_ever(
            &files(ports, "hw_counters")?,
            &files(ports, "counters")?,
            times,
            began,
        )
    };
    if !lanes {
        return read(&ports);
    }
    let lane = |port| thread::spawn(move || read(&[port]));
    let lanes: Vec<_> = ports.into_iter().map(lane).collect();
    for lane in lanes {
        lane.join().expect("a lane reads for ever, or says why not")?;
    }
    Ok(())
}

fn files(ports: &[PathBuf], folder: &str) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for port in ports {
        for file in fs::read_dir(port.join(folder))? {
            files.push(File::open(file?.path())?);
        }
    }
    Ok(files)
}

/// Reads `often` so many times a second, and `seldom` once.
fn read_for_ever(often: &[File], seldom: &[File], times: u32, began: Instant) -> io::Result<()> {
    let mut content = [0; 64];
    let mut due = began;
    for round in 0.. {
        let seldom = if round % times == 0 { seldom } else { &[] };
        for file in often.iter().chain(seldom) {
            file.read_at(&mut content, 0)?;
        }
        // Rounds that were missed are not made up for.
        due = (due + Duration::from_secs(1) / times).max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}
