//! The floor, for `scripts/bench-peers`: `reading_loop TREE` keeps every counter file of a sysfs open and reads all of them
//! once a second on one thread. It parses nothing, keeps nothing, and tells nobody.
#![allow(clippy::disallowed_methods)] // a program beside the daemon reads the files itself, and waits

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let tree = std::env::args().nth(1).unwrap_or_else(|| "/sys".to_owned());
    let mut files = Vec::new();
    for device in fs::read_dir(Path::new(&tree).join("class/infiniband"))? {
        let port = device?.path().join("ports/1");
        for folder in ["hw_counters", "counters"] {
            for file in fs::read_dir(port.join(folder))? {
                files.push(File::open(file?.path())?);
            }
        }
    }
    let mut content = [0; 64];
    let mut due = Instant::now();
    loop {
        for file in &files {
            file.read_at(&mut content, 0)?;
        }
        due += Duration::from_secs(1);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}
