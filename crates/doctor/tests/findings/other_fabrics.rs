//! Fabrics that are healthy and otherwise than most: with their policy, and without.

use crate::node::{Node, healthy, ids};
use doctor::{Congestion, Policy};

fn lossy() -> Node {
    let mut node = healthy();
    for port in &mut node.facts.ports {
        port.dcb.as_mut().unwrap().pfc = Some(0);
        port.setup.peer_pfc = Some(0);
    }
    node
}

#[test]
fn a_lossy_fabric_is_in_order_if_it_is_meant() {
    let mut node = lossy();
    assert!(ids(&node).contains(&"pfc_off"));
    node.policy.congestion = Congestion::Lossy;
    assert_eq!(ids(&node), Vec::<&str>::new());
}

#[test]
fn pfc_in_a_lossy_fabric_is_not_planned() {
    let mut node = healthy();
    node.policy.congestion = Congestion::Lossy;
    assert!(ids(&node).contains(&"pfc_too_many"));
}

#[test]
fn two_lossless_priorities_are_in_order_if_they_are_meant() {
    let mut node = healthy();
    for port in &mut node.facts.ports {
        let dcb = port.dcb.as_mut().unwrap();
        dcb.pfc = Some(0b1_1000);
        (dcb.class_of[4], dcb.share_of[4]) = (Some(4), Some(25));
        port.setup.peer_pfc = Some(0b1_1000);
        port.setup.buffers.as_mut().unwrap().of_priority[4] = 1;
    }
    assert_eq!(ids(&node), ["pfc_too_many"]);
    node.policy.lossless = Some(0b1_1000);
    assert_eq!(ids(&node), Vec::<&str>::new());
}

#[test]
fn without_ecn_nobody_need_answer_marks() {
    let mut node = healthy();
    for port in &mut node.facts.ports {
        port.setup.ecn.notification_point = Some(0);
        port.setup.ecn.reaction_point = Some(0);
    }
    assert_eq!(ids(&node), ["ecn_np_off", "ecn_rp_off"]);
    node.policy.congestion = Congestion::PfcOnly;
    assert_eq!(ids(&node), Vec::<&str>::new());
}

#[test]
fn small_packets_may_be_meant() {
    let mut node = healthy();
    for port in &mut node.facts.ports {
        port.port.mtu = Some(1500);
    }
    node.policy = Policy {
        mtu: 1024,
        ..Policy::default()
    };
    assert_eq!(ids(&node), Vec::<&str>::new());
}
