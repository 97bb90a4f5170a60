//! A reader that is interrupted: the writer goes on between any two of its steps.

use super::*;
use crate::files::{Lock, Sink, Source};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A disk on which the writer goes on for some seconds before the reader's step number `at`.
struct Meanwhile {
    disk: Memory,
    server: Mutex<Server>,
    at: usize,
    steps: AtomicUsize,
    seconds: u64,
}

impl Meanwhile {
    fn step(&self) {
        if self.steps.fetch_add(1, Ordering::SeqCst) == self.at {
            self.server.lock().expect("nobody panics").play_for(self.seconds);
        }
    }
}

impl Disk for Meanwhile {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.step();
        self.disk.list(folder)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Source>> {
        self.step();
        self.disk.open(path)
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.make_folder(folder)
    }

    fn lock(&self) -> io::Result<Lock> {
        self.disk.lock()
    }

    fn append(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        self.disk.append(path)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.sync_folder(folder)
    }
}

#[test]
fn a_reader_finds_all_that_was_written_before_it_came_and_no_gap() {
    let limits = Limits {
        recorded: Duration::from_secs(3_600),
        ..small()
    };
    for start in 0..12 {
        for seconds in [1, 4, 5, 6, 11, 17] {
            for at in 0..9 {
                let disk = Memory::new();
                let mut server = Server::start(&disk, limits, 0);
                server.play_for(start);
                let meanwhile = Meanwhile {
                    disk,
                    server: Mutex::new(server),
                    at,
                    steps: AtomicUsize::new(0),
                    seconds,
                };
                let found = common(&Archive::on(&meanwhile).expect("it opens"));
                let what = format!("{seconds} seconds at step {at} after {start}");
                assert!(found.len() as u64 >= start, "{what}: {found:?}");
                assert_eq!(found, (0..found.len() as u64).collect(), "{what}");
            }
        }
    }
}
