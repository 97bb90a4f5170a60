#![allow(clippy::disallowed_methods)] // tests

use super::*;
use crate::netns::{self, ip, port};
use std::collections::VecDeque;
use std::fs;

/// Answers one after the other, and the last for ever.
struct Script(VecDeque<Result<Facts, Why>>);

impl Ask for Script {
    fn facts(&mut self) -> Result<Facts, Why> {
        if self.0.len() > 1 {
            self.0.pop_front().unwrap()
        } else {
            self.0[0].clone()
        }
    }
}

fn facts(told: &[(Fact, u64)]) -> Facts {
    let mut facts = Facts::default();
    for (fact, value) in told {
        facts.set(*fact, Some(*value));
    }
    facts
}

fn names(schema: &Schema) -> Vec<&str> {
    schema.columns.iter().map(|column| &*column.name).collect()
}

#[test]
fn what_a_driver_tells_later_makes_a_new_schema_and_what_it_stops_telling_is_absent() {
    let down = facts(&[(Fact::Speed, ABSENT)]);
    let up = facts(&[(Fact::Speed, 100_000), (Fact::Lanes, 4)]);
    let broken = Why::new("EIO", "firmware");
    let script = Script([Ok(down), Ok(down), Ok(up), Ok(up), Ok(down), Err(broken.clone())].into());
    let mut source = Settings::open(Box::new(script), &netns::any_port("rail0"))
        .unwrap()
        .unwrap();
    let mut row = [7; 2];
    assert_eq!(names(source.schema()), ["speed"]);
    assert_eq!((source.read(&mut row[..1]), row[0]), (Read::Row, ABSENT));
    assert_eq!(source.read(&mut row[..1]), Read::SchemaChanged);
    assert_eq!(names(source.schema()), ["speed", "lanes"]);
    assert_eq!((source.read(&mut row), row), (Read::Row, [100_000, 4]));
    assert_eq!((source.read(&mut row), row), (Read::Row, [ABSENT, ABSENT]));
    assert_eq!(source.read(&mut row), Read::Missing(broken));
}

#[test]
fn a_veth_tells_its_speed_and_nothing_of_pause_or_fec() {
    netns::within(|| {
        ip("link add a0 type veth peer name a1");
        let ctx = netns::context("/sys".as_ref(), true);
        let Opened::Active(mut source) = open(&ctx, &port("a0")) else {
            panic!()
        };
        assert_eq!(names(source.schema()), ["speed"]);
        let mut row = [0];
        assert_eq!((source.read(&mut row), row), (Read::Row, [10_000]));
        ip("link set a0 name b0");
        assert_eq!(
            (source.read(&mut row), row),
            (Read::Row, [10_000]),
            "asked by index"
        );
        ip("link del b0");
        assert!(matches!(source.read(&mut row), Read::Missing(why) if why.reason == "ENODEV"));
    });
}

#[test]
fn a_copy_of_a_tree_tells_the_speed_by_file() {
    let tree = tempfile::tempdir().unwrap();
    let file = tree.path().join("class/net/rail0/speed");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let ctx = netns::context(tree.path(), false);
    assert!(
        matches!(open(&ctx, &netns::any_port("rail0")), Opened::NotApplicable(why) if why.reason == "ENOENT")
    );
    fs::write(&file, "400000\n").unwrap();
    let Opened::Active(mut source) = open(&ctx, &netns::any_port("rail0")) else {
        panic!()
    };
    assert_eq!(names(source.schema()), ["speed"]);
    let mut row = [0];
    assert_eq!((source.read(&mut row), row), (Read::Row, [400_000]));
    for unknown in ["-1", "0", "4294967295"] {
        fs::write(&file, unknown).unwrap();
        assert_eq!((source.read(&mut row), row), (Read::Row, [ABSENT]), "{unknown}");
    }
}
