use super::*;
use crate::netns::{self, any_port};
use std::collections::VecDeque;

struct Script(VecDeque<Result<Dcb, Errno>>);

impl Ask for Script {
    fn dcb(&mut self) -> Result<Dcb, Errno> {
        self.0.pop_front().expect("asked too often")
    }
}

/// An answer that has the DCBX byte, and one APP entry if `dscp` is given.
fn dcb(dcbx: u8, dscp: Option<u8>) -> Dcb {
    let app = Request::new(0, &[]).with(1, &[5, 3, dscp.unwrap_or(255), 0]);
    let request = Request::new(RTM_GETDCB, &[0, IEEE_GET, 0, 0])
        .with(IFNAME, b"rail0\0")
        .with_nest(13, &[(3, app.payload())])
        .with(DCBX, &[dcbx]);
    Dcb::parse(request.payload())
}

#[test]
fn another_set_of_entries_is_another_schema() {
    let answers = [
        Ok(dcb(1, Some(26))),
        Ok(dcb(1, Some(26))),
        Ok(dcb(1, Some(27))),
        Ok(dcb(2, Some(27))),
        Err(Errno::IO),
    ];
    let mut source = DcbSource::open(Script(answers.into()), &any_port("rail0"))
        .unwrap()
        .unwrap();
    let names = |source: &DcbSource<Script>| -> Vec<String> {
        source
            .schema
            .columns
            .iter()
            .map(|column| column.name.to_string())
            .collect()
    };
    assert_eq!(names(&source), ["dcbx", "dscp26_prio"]);
    let mut row = [0; 2];
    assert_eq!((source.read(&mut row), row), (Read::Row, [1, 3]));
    assert_eq!(source.read(&mut row), Read::SchemaChanged);
    assert_eq!(names(&source), ["dcbx", "dscp27_prio"]);
    assert_eq!((source.read(&mut row), row), (Read::Row, [2, 3]));
    assert!(matches!(source.read(&mut row), Read::Missing(why) if why.reason == "EIO"));
}

#[test]
fn a_driver_without_dcb_is_not_applicable_and_a_copy_of_a_tree_neither() {
    let reason = |live, netdev| match open(&netns::context("/sys".as_ref(), live), &netns::port(netdev)) {
        Opened::NotApplicable(why) => why.reason,
        Opened::Active(_) => "active",
        Opened::Failed(why) => panic!("{why}"),
    };
    assert_eq!(reason(true, "lo"), "EOPNOTSUPP");
    assert_eq!(reason(false, "lo"), "not_on_this_tree");
    assert!(Owner::of("lo").unwrap().is_none());
    assert_eq!(Owner::of("no-such-if").err(), Some(Errno::NODEV));
}

#[test]
fn whatever_the_driver_answers_is_named_and_forgotten_once_it_is_over() {
    for (errno, word) in crate::faults::ERRNOS {
        let at_once = DcbSource::open(Script([Err(errno)].into()), &any_port("rail0"));
        assert_eq!(at_once.err(), Some(errno));
        let answers = [Ok(dcb(1, None)), Err(errno), Ok(dcb(1, None))];
        let mut source = DcbSource::open(Script(answers.into()), &any_port("rail0"))
            .unwrap()
            .unwrap();
        let mut row = [0; 1];
        assert!(matches!(source.read(&mut row), Read::Missing(why) if why.reason == word));
        assert_eq!((source.read(&mut row), row), (Read::Row, [1]), "{word}");
    }
}
