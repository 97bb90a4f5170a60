//! A disk that takes no more.

use super::*;
use crate::limits::State;
use crate::memory::Mood;

fn lasting() -> Limits {
    Limits {
        recorded: Duration::from_secs(3_600),
        ..small()
    }
}

#[test]
fn rows_wait_while_the_disk_is_full_or_read_only_and_none_is_lost() {
    for mood in [
        Mood::ReadOnly,
        Mood::Full { left: 0 },
        Mood::Full { left: 100 },
        Mood::Full { left: 5_000 },
    ] {
        for start in 0..12 {
            let disk = Memory::new();
            let mut server = Server::start(&disk, lasting(), 0);
            server.play_for(start);
            disk.set(mood);
            let status = server.play_for(30);
            assert!(matches!(status.state, State::Paused(_)), "{mood:?} {start}");
            assert!(status.waiting_bytes > 0);
            // What is there can be looked up meanwhile.
            assert!(
                common(&open(&disk)).is_superset(&(0..start).collect()),
                "{mood:?} {start}"
            );
            disk.set(Mood::Willing);
            let status = server.play_for(20);
            assert_eq!(
                (status.state, status.waiting_bytes, status.lost_rows),
                (State::Writing, 0, 0)
            );
            let archive = open(&disk);
            assert_eq!(common(&archive), (0..start + 50).collect(), "{mood:?} {start}");
            assert_eq!(archive.damages(), [], "{mood:?} {start}");
        }
    }
}

#[test]
fn a_seal_that_failed_half_way_and_could_not_be_undone_is_made_again() {
    for left in (0..6_000).step_by(60) {
        let disk = Memory::new();
        let mut server = Server::start(&disk, lasting(), 0);
        server.play_for(4);
        disk.set(Mood::Faulty { left });
        server.play_for(3);
        disk.set(Mood::Willing);
        assert_eq!(server.play_for(15).state, State::Writing, "{left}");
        assert_eq!(common(&open(&disk)), (0..22).collect(), "{left}");
        drop(server);
        Server::start(&disk, lasting(), 22).play_for(4);
        assert_eq!(common(&open(&disk)), (0..26).collect(), "{left}");
        // What was left of it goes with the rest.
        Server::start(&disk, small(), 30).play_for(80);
        let found = common(&open(&disk));
        assert!(
            found.is_superset(&(82..110).collect()) && !found.contains(&25),
            "{left}"
        );
    }
}

#[test]
fn a_disk_that_is_read_only_at_the_start_is_no_obstacle() {
    let disk = Memory::new();
    disk.set(Mood::ReadOnly);
    let mut server = Server::start(&disk, lasting(), 0);
    assert!(matches!(server.play_for(5).state, State::Paused(why) if why.contains("read-only")));
    disk.set(Mood::Willing);
    assert_eq!(server.play().state, State::Writing);
    assert_eq!(common(&open(&disk)), (0..6).collect());
}

#[test]
fn the_oldest_rows_go_where_no_more_can_wait() {
    let disk = Memory::new();
    let limits = Limits {
        waiting_bytes: 4_000,
        ..lasting()
    };
    let mut server = Server::start(&disk, limits, 0);
    disk.set(Mood::Full { left: 0 });
    let status = server.play_for(60);
    assert!(status.waiting_bytes <= 4_000 && status.lost_rows > 0);
    disk.set(Mood::Willing);
    let status = server.play();
    let found = common(&open(&disk));
    assert_eq!(found.last(), Some(&60));
    let tracks = u64::from(PORTS) * READS.len() as u64;
    assert_eq!(status.lost_rows, (61 - found.len() as u64) * tracks);
    assert_eq!(found, (61 - found.len() as u64..61).collect());
}

#[test]
fn an_archive_that_cannot_seal_keeps_its_limit() {
    let disk = Memory::new();
    let limits = Limits {
        bytes: 40_000,
        ..lasting()
    };
    let mut server = Server::start(&disk, limits, 0);
    for _ in 0..300 {
        let status = server.play();
        assert!(status.row_bytes < 70_000, "{}", status.row_bytes);
    }
}
