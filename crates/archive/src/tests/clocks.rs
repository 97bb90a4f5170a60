//! Wall clocks that leap.

use super::*;

const HOUR: i64 = 3_600 * SECOND.cast_signed();

/// Plays a minute, in the middle of which the wall clock leaps.
fn leap(by: i64) -> Vec<Rows> {
    let disk = Memory::new();
    let disk_of_writer: Arc<dyn Disk> = Arc::new(disk.clone());
    let limits = Limits {
        recorded: Duration::from_secs(3_600),
        ..small()
    };
    let mut writer = Writer::on(disk_of_writer, limits, EPOCH, now(0)).expect("it opens");
    let port = port(0);
    let track = writer.open_track(&port, &schema(&port, SourceKind::Ethtool));
    for second in 0..60 {
        let at = second * 1_000 + 500;
        writer.row(track, window(at), &row(0, SourceKind::Ethtool, at));
        let mut now = now(second + 1);
        if second >= 30 {
            now.wall += by;
        }
        writer.tick(now);
    }
    let archive = open(&disk);
    for (from, to) in [(0, 30), (32, 60)] {
        let leapt = if from == 0 { 0 } else { by };
        let id = port.id.clone();
        let query = Query {
            port: &id,
            source: SourceKind::Ethtool,
            columns: &["steady"],
            from: WALL + leapt + from * SECOND.cast_signed(),
            to: WALL + leapt + to * SECOND.cast_signed(),
        };
        let found: usize = archive
            .rows(&query)
            .rows
            .iter()
            .map(|rows| rows.times.len())
            .sum();
        let expected = usize::try_from(to - from).expect("small");
        assert!(found >= expected, "{found} of {expected} from {from} on");
    }
    everything(&archive, 0, SourceKind::Ethtool)
}

#[test]
fn rows_keep_their_order_and_their_true_wall_times() {
    for by in [HOUR, -HOUR, 20 * SECOND.cast_signed(), -20 * SECOND.cast_signed()] {
        let rows = leap(by);
        let times: Vec<_> = rows.iter().flat_map(|rows| &rows.times).collect();
        assert_eq!(times.len(), 60);
        assert!(
            times
                .windows(2)
                .all(|pair| pair[0].window.began < pair[1].window.began)
        );
        let walls: Vec<i64> = times
            .iter()
            .map(|time| time.wall - WALL - time.window.began.cast_signed())
            .collect();
        // The row of the second in which it leapt was read before, as far as anyone can tell.
        assert!(walls[..=30].iter().all(|offset| *offset == 0), "{by}");
        assert!(walls[31..].iter().all(|offset| *offset == by), "{by}");
    }
}

#[test]
fn a_leap_of_years_erases_nothing() {
    let years = 10 * 365 * 24 * HOUR;
    for by in [years, -years] {
        assert_eq!(leap(by).iter().map(|rows| rows.times.len()).sum::<usize>(), 60);
    }
}

#[test]
fn two_runs_of_one_machine_are_told_apart() {
    let disk = Memory::new();
    for run in 0..2_u8 {
        let writer: Arc<dyn Disk> = Arc::new(disk.clone());
        let start = Now {
            monotonic: 0,
            wall: WALL + i64::from(run) * HOUR,
        };
        let mut writer = Writer::on(writer, small(), Epoch([run; 16]), start).expect("it opens");
        let port = port(0);
        let track = writer.open_track(&port, &schema(&port, SourceKind::Ethtool));
        for second in 0..3 {
            writer.row(
                track,
                window(second * 1_000),
                &row(0, SourceKind::Ethtool, second * 1_000),
            );
            writer.tick(Now {
                monotonic: (second + 1) * SECOND,
                wall: start.wall + ((second + 1) * SECOND).cast_signed(),
            });
        }
    }
    let rows = everything(&open(&disk), 0, SourceKind::Ethtool);
    let runs: Vec<_> = rows.iter().map(|rows| (rows.epoch, rows.times.len())).collect();
    assert_eq!(runs, [(Epoch([0; 16]), 3), (Epoch([1; 16]), 3)]);
    assert_eq!(rows[1].times[0].wall, WALL + HOUR);
}
