//! Models of the ring, over every interleaving that matters:
//! `RUSTFLAGS='--cfg loom' cargo test --release -p rocewatch-ring --test loom` (`./x loom`).
#![cfg(loom)]

use loom::thread;
use ring::{Cursor, Next, Window, channel};

/// Every value of row `number` is `number + 1`, so a torn row shows.
fn push(writer: &mut ring::Writer, number: u64) {
    writer.push(
        Window {
            began: number + 1,
            ended: number + 1,
        },
        &[number + 1, number + 1],
    );
}

fn assert_whole(row: &ring::Row) {
    let right = row.number + 1;
    assert_eq!((row.window.began, row.window.ended), (right, right));
    assert_eq!(*row.values, [right, right]);
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

#[test]
fn a_reader_that_races_overwriting_never_sees_a_torn_row() {
    model(|| {
        let (mut writer, reader) = channel(2, 1);
        let thread = thread::spawn(move || {
            push(&mut writer, 0);
            push(&mut writer, 1);
        });
        let mut row = reader.row();
        for number in 0..2 {
            if reader.read(number, &mut row).is_ok() {
                assert_eq!(row.number, number);
                assert_whole(&row);
            }
        }
        thread.join().unwrap();
        assert!(reader.read(1, &mut row).is_ok());
        assert_whole(&row);
        assert!(reader.read(0, &mut row).is_err());
    });
}

#[test]
fn the_newest_row_is_whole_and_never_goes_back() {
    model(|| {
        let (mut writer, reader) = channel(2, 2);
        push(&mut writer, 0);
        let thread = thread::spawn(move || {
            push(&mut writer, 1);
            push(&mut writer, 2);
        });
        let mut row = reader.row();
        assert!(reader.latest(&mut row));
        assert_whole(&row);
        let first = row.number;
        assert!(reader.latest(&mut row));
        assert_whole(&row);
        assert!(row.number >= first);
        thread.join().unwrap();
    });
}

#[test]
fn a_cursor_gives_every_row_once_or_counts_it_as_lost() {
    model(|| {
        let (mut writer, reader) = channel(2, 2);
        let mut row = reader.row();
        let mut cursor = Cursor::new(reader);
        let thread = thread::spawn(move || {
            for number in 0..3 {
                push(&mut writer, number);
            }
        });
        let mut expected = 0;
        let mut follow = |cursor: &mut Cursor| loop {
            match cursor.next(&mut row) {
                Next::Row => {
                    assert_eq!(row.number, expected);
                    assert_whole(&row);
                    expected += 1;
                }
                Next::Lost(rows) => expected += rows,
                Next::None => return expected,
            }
        };
        follow(&mut cursor);
        thread.join().unwrap();
        assert_eq!(follow(&mut cursor), 3);
        assert!(cursor.reader().is_closed());
    });
}

#[test]
fn two_readers_do_not_disturb_each_other() {
    model(|| {
        let (mut writer, reader) = channel(2, 1);
        push(&mut writer, 0);
        let other = reader.clone();
        let thread = thread::spawn(move || {
            let mut row = other.row();
            if other.latest(&mut row) {
                assert_whole(&row);
            }
        });
        let mut row = reader.row();
        assert!(reader.read(0, &mut row).is_ok());
        assert_whole(&row);
        thread.join().unwrap();
    });
}
