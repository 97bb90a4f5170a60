//! Events of a kernel's RDMA devices. Run in the guest of `tests/vm` with six NICs, by `--ignored`.
#![allow(clippy::disallowed_methods)] // steers the fake NICs, and waits

use super::EVENTS;
use crate::{Kernel, Options, clock};
use model::{Host, Opened, Port, Read, Source, SourceKind};
use std::time::Duration;
use std::{fs, thread};

fn steer(line: &str) {
    fs::write("/proc/fakeroce", line).unwrap();
}

fn port(device: &str) -> Port {
    let ports = Kernel::new(&Options::default()).unwrap().ports().unwrap();
    ports.into_iter().find(|port| port.device == device).unwrap()
}

fn open(port: &Port) -> Box<dyn Source> {
    match Kernel::new(&Options::default())
        .unwrap()
        .open(port, SourceKind::Verbs)
    {
        Opened::Active(source) => source,
        Opened::NotApplicable(why) | Opened::Failed(why) => panic!("{why}"),
    }
}

/// Reads until `event` was seen `times`, or fails.
fn wait(source: &mut dyn Source, event: &str, times: u64) {
    let at = EVENTS.iter().position(|(_, name)| *name == event).unwrap();
    let mut row = [0; EVENTS.len()];
    for _ in 0..100 {
        assert_eq!(source.read(&mut row), Read::Row);
        if row[at] >= times {
            assert_eq!(row[at], times, "{event}: {row:?}");
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("{times} of {event} did not come: {row:?}");
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn a_cable_is_pulled_and_an_address_is_added() {
    let mut source = open(&port("mlx5_1"));
    let mut row = [7; EVENTS.len()];
    let began = clock::now();
    assert_eq!(
        source.read(&mut row),
        Read::Row,
        "a read does not wait for an event"
    );
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(row, [0; EVENTS.len()], "since it was opened");
    let allocated = crate::allocations::during(|| {
        assert_eq!(source.read(&mut row), Read::Row);
    });
    assert_eq!(allocated, 0);

    steer("mlx5_1 !carrier 0");
    wait(&mut *source, "port_err", 1);
    steer("mlx5_1 !carrier 1");
    wait(&mut *source, "port_active", 1);
    steer("mlx5_1 !carrier 0;mlx5_1 !carrier 1");
    wait(&mut *source, "port_err", 2);
    crate::netns::ip("addr add 10.77.0.1/24 dev rail1");
    let gids = EVENTS.iter().position(|(_, name)| *name == "gid_change").unwrap();
    for _ in 0..100 {
        assert_eq!(source.read(&mut row), Read::Row);
        if row[gids] > 0 {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("no change of the GID table: {row:?}");
}

#[test]
#[ignore = "needs the guest of tests/vm"]
fn a_device_that_is_removed_is_fatal_and_then_gone() {
    let port = port("mlx5_2");
    let mut source = open(&port);
    steer("unplug 2");
    wait(&mut *source, "device_fatal", 1);
    let mut row = [0; EVENTS.len()];
    for _ in 0..2 {
        assert!(matches!(source.read(&mut row), Read::Missing(why) if why.reason == "ENODEV"));
    }
    steer("plug 2");
    crate::netns::ip("link set rail2 up");
    let again = self::port("mlx5_2");
    assert!(!again.same_instance(&port));
    assert_eq!(open(&again).read(&mut row), Read::Row);
    assert_eq!(row, [0; EVENTS.len()]);
}
