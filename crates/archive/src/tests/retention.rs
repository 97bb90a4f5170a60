//! What is let go of, and when.

use super::*;

#[test]
fn the_oldest_goes_by_recorded_time() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    for second in 1..=120 {
        let status = server.play();
        let found = common(&open(&disk));
        let kept: Vec<u64> = found.iter().copied().collect();
        assert_eq!(kept.last(), Some(&(second - 1)));
        assert_eq!(
            kept.len() as u64,
            kept[kept.len() - 1] - kept[0] + 1,
            "there is no gap"
        );
        assert!(
            kept.len() >= second.min(28).try_into().expect("small"),
            "{} at {second}",
            kept.len()
        );
        // A segment, a log and the one being filled more than asked for.
        assert!(kept.len() <= 28 + 3 * 5, "{} at {second}", kept.len());
        assert!(status.recorded <= Duration::from_secs(28 + 10));
    }
}

#[test]
fn the_oldest_goes_by_size() {
    let disk = Memory::new();
    let limits = Limits {
        bytes: 120_000,
        recorded: Duration::from_secs(360_000),
        seal: Duration::from_secs(60),
        ..small()
    };
    let mut server = Server::start(&disk, limits, 0);
    let mut most = 0;
    for _ in 0..80 {
        let status = server.play_for(100);
        let on_disk: usize = disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(status.row_bytes, on_disk as u64);
        most = most.max(on_disk);
    }
    assert!((80_000..=130_000).contains(&most), "{most}");
    let found = common(&open(&disk));
    assert!(found.first() > Some(&0));
    assert_eq!(found.last(), Some(&7_999));
}

#[test]
fn time_in_which_nothing_was_recorded_erases_nothing() {
    let disk = Memory::new();
    let mut server = Server::start(&disk, small(), 0);
    server.play_for(20);
    drop(server);
    // A week later, with a limit of 28 seconds.
    let week = 7 * 24 * 3_600;
    let mut server = Server::start(&disk, small(), week);
    server.play_for(6);
    let expected: BTreeSet<u64> = (0..20).chain(week..week + 6).collect();
    assert_eq!(common(&open(&disk)), expected);
}

#[test]
fn a_restart_knows_what_there_is() {
    let disk = Memory::new();
    for run in 0..30 {
        let mut server = Server::start(&disk, small(), run * 10);
        server.play_for(10);
    }
    let found = common(&open(&disk));
    assert!((28..=28 + 25).contains(&found.len()), "{}", found.len());
    assert_eq!(found.last(), Some(&299));
}
