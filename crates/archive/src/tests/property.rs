//! What is read equals what was written, whatever that was.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What happens next.
#[derive(Clone, Debug)]
enum Act {
    /// A row is read so many milliseconds later.
    Row(u64, Vec<u64>),
    /// Seconds pass in which nothing is read.
    Pause(u64),
    /// The process ends orderly, and another begins.
    Restart,
    /// The source begins anew with so many columns.
    Reopen(usize),
}

const COLUMNS: usize = 6;

fn cell() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any::<u64>(),
        4 => 0_u64..2_000,
        2 => Just(0),
        1 => Just(ABSENT),
        1 => Just(ABSENT - 1),
        1 => (0_u32..64).prop_map(|bit| 1 << bit),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        30 => (1_u64..1_500, vec(cell(), COLUMNS)).prop_map(|(after, row)| Act::Row(after, row)),
        2 => (1_u64..9).prop_map(Act::Pause),
        1 => Just(Act::Restart),
        1 => (1..=COLUMNS).prop_map(Act::Reopen),
    ]
}

/// Plays `acts`, and tells what has to be found: of each second and schema the newest row, by time.
fn play(disk: &Memory, acts: Vec<Act>, limits: Limits) -> BTreeMap<u64, Vec<u64>> {
    let port = port(0);
    let schema = |columns: usize| {
        let names = (0..columns).map(|number| format!("column {number}"));
        Schema::new(port.id.clone(), &port.driver, SourceKind::Ethtool, names)
    };
    let start = |second: u64| {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        Writer::on(disk, limits, EPOCH, now(second)).expect("it opens")
    };
    let (mut at, mut second, mut columns) = (0, 0, COLUMNS);
    let mut writer = start(0);
    let mut track = writer.open_track(&port, &schema(columns));
    let mut expected = BTreeMap::new();
    // A second that was begun under one schema and ended under another has a row of each.
    let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
    for act in acts {
        match act {
            Act::Row(after, row) => {
                at += after;
                while second < at / 1_000 {
                    second += 1;
                    writer.tick(now(second));
                }
                writer.row(track, window(at), &row[..columns]);
                if let Some(former) = newest.insert(at / 1_000, at) {
                    expected.remove(&former);
                }
                expected.insert(at, row[..columns].to_vec());
            }
            Act::Pause(seconds) => at += seconds * 1_000,
            Act::Restart => {
                assert_eq!(writer.finish().state, crate::limits::State::Writing);
                writer = start(second);
                track = writer.open_track(&port, &schema(columns));
                newest.clear();
            }
            Act::Reopen(wanted) => {
                writer.close_track(track);
                columns = wanted;
                track = writer.open_track(&port, &schema(columns));
                newest.clear();
            }
        }
    }
    assert_eq!(writer.finish().state, crate::limits::State::Writing);
    expected
}

fn found(disk: &Memory, columns: &[&str]) -> BTreeMap<u64, Vec<u64>> {
    let archive = open(disk);
    assert_eq!(archive.damages(), []);
    let id = port(0).id;
    let query = Query {
        port: &id,
        source: SourceKind::Ethtool,
        columns,
        from: i64::MIN,
        to: i64::MAX,
    };
    let found = archive.rows(&query);
    assert_eq!(found.damages, []);
    let mut all = BTreeMap::new();
    for rows in &found.rows {
        for (i, time) in rows.times.iter().enumerate() {
            let at = time.window.began / MS;
            assert_eq!(
                (time.window, time.wall),
                (window(at), WALL + (at * MS).cast_signed())
            );
            let row = rows.columns.iter().map(|column| column.values[i]).collect();
            assert_eq!(all.insert(at, row), None, "a row is there twice");
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_equals_what_was_written(acts in vec(act(), 1..120)) {
        let disk = Memory::new();
        let limits = Limits { recorded: Duration::from_secs(86_400), bytes: 1 << 30, ..small() };
        let expected = play(&disk, acts, limits);
        prop_assert_eq!(&found(&disk, &[]), &expected);
        // One column alone, as well.
        let first: BTreeMap<_, _> = expected.into_iter().map(|(at, row)| (at, row[..1].to_vec())).collect();
        prop_assert_eq!(found(&disk, &["column 0"]), first);
    }
}
