//! The ring against a plain queue, and under full load.
#![cfg(not(loom))]

use proptest::prelude::*;
use ring::{Cursor, Next, Unavailable, Window, channel};
use std::collections::VecDeque;
use std::thread;

fn window(number: u64) -> Window {
    Window {
        began: number * 10,
        ended: number * 10 + 5,
    }
}

#[test]
fn an_empty_ring_has_nothing() {
    let (writer, reader) = channel(3, 4);
    let mut row = reader.row();
    assert!(!reader.latest(&mut row));
    assert!(!reader.at_or_before(u64::MAX, &mut row));
    assert_eq!(reader.read(0, &mut row), Err(Unavailable::NotYet));
    assert_eq!(Cursor::new(reader.clone()).next(&mut row), Next::None);
    assert!(!reader.is_closed());
    drop(writer);
    assert!(reader.is_closed());
}

#[test]
fn a_window_has_a_middle_and_a_length() {
    let window = Window {
        began: 100,
        ended: 160,
    };
    assert_eq!((window.midpoint(), window.length()), (130, 60));
}

#[test]
fn readers_keep_what_is_there_when_the_writer_goes() {
    let (mut writer, reader) = channel(1, 4);
    writer.push(window(0), &[7]);
    drop(writer);
    let mut row = reader.row();
    assert!(reader.latest(&mut row));
    assert_eq!(*row.values, [7]);
}

#[test]
#[should_panic(expected = "one value per column")]
fn a_row_of_another_width_is_a_mistake() {
    channel(2, 2).0.push(window(0), &[1]);
}

proptest! {
    #[test]
    fn it_answers_like_a_queue_of_the_newest_rows(
        rows in 1usize..20,
        values in prop::collection::vec(any::<[u64; 2]>(), 0..60),
        time in 0u64..700,
        follow_every in 1usize..25,
    ) {
        let (mut writer, reader) = channel(2, rows);
        let mut queue = VecDeque::new();
        let mut cursor = Cursor::new(reader.clone());
        let mut row = reader.row();
        let (mut followed, mut lost) = (Vec::new(), 0);
        for (number, pair) in values.iter().enumerate() {
            writer.push(window(number as u64), pair);
            queue.push_back((number as u64, *pair));
            if queue.len() > rows {
                queue.pop_front();
            }
            if number % follow_every == 0 {
                loop {
                    match cursor.next(&mut row) {
                        Next::Row => followed.push((row.number, [row.values[0], row.values[1]])),
                        Next::Lost(count) => lost += count,
                        Next::None => break,
                    }
                }
            }
        }
        // Every row by number: there, gone, or not yet.
        for number in 0..values.len() as u64 + 2 {
            let right = queue.iter().find(|(there, _)| *there == number);
            match reader.read(number, &mut row) {
                Ok(()) => prop_assert_eq!(Some(&(row.number, [row.values[0], row.values[1]])), right),
                Err(Unavailable::Gone) => prop_assert!(right.is_none() && number < values.len() as u64),
                Err(Unavailable::NotYet) => prop_assert!(number >= values.len() as u64),
            }
        }
        prop_assert_eq!(reader.latest(&mut row), !queue.is_empty());
        if let Some((number, _)) = queue.back() {
            prop_assert_eq!(row.number, *number);
        }
        let right = queue.iter().rev().find(|(number, _)| window(*number).ended <= time);
        prop_assert_eq!(reader.at_or_before(time, &mut row), right.is_some());
        if let Some((number, _)) = right {
            prop_assert_eq!((row.number, row.window), (*number, window(*number)));
        }
        let mut column = Vec::new();
        reader.column(1, 0, time, |window, value| column.push((window, value)));
        let right: Vec<_> = queue
            .iter()
            .filter(|(number, _)| window(*number).ended <= time)
            .map(|(number, pair)| (window(*number), pair[1]))
            .collect();
        prop_assert_eq!(column, right);
        // The cursor gave each row once and in order, or counted it.
        let given = followed.len() as u64;
        prop_assert!(followed.windows(2).all(|two| two[0].0 < two[1].0));
        prop_assert!(followed.iter().all(|(number, pair)| values[usize::try_from(*number).unwrap()] == *pair));
        if let Some((last, _)) = followed.last() {
            prop_assert_eq!(given + lost, last + 1);
        }
    }
}

/// A checksum that no mixture of two rows has.
fn sealed(number: u64, columns: usize) -> Vec<u64> {
    let mut values: Vec<_> = (1..columns as u64)
        .map(|i| {
            number
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left((i % 63) as u32)
                ^ i
        })
        .collect();
    values.push(
        values
            .iter()
            .fold(number, |sum, value| sum.rotate_left(7).wrapping_add(*value)),
    );
    values
}

#[test]
fn eight_readers_never_see_a_torn_row_of_a_writer_at_full_speed() {
    const COLUMNS: usize = 48;
    const ROWS: u64 = 200_000;
    let (mut writer, reader) = channel(COLUMNS, 16);
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let reader = reader.clone();
            thread::spawn(move || {
                let mut row = reader.row();
                let mut cursor = Cursor::new(reader);
                let mut whole = 0u64;
                loop {
                    let closed = cursor.reader().is_closed();
                    match cursor.next(&mut row) {
                        Next::Row => {
                            assert_eq!(
                                *row.values,
                                sealed(row.number, COLUMNS)[..],
                                "row {} is torn",
                                row.number
                            );
                            assert_eq!(row.window, window(row.number));
                            whole += 1;
                        }
                        Next::Lost(_) => {}
                        Next::None if closed => return whole,
                        Next::None => thread::yield_now(),
                    }
                }
            })
        })
        .collect();
    for number in 0..ROWS {
        writer.push(window(number), &sealed(number, COLUMNS));
    }
    drop(writer);
    for reader in readers {
        assert!(reader.join().expect("no reader saw a torn row") > 0);
    }
}
