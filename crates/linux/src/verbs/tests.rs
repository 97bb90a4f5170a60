//! What the counting does, and what a machine without RDMA answers.

use super::*;
use crate::netns;

#[test]
fn every_event_that_is_counted_is_known_to_the_catalogue() {
    for (_, name) in EVENTS {
        assert!(
            catalog::meaning("any", SourceKind::Verbs, name).is_some(),
            "{name}"
        );
    }
    let of_a_port: Vec<_> = EVENTS
        .iter()
        .map(|(kind, _)| *kind)
        .filter(|kind| *kind != library::DEVICE_FATAL)
        .collect();
    assert_eq!(of_a_port, library::OF_A_PORT);
}

#[test]
fn events_of_this_port_and_of_the_device_are_counted() {
    let mut counts = [0; EVENTS.len()];
    let mut happen = |kind, port| count(Event { kind, port }, 1, &mut counts);
    assert!(happen(10, Some(1)));
    assert!(happen(10, Some(1)));
    assert!(!happen(10, Some(2)), "another port's");
    assert!(happen(8, None));
    assert!(!happen(4000, None), "of a kind that nobody knows yet");
    assert_eq!(counts, [1, 0, 2, 0, 0, 0, 0, 0]);
}

#[test]
fn what_has_no_events_says_why() {
    let tree = tempfile::tempdir().unwrap();
    let ctx = netns::context(tree.path(), false);
    let mut port = netns::any_port("rail0");
    let reason = |opened| match opened {
        Opened::NotApplicable(why) => ("never", why.reason),
        Opened::Failed(why) => ("later", why.reason),
        Opened::Active(_) => ("now", ""),
    };
    assert_eq!(reason(open(&ctx, &port)), ("never", "no_rdma_device"));
    port.rdma_index = Some(0);
    assert_eq!(reason(open(&ctx, &port)), ("never", "not_on_this_tree"));
    let ctx = netns::context("/sys".as_ref(), true);
    port.device = "no_such_device".into();
    assert_eq!(reason(open(&ctx, &port)), ("later", "no_uverbs"));
}
