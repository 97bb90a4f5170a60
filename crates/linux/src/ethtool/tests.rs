//! The source against a kernel of the test's own, and against the real one.
#![allow(clippy::disallowed_methods)] // tests

use super::*;
use crate::netns::{self, ip, port};
use model::DeviceId;
use std::collections::VecDeque;

/// What happens at one call of the fake kernel, beside or instead of its answer.
enum Then {
    /// The statistics become these.
    Set(Vec<(&'static str, u64)>),
    /// The same, and it is noticed by the next look.
    SetNoticed(Vec<(&'static str, u64)>),
    /// The call fails.
    Fail(Errno),
}

/// The calls that something can happen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Ifindex,
    Count,
    Names,
    Values,
}

/// A kernel since January 2026, or an older one that writes its own number whatever was asked for.
#[derive(Default)]
struct Fake {
    stats: Vec<(&'static str, u64)>,
    script: VecDeque<(Call, Then)>,
    notices: VecDeque<Notice>,
    old: bool,
    renamed: bool,
    looks_at_names: usize,
    names: Vec<u8>,
    values: Vec<u64>,
}

impl Fake {
    fn new(stats: &[(&'static str, u64)]) -> Self {
        Self {
            stats: stats.to_vec(),
            ..Self::default()
        }
    }

    /// Plays what is next in the script, if it is for this call.
    fn play(&mut self, call: Call) -> Result<(), Errno> {
        if self.script.front().is_none_or(|(at, _)| *at != call) {
            return Ok(());
        }
        match self.script.pop_front().unwrap().1 {
            Then::Set(stats) => self.stats = stats,
            Then::SetNoticed(stats) => {
                self.stats = stats;
                self.notices.push_back(Notice::Disturbed);
            }
            Then::Fail(errno) => return Err(errno),
        }
        Ok(())
    }

    fn answered(&self, asked: usize) -> usize {
        if self.old || asked == self.stats.len() {
            self.stats.len()
        } else {
            0
        }
    }
}

impl Nic for Fake {
    fn ifindex(&mut self) -> Result<u32, Errno> {
        self.play(Call::Ifindex)?;
        Ok(if self.renamed { 8 } else { 7 })
    }

    fn count(&mut self) -> Result<usize, Errno> {
        self.play(Call::Count)?;
        Ok(self.stats.len())
    }

    fn names(&mut self, count: usize) -> Result<&[u8], Errno> {
        self.looks_at_names += 1;
        self.play(Call::Names)?;
        let named = self.stats[..self.answered(count)].iter();
        self.names = named.flat_map(|(name, _)| padded(name)).collect();
        Ok(&self.names)
    }

    fn values(&mut self, count: usize) -> Result<&[u64], Errno> {
        self.play(Call::Values)?;
        self.values = self.stats[..self.answered(count)]
            .iter()
            .map(|(_, value)| *value)
            .collect();
        Ok(&self.values)
    }

    fn notice(&mut self) -> Notice {
        self.notices.pop_front().unwrap_or(Notice::Same)
    }
}

fn padded(name: &str) -> [u8; ioctl::NAME] {
    let mut bytes = [0; ioctl::NAME];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

fn about(columns: Columns) -> About {
    About {
        port: PortId {
            device: DeviceId::pci("0000:1a:00.0"),
            number: 1,
        },
        driver: "mlx5_core".into(),
        netdev: "rail0".into(),
        ifindex: 7,
        columns,
        names_age: NAMES_AGE,
    }
}

fn open(fake: Fake) -> Statistics<Fake> {
    Statistics::open(fake, about(Columns::All))
        .map_err(|why| why.to_string())
        .unwrap()
}

fn columns<N>(source: &Statistics<N>) -> Vec<&str> {
    source
        .known
        .schema
        .columns
        .iter()
        .map(|column| &*column.name)
        .collect()
}

/// Reads once; the row's cells beside their names.
fn row<N: Nic>(source: &mut Statistics<N>) -> Result<Vec<(String, u64)>, Read> {
    let mut row = vec![u64::MAX; source.known.schema.columns.len()];
    match source.read(&mut row) {
        Read::Row => Ok(columns(source).into_iter().map(str::to_owned).zip(row).collect()),
        other => Err(other),
    }
}

fn owned(cells: &[(&str, u64)]) -> Vec<(String, u64)> {
    cells
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

const PRIO3: [(&str, u64); 2] = [("rx_prio3_pause", 33), ("rx_prio3_pause_duration", 3)];
const PRIO4: [(&str, u64); 2] = [("rx_prio4_pause", 44), ("rx_prio4_pause_duration", 4)];
const GROWN: [(&str, u64); 3] = [
    ("rx_prio3_pause", 33),
    ("ch0_events", 9),
    ("rx_prio3_pause_duration", 3),
];

#[test]
fn names_are_read_once_and_values_each_time() {
    let mut source = open(Fake::new(&PRIO3));
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
    source.nic.stats[0].1 = 34;
    assert_eq!(row(&mut source).unwrap()[0].1, 34);
    assert_eq!(source.nic.looks_at_names, 1);
}

#[test]
fn raw_names_are_kept_and_the_first_of_two_counts() {
    let stats = [
        ("     err", 1),
        ("Tx Queue#: 0", 2),
        ("     err", 3),
        ("", 4),
        ("a name that fills all of its 32b", 5),
    ];
    let mut source = open(Fake::new(&stats));
    let right = [
        ("     err", 1),
        ("Tx Queue#: 0", 2),
        ("a name that fills all of its 32b", 5),
    ];
    assert_eq!(row(&mut source), Ok(owned(&right)));
}

#[test]
fn by_default_only_what_the_catalogue_knows_has_a_column() {
    let mut source = Statistics::open(Fake::new(&GROWN), about(Columns::Known))
        .ok()
        .unwrap();
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
    let unknown = Statistics::open(Fake::new(&[("ch0_events", 1)]), about(Columns::Known))
        .err()
        .unwrap();
    assert_eq!(unknown.reason, UNKNOWN);
}

#[test]
fn an_interface_without_statistics_is_told_from_one_that_fails() {
    assert_eq!(
        Statistics::open(Fake::default(), about(Columns::All))
            .err()
            .unwrap()
            .reason,
        NONE
    );
    for (call, errno) in [
        (Call::Count, Errno::NODEV),
        (Call::Names, Errno::IO),
        (Call::Ifindex, Errno::NODEV),
    ] {
        let mut fake = Fake::new(&PRIO3);
        fake.script.push_back((call, Then::Fail(errno)));
        let why = Statistics::open(fake, about(Columns::All)).err().unwrap();
        assert_eq!(why.reason, why_from_errno(errno, "").reason, "{call:?}");
    }
}

#[test]
fn names_that_come_back_after_a_failed_look_do_not_take_the_values_of_others() {
    let mut source = open(Fake::new(&PRIO3));
    source.nic.script.extend([
        (Call::Values, Then::SetNoticed(PRIO4.to_vec())),
        (Call::Count, Then::Fail(Errno::IO)),
        // The schema is still that of priority 3 when its names come back.
        (Call::Names, Then::SetNoticed(PRIO3.to_vec())),
    ]);
    assert!(matches!(row(&mut source), Err(Read::Missing(why)) if why.reason == "EIO"));
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
    assert!(source.nic.script.is_empty());
}

#[test]
fn a_set_that_grows_between_count_and_names_is_asked_for_again() {
    for old in [false, true] {
        let mut fake = Fake {
            old,
            ..Fake::new(&PRIO3)
        };
        fake.script.push_back((Call::Names, Then::Set(GROWN.to_vec())));
        assert_eq!(columns(&open(fake)).len(), 3, "old kernel: {old}");
    }
}

#[test]
fn a_set_that_grows_or_shrinks_gives_no_row_but_a_new_schema() {
    for old in [false, true] {
        for (before, after) in [(&PRIO3[..], &GROWN[..]), (&GROWN[..], &PRIO3[..])] {
            let mut source = open(Fake {
                old,
                ..Fake::new(before)
            });
            let schema = source.schema().clone();
            source
                .nic
                .script
                .push_back((Call::Values, Then::Set(after.to_vec())));
            assert_eq!(row(&mut source), Err(Read::SchemaChanged));
            assert!(!Arc::ptr_eq(&schema, source.schema()), "a schema never changes");
            assert_eq!(row(&mut source), Ok(owned(after)));
        }
    }
}

#[test]
fn a_copy_that_ran_into_the_end_of_the_buffer_is_a_changed_set() {
    let mut source = open(Fake::new(&PRIO3));
    source
        .nic
        .script
        .push_back((Call::Values, Then::Fail(Errno::FAULT)));
    assert_eq!(row(&mut source), Err(Read::SchemaChanged));
}

#[test]
fn pfc_that_moves_to_another_priority_never_gives_a_wrong_row() {
    // Seen by the read itself.
    let mut source = open(Fake::new(&PRIO3));
    source
        .nic
        .script
        .push_back((Call::Values, Then::SetNoticed(PRIO4.to_vec())));
    assert_eq!(row(&mut source), Err(Read::SchemaChanged));
    assert_eq!(row(&mut source), Ok(owned(&PRIO4)));
    // There and back during one read: the names are the same again, the row is not ours.
    let mut source = open(Fake::new(&PRIO3));
    source
        .nic
        .script
        .push_back((Call::Values, Then::SetNoticed(PRIO4.to_vec())));
    source
        .nic
        .script
        .push_back((Call::Names, Then::Set(PRIO3.to_vec())));
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
    // While the schema is learned.
    let mut fake = Fake::new(&PRIO3);
    fake.notices.push_back(Notice::Same);
    let mut source = open(fake);
    source.nic.stats = PRIO4.to_vec();
    source.nic.notices.push_back(Notice::Disturbed);
    assert_eq!(row(&mut source), Err(Read::SchemaChanged));
}

#[test]
fn settings_that_never_rest_give_no_row() {
    let mut source = open(Fake::new(&PRIO3));
    source.nic.notices.extend([Notice::Disturbed; ATTEMPTS]);
    let Err(Read::Missing(why)) = row(&mut source) else {
        panic!()
    };
    assert_eq!(why.reason, "unsteady");
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
}

#[test]
fn while_firmware_owns_dcb_names_are_compared_after_every_read() {
    let mut source = open(Fake::new(&PRIO3));
    source.nic.notices.extend([Notice::Unknown; 3]);
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
    assert_eq!(source.nic.looks_at_names, 3);
    source
        .nic
        .script
        .push_back((Call::Values, Then::Set(PRIO4.to_vec())));
    assert_eq!(row(&mut source), Err(Read::SchemaChanged));
    assert!(source.trusted, "firmware was expected to");
}

#[test]
fn names_that_change_without_notice_are_found_by_time_and_cost_the_trust() {
    let about = About {
        names_age: Duration::ZERO,
        ..about(Columns::All)
    };
    let mut source = Statistics::open(Fake::new(&PRIO3), about).ok().unwrap();
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
    source.nic.stats = PRIO4.to_vec();
    assert_eq!(row(&mut source), Err(Read::SchemaChanged));
    assert!(!source.trusted);
    // Not by time any more, but at once.
    source.about.names_age = NAMES_AGE;
    assert_eq!(row(&mut source), Ok(owned(&PRIO4)));
    source.nic.stats = PRIO3.to_vec();
    assert_eq!(row(&mut source), Err(Read::SchemaChanged));
}

#[test]
fn an_error_at_any_step_is_a_missing_row_and_the_next_read_finds_out() {
    // The values, and the index behind them.
    for call in [Call::Values, Call::Ifindex] {
        let mut source = open(Fake::new(&PRIO3));
        source.nic.script.push_back((call, Then::Fail(Errno::IO)));
        assert!(
            matches!(row(&mut source), Err(Read::Missing(why)) if why.reason == "EIO"),
            "{call:?}"
        );
        assert_eq!(row(&mut source), Ok(owned(&PRIO3)));
    }
    // The names that a notice made doubtful: nothing else will remind of the change.
    let mut source = open(Fake::new(&PRIO3));
    source
        .nic
        .script
        .push_back((Call::Values, Then::SetNoticed(PRIO4.to_vec())));
    source.nic.script.push_back((Call::Names, Then::Fail(Errno::IO)));
    assert!(matches!(row(&mut source), Err(Read::Missing(_))));
    assert_eq!(row(&mut source), Err(Read::SchemaChanged));
    // The names of the new schema.
    let mut source = open(Fake::new(&PRIO3));
    source
        .nic
        .script
        .push_back((Call::Values, Then::SetNoticed(PRIO4.to_vec())));
    source.nic.script.push_back((Call::Count, Then::Fail(Errno::IO)));
    assert!(matches!(row(&mut source), Err(Read::Missing(_))));
    assert_eq!(row(&mut source), Err(Read::SchemaChanged));
    // All statistics gone for a while, as on a bnxt after a failed firmware command.
    let mut source = open(Fake::new(&PRIO3));
    source.nic.stats.clear();
    assert!(matches!(row(&mut source), Err(Read::Missing(why)) if why.reason == NONE));
    source.nic.stats = PRIO3.to_vec();
    assert_eq!(row(&mut source), Ok(owned(&PRIO3)), "the same again, compared");
    assert_eq!(source.nic.looks_at_names, 2);
}

#[test]
fn a_name_that_moved_to_another_interface_gives_no_numbers() {
    let mut source = open(Fake::new(&PRIO3));
    source.nic.renamed = true;
    assert!(matches!(row(&mut source), Err(Read::Missing(why)) if why.reason == "ENODEV"));
}

#[test]
fn a_veth_counts_what_it_carries() {
    netns::within(|| {
        ip("link add a0 type veth peer name a1");
        ip("link set a0 up");
        ip("link set a1 up");
        let ctx = netns::context("/sys".as_ref(), true);
        let Opened::Active(mut source) = super::open(&ctx, &port("a0")) else {
            panic!("veth has statistics")
        };
        let schema = source.schema().clone();
        let index = |name: &str| schema.columns.iter().position(|column| &*column.name == name);
        let peer = index("peer_ifindex").expect("every veth has it");
        let mut cells = vec![0; schema.columns.len()];
        assert_eq!(source.read(&mut cells), Read::Row);
        assert_eq!(cells[peer], u64::from(port("a1").ifindex.unwrap()));

        ip("link set a0 name b0");
        let gone = |read: Read| matches!(read, Read::Missing(why) if why.reason == "ENODEV");
        assert!(gone(source.read(&mut cells)));
        ip("link set a1 name a0");
        assert!(gone(source.read(&mut cells)), "the peer has the name now");
        ip("link set a0 name c0");
        ip("link set b0 name a0");
        assert_eq!(source.read(&mut cells), Read::Row);
    });
}

#[test]
fn a_loopback_has_no_statistics() {
    let ctx = netns::context("/sys".as_ref(), true);
    let Opened::NotApplicable(why) = super::open(&ctx, &port("lo")) else {
        panic!()
    };
    assert_eq!(why.reason, NONE);
}

#[test]
fn whatever_the_driver_answers_is_named_and_forgotten_once_it_is_over() {
    for (errno, word) in crate::faults::ERRNOS {
        for call in [Call::Count, Call::Names] {
            let mut nic = Fake::new(&[("rx_prio3_pause", 1)]);
            nic.script.push_back((call, Then::Fail(errno)));
            let failed = Statistics::open(nic, about(Columns::All))
                .err()
                .expect("it fails");
            assert_eq!(failed.reason, word, "{call:?}");
        }
        for call in [Call::Values, Call::Ifindex] {
            let mut source =
                Statistics::open(Fake::new(&[("rx_prio3_pause", 1)]), about(Columns::All)).unwrap();
            source.nic.script.push_back((call, Then::Fail(errno)));
            let mut row = [0];
            match source.read(&mut row) {
                Read::Missing(why) => assert_eq!(why.reason, word, "{call:?}"),
                other => panic!("{call:?} {word}: {other:?}"),
            }
            assert_eq!((source.read(&mut row), row), (Read::Row, [1]), "{call:?} {word}");
        }
    }
}
