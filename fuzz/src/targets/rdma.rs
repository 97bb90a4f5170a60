//! Counters and devices as RDMA netlink tells of them.

use linux::fuzzing::rdma::{bound, counters, device, fill, place, queue_pairs, schema};

/// A row is filled exactly if the answer has the counters of the schema in their order, and then with their values.
///
/// The input is two answers behind the length of the first: the one that the schema is of, and a later one.
pub fn check(input: &[u8]) {
    let Some((length, answers)) = input.split_first_chunk::<2>() else {
        return;
    };
    let (first, later) = answers.split_at(usize::from(u16::from_le_bytes(*length)).min(answers.len()));
    for answer in [first, later] {
        assert!(device(answer).is_none_or(|(name, _)| name.len() < answer.len()));
        for number in queue_pairs(answer) {
            assert!(answer.windows(4).any(|four| four == number.to_ne_bytes()));
        }
        for (number, _) in bound(answer) {
            assert!(answer.windows(4).any(|four| four == number.to_ne_bytes()));
        }
        let place = place(&String::from_utf8_lossy(answer));
        assert!(place.container.is_none_or(|container| container.len() == 64));
        for (name, value) in counters(answer) {
            assert!(name.len() < answer.len() && !name.contains('\0'));
            assert!(answer.windows(8).any(|eight| eight == value.to_ne_bytes()));
        }
    }
    let Some(schema) = schema(first) else {
        assert_eq!(counters(first), []);
        return;
    };
    let of_schema: Vec<&str> = schema.columns.iter().map(|column| &*column.name).collect();
    for answer in [first, later] {
        let (names, values): (Vec<_>, Vec<_>) = counters(answer).into_iter().unzip();
        let mut row = vec![7; schema.columns.len()];
        assert_eq!(fill(answer, &schema, &mut row), names == of_schema);
        assert!(names != of_schema || row == values);
    }
}
