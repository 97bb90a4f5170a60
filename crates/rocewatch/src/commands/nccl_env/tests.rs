//! Advice and checks on a node made up for it: rails that are set up as the guides say, and what deviates.

use super::advice::advise;
use super::check::{Checked, State, check};
use super::environment::Environment;
use super::node::Node;
use super::{for_shells, quoted};
use doctor::{Dcb, LinkFacts, PortFacts};
use model::{DeviceId, Gid, GidType, Gpu, LinkLayer, Port, PortId, PortSetup, PortState, Trust};
use proptest::prelude::*;

const NETDEVS: [&str; 4] = ["lo", "eno1", "rail0", "rail1"];

/// A rail: DSCP 26 is priority 3, which alone has PFC; GID 3 is RoCE v2 over IPv4.
fn rail(number: u32) -> PortFacts {
    let netdev = format!("rail{number}");
    let ipv4 = format!("0000:0000:0000:0000:0000:ffff:0a00:{number:04x}");
    let link_local = "fe80:0000:0000:0000:ba3f:d2ff:fe00:1c00".to_owned();
    let gids = [
        (&link_local, GidType::V1),
        (&link_local, GidType::V2),
        (&ipv4, GidType::V1),
        (&ipv4, GidType::V2),
    ];
    let mut dcb = Dcb {
        pfc: Some(1 << 3),
        dscp: [Some(0); 64],
        ..Dcb::default()
    };
    dcb.dscp[26] = Some(3);
    dcb.dscp[48] = Some(6);
    let id = PortId {
        device: DeviceId::pci(&format!("0000:{number:02x}:00.0")),
        number: 1,
    };
    PortFacts {
        port: Port {
            netdev: Some(netdev.clone()),
            ifindex: Some(number + 2),
            rdma_index: Some(number),
            gpu: Some(Gpu {
                address: "0000:1b:00.0".into(),
                bridges: Some(3),
            }),
            state: Some(PortState::Active),
            mtu: Some(9000),
            gids: gids
                .into_iter()
                .zip(0..)
                .map(|((gid, kind), index)| Gid {
                    index,
                    gid: gid.clone(),
                    kind,
                    netdev: Some(netdev.clone()),
                })
                .collect(),
            ..Port::bare(id, &format!("mlx5_{number}"), "mlx5_core")
        },
        setup: PortSetup {
            trust: Some(Trust::Dscp),
            ..PortSetup::default()
        },
        dcb: Some(dcb),
        link: LinkFacts {
            up: Some(true),
            ..LinkFacts::default()
        },
        window: None,
    }
}

fn node(ports: Vec<PortFacts>) -> Node {
    Node::new(ports, Some("eno1".into()))
}

fn two_rails() -> Node {
    node(vec![rail(0), rail(1)])
}

fn value(node: &Node, name: &str) -> Option<String> {
    let advice = advise(node).into_iter().find(|advice| advice.name == name);
    advice.expect("every variable is told of").value
}

fn checked(node: &Node, set: &[(&str, &str)]) -> Vec<Checked> {
    let mut environment = Environment::default();
    let set = set
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    environment.add("the environment", set);
    check(node, &environment, Some(&NETDEVS.map(str::to_owned)))
}

/// State and words for one variable.
#[track_caller]
fn of(node: &Node, name: &str, set: Option<&str>) -> (State, String) {
    let set = set.map(|value| (name, value));
    let checked = checked(node, set.as_slice());
    let found = checked.into_iter().find(|checked| checked.name == name);
    let found = found.unwrap_or_else(|| panic!("{name} was not checked"));
    (found.state, found.says)
}

#[test]
fn rails_that_are_set_up_by_the_guides_get_the_customary_settings() {
    let node = two_rails();
    for (name, right) in [
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
        ("NCCL_IB_GID_INDEX", "3"),
        ("NCCL_IB_TC", "106"),
        ("NCCL_SOCKET_IFNAME", "=eno1"),
        ("UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1"),
        ("GLOO_SOCKET_IFNAME", "eno1"),
    ] {
        assert_eq!(value(&node, name).as_deref(), Some(right), "{name}");
    }
}

#[test]
fn what_is_advised_is_found_right() {
    let node = two_rails();
    let advice = advise(&node);
    let set: Vec<_> = advice
        .iter()
        .filter_map(|advice| Some((advice.name, advice.value.as_deref()?)))
        .collect();
    let checked = checked(&node, &set);
    assert_eq!(checked.len(), 4, "{checked:#?}");
    assert!(
        checked.iter().all(|checked| checked.state == State::Right),
        "{checked:#?}"
    );
}

#[test]
fn ports_that_are_not_for_the_job_are_left_out_with_the_reason() {
    let mut down = rail(2);
    down.link.up = Some(false);
    let mut infiniband = rail(3);
    infiniband.port.link_layer = LinkLayer::InfiniBand;
    let mut storage = rail(4);
    storage.port.gpu = Some(Gpu {
        address: "0000:1b:00.0".into(),
        bridges: None,
    });
    let mut front = rail(5);
    front.port.netdev = Some("eno1".into());
    let mut soft = rail(6);
    soft.port.driver = "rxe".into();
    let mut ethernet = rail(7);
    (ethernet.port.rdma_index, ethernet.port.guid) = (None, None);
    let node = node(vec![
        rail(0),
        down,
        infiniband,
        storage,
        front,
        soft,
        ethernet,
        rail(1),
    ]);
    assert_eq!(value(&node, "NCCL_IB_HCA").as_deref(), Some("=mlx5_0:1,mlx5_1:1"));
    let mut left_out: Vec<_> = node
        .left_out
        .iter()
        .map(|(facts, why)| (facts.port.id.device.as_str(), why.as_str()))
        .collect();
    left_out.sort_unstable();
    let words = [
        "its link is down",
        "InfiniBand",
        "no GPU is on its PCI switch",
        "default route",
        "software",
    ];
    assert_eq!(left_out.len(), words.len());
    for ((device, why), words) in left_out.iter().zip(words) {
        assert!(why.contains(words), "{device}: {why}");
    }
    // A node of soft-RoCE alone has nothing else to use.
    let mut soft = rail(0);
    soft.port.driver = "rxe".into();
    let only = Node::new(vec![soft], None);
    assert_eq!(value(&only, "NCCL_IB_HCA").as_deref(), Some("=mlx5_0:1"));
}

#[test]
fn what_nobody_can_tell_is_left_alone() {
    let nothing = Node::new(Vec::new(), None);
    assert!(advise(&nothing).iter().all(|advice| advice.value.is_none()));
    let mut silent = rail(1);
    silent.dcb = None;
    assert_eq!(value(&node(vec![silent.clone()]), "NCCL_IB_TC"), None);
    assert_eq!(
        of(&node(vec![silent]), "NCCL_IB_TC", Some("106")).0,
        State::Unknown
    );
    // Rails that differ get no common setting.
    let mut other = rail(1);
    let dcb = other.dcb.as_mut().expect("a rail has it");
    (dcb.dscp[26], dcb.dscp[40]) = (Some(0), Some(3));
    other.port.gids.truncate(2);
    let uneven = node(vec![rail(0), other]);
    assert_eq!(value(&uneven, "NCCL_IB_TC"), None);
    assert_eq!(value(&uneven, "NCCL_IB_GID_INDEX"), None);
    let (state, says) = of(&uneven, "NCCL_IB_TC", Some("106"));
    assert_eq!(state, State::Wrong);
    assert!(says.ends_with("it is not lossless on mlx5_1"), "{says}");
}

#[test]
fn a_traffic_class_is_followed_to_the_priority() {
    let node = two_rails();
    for (set, state, words) in [
        (
            Some("106"),
            State::Right,
            "DSCP 26 -> priority 3, which has PFC: it is lossless",
        ),
        (Some("104"), State::Right, "DSCP 26 -> priority 3"),
        (Some("107"), State::Wrong, "CE-marked"),
        (
            Some("192"),
            State::Wrong,
            "DSCP 48 -> priority 6, which has no PFC",
        ),
        (Some("0"), State::Wrong, "DSCP 0 -> priority 0, which has no PFC"),
        (None, State::Wrong, "not set, which is 0: DSCP 0"),
        (Some("256"), State::Wrong, "no traffic class"),
        (Some("high"), State::Wrong, "no traffic class"),
    ] {
        let (found, says) = of(&node, "NCCL_IB_TC", set);
        assert_eq!(found, state, "{set:?}: {says}");
        assert!(says.contains(words), "{set:?}: {says}");
    }
    // Control messages may go elsewhere.
    assert_eq!(of(&node, "NCCL_IB_FIFO_TC", Some("192")).0, State::Doubtful);
    // A port that trusts the VLAN tag has priority 0 for packets without one.
    let mut by_tag = rail(0);
    by_tag.setup.trust = Some(Trust::Pcp);
    let (state, says) = of(
        &super::node::Node::new(vec![by_tag], None),
        "NCCL_IB_TC",
        Some("106"),
    );
    assert_eq!(state, State::Wrong);
    assert!(says.contains("DSCP 26 -> priority 0"), "{says}");
    let mut lossy = rail(0);
    lossy.dcb.as_mut().expect("a rail has it").pfc = Some(0);
    assert_eq!(
        of(
            &super::node::Node::new(vec![lossy], None),
            "NCCL_IB_TC",
            Some("106")
        )
        .0,
        State::Doubtful
    );
}

#[test]
fn gids_and_devices_are_looked_up() {
    let node = two_rails();
    for (set, state, words) in [
        (Some("3"), State::Right, "GID 3 is RoCE v2"),
        (Some("2"), State::Wrong, "RoCE v1"),
        (Some("1"), State::Doubtful, "link-local"),
        (Some("9"), State::Wrong, "GID 9 is empty"),
        (Some("-1"), State::Right, "NCCL finds 3 by itself"),
        (None, State::Right, "NCCL finds 3 by itself"),
        (Some("three"), State::Wrong, "no number"),
    ] {
        let (found, says) = of(&node, "NCCL_IB_GID_INDEX", set);
        assert_eq!(found, state, "{set:?}: {says}");
        assert!(says.contains(words), "{set:?}: {says}");
    }
    for (set, state, words) in [
        (Some("=mlx5_0,mlx5_1"), State::Right, "the 2 rails"),
        (Some("mlx5"), State::Right, "the 2 rails"),
        (None, State::Right, "all there is"),
        (
            Some("=mlx5_0"),
            State::Doubtful,
            "1 of 2 rails are left out: mlx5_1",
        ),
        (
            Some("=mlx5_0,mlx5_1,mlx5_9"),
            State::Doubtful,
            "this node has no mlx5_9",
        ),
        (Some("bnxt"), State::Wrong, "falls back to TCP"),
    ] {
        let (found, says) = of(&node, "NCCL_IB_HCA", set);
        assert_eq!(found, state, "{set:?}: {says}");
        assert!(says.contains(words), "{set:?}: {says}");
    }
    for (set, state) in [
        ("eno", State::Right),
        ("=rail0", State::Doubtful),
        ("^eno1", State::Doubtful),
        ("^docker,lo", State::Right),
        ("=eth0", State::Wrong),
    ] {
        assert_eq!(of(&node, "NCCL_SOCKET_IFNAME", Some(set)).0, state, "{set}");
    }
    assert_eq!(of(&node, "NCCL_IB_DISABLE", Some("1")).0, State::Wrong);
    assert_eq!(of(&node, "NCCL_NET", Some("Socket")).0, State::Wrong);
}

#[test]
fn reasons_are_comments_and_only_settings_are_commands() {
    let mut odd = rail(0);
    odd.port.netdev = Some("x\nreboot".into());
    odd.link.up = Some(false);
    odd.port.device = "bad\nreboot".into();
    let text = for_shells(&node(vec![odd, rail(1)]), &advise(&two_rails()));
    for line in text.lines().filter(|line| !line.is_empty()) {
        assert!(line.starts_with("# ") || line.starts_with("export "), "{line:?}");
    }
}

proptest! {
    #[test]
    fn a_quoted_value_has_nothing_that_a_shell_would_act_on(value in "[^\0]{0,30}") {
        let quoted = quoted(&value);
        let inside = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        if let Some(inside) = inside {
            prop_assert_eq!(inside.replace(r"'\''", "'"), value);
        } else {
            let harmless = value.chars().all(|c| c.is_ascii_alphanumeric() || "=:,._-^/".contains(c));
            prop_assert!(!value.is_empty() && harmless);
            prop_assert_eq!(quoted, value);
        }
    }
}
