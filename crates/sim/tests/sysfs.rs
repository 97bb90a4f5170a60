//! The server's sysfs: a tree whose links lead somewhere, with the values that its sources read.

mod support;

use model::{Host, SourceKind};
use proptest::prelude::*;
use sim::{Nic, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use support::{Bench, setup};

/// A file, a link or an unreadable file.
#[derive(Debug, PartialEq)]
enum Node {
    File(String),
    Link(String),
    Unreadable(String),
}

/// The lines of a tree by path, each of which is there once.
fn parse(text: &str) -> BTreeMap<String, Node> {
    let mut tree = BTreeMap::new();
    for line in text.lines() {
        let (path, node) = if let Some((path, content)) = line.split_once(" = ") {
            (path, Node::File(content.to_owned()))
        } else if let Some((path, target)) = line.split_once(" -> ") {
            (path, Node::Link(target.to_owned()))
        } else if let Some((path, errno)) = line.split_once(" ! ") {
            (path, Node::Unreadable(errno.to_owned()))
        } else {
            panic!("no line of a tree: {line:?}")
        };
        assert!(
            tree.insert(path.to_owned(), node).is_none(),
            "{path} is there twice"
        );
    }
    tree
}

/// Where a link at `path` leads.
fn target(path: &str, link: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        if part == ".." {
            parts.pop().expect("inside the tree");
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Every directory that a file lies in.
fn directories(tree: &BTreeMap<String, Node>) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for path in tree.keys() {
        let mut rest = path.as_str();
        while let Some((parent, _)) = rest.rsplit_once('/') {
            found.insert(parent);
            rest = parent;
        }
    }
    found
}

fn file<'a>(tree: &'a BTreeMap<String, Node>, path: &str) -> &'a str {
    match tree.get(path) {
        Some(Node::File(content)) => content,
        other => panic!("{path} is {other:?}"),
    }
}

/// The directory of a class device.
fn device(tree: &BTreeMap<String, Node>, class: &str, name: &str) -> String {
    let path = format!("class/{class}/{name}");
    match &tree[&path] {
        Node::Link(link) => target(&path, link),
        other => panic!("{path} is {other:?}"),
    }
}

#[test]
fn the_tree_says_what_the_ports_say() {
    let bench = Bench::new(setup(Scenario::SpeedDowngrade, 3, Nic::Mlx5, 9));
    bench.pass(4.0);
    let tree = parse(&bench.host.sysfs());
    for (rail, port) in bench.host.ports().unwrap().iter().enumerate() {
        let rdma = device(&tree, "infiniband", &port.device);
        let net = device(&tree, "net", port.netdev.as_ref().unwrap());
        let pci = port.pci.as_ref().unwrap();
        assert!(rdma.contains(&format!("/{}/infiniband/", pci.address)), "{rdma}");
        assert!(net.contains(&format!("/{}/net/", pci.address)), "{net}");
        let (nic, _) = rdma.split_once("/infiniband/").unwrap();
        for (path, value) in [
            (format!("{rdma}/fw_ver"), port.firmware.clone().unwrap()),
            (format!("{rdma}/board_id"), port.board.clone().unwrap()),
            (format!("{rdma}/node_guid"), port.guid.clone().unwrap()),
            (format!("{rdma}/ports/1/state"), "4: ACTIVE".to_owned()),
            (format!("{rdma}/ports/1/link_layer"), "Ethernet".to_owned()),
            (format!("{rdma}/ports/1/gids/3"), port.gids[3].gid.clone()),
            (format!("{rdma}/ports/1/gid_attrs/types/3"), "RoCE v2".to_owned()),
            (
                format!("{rdma}/ports/1/gid_attrs/ndevs/3"),
                port.netdev.clone().unwrap(),
            ),
            (format!("{net}/ifindex"), port.ifindex.unwrap().to_string()),
            (format!("{net}/mtu"), port.mtu.unwrap().to_string()),
            (format!("{nic}/numa_node"), port.numa_node.unwrap().to_string()),
            (format!("{nic}/current_link_speed"), "32.0 GT/s PCIe".to_owned()),
            (format!("{nic}/current_link_width"), "16".to_owned()),
        ] {
            assert_eq!(file(&tree, &path), value);
        }
        let (speed, rate) = if rail == 1 {
            ("200000", "200 Gb/sec (2X NDR)")
        } else {
            ("400000", "400 Gb/sec (4X NDR)")
        };
        assert_eq!(file(&tree, &format!("{net}/speed")), speed);
        assert_eq!(file(&tree, &format!("{rdma}/ports/1/rate")), rate);
        let empty = format!("{rdma}/ports/1/gid_attrs/types/4");
        assert_eq!(tree[&empty], Node::Unreadable("EINVAL".to_owned()));
    }
}

#[test]
fn a_gpu_is_as_many_bridges_away_as_the_port_says() {
    let bench = Bench::new(setup(Scenario::Healthy, 3, Nic::Bnxt, 64));
    let tree = parse(&bench.host.sysfs());
    for port in &bench.ports {
        let gpu = port.gpu.as_ref().unwrap();
        let path = |address: &str| {
            let link = format!("bus/pci/devices/{address}");
            match &tree[&link] {
                Node::Link(to) => target(&link, to),
                other => panic!("{link} is {other:?}"),
            }
        };
        let (nic, gpu_path) = (path(&port.pci.as_ref().unwrap().address), path(&gpu.address));
        assert_eq!(file(&tree, &format!("{gpu_path}/class")), "0x030200");
        let hops = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        let (a, b) = (hops(&nic), hops(&gpu_path));
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        // Of what the two do not share the last is no bridge; of what they share the last is where the way turns.
        let bridges = (a.len() - common - 1) + (b.len() - common - 1) + 1;
        assert_eq!(gpu.bridges.map(usize::from), Some(bridges));
    }
}

#[test]
fn a_flap_and_a_refusal_are_in_the_tree() {
    let bench = Bench::new(setup(Scenario::LinkFlap, 3, Nic::Mlx5, 8));
    bench.pass(10.5);
    let tree = parse(&bench.host.sysfs());
    let port = &bench.ports[2];
    let net = device(&tree, "net", port.netdev.as_ref().unwrap());
    for (name, content) in [
        ("carrier", "0"),
        ("operstate", "down"),
        ("speed", "-1"),
        ("carrier_down_count", "2"),
    ] {
        assert_eq!(file(&tree, &format!("{net}/{name}")), content);
    }
    let rdma = device(&tree, "infiniband", &port.device);
    assert_eq!(file(&tree, &format!("{rdma}/ports/1/state")), "1: DOWN");
    assert_eq!(file(&tree, &format!("{rdma}/ports/1/phys_state")), "3: Disabled");

    let bench = Bench::new(setup(Scenario::CounterReset, 3, Nic::Mlx5, 8));
    bench.pass(21.0);
    let text = bench.host.sysfs();
    let refused = text.lines().filter(|line| line.ends_with(" ! ENODEV"));
    assert!(refused.clone().count() > 30);
    assert!(refused.into_iter().all(|line| line.contains("/mlx5_4/")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn links_lead_somewhere_and_counters_are_those_of_the_sources(
        scenario in prop::sample::select(&Scenario::ALL[..]),
        nic in prop::sample::select(&Nic::ALL[..]),
        ports in 1..=64_u8,
        seconds in 0.0..25.0,
    ) {
        let bench = Bench::new(setup(scenario, 9, nic, ports));
        bench.pass(seconds);
        let text = bench.host.sysfs();
        prop_assert!(!text.contains('\\'), "nothing needs an escape");
        let tree = parse(&text);
        let directories = directories(&tree);
        for (path, node) in &tree {
            if let Node::Link(link) = node {
                let to = target(path, link);
                prop_assert!(directories.contains(to.as_str()), "{path} leads to {to}, which is not there");
            }
        }
        for (rail, port) in bench.host.ports().unwrap().iter().enumerate() {
            let rdma = device(&tree, "infiniband", &port.device);
            for (kind, folder) in [(SourceKind::HwCounters, "hw_counters"), (SourceKind::PortCounters, "counters")] {
                let files = format!("{rdma}/ports/1/{folder}/");
                let refused = tree.iter().any(|(path, node)| path.starts_with(&files) && matches!(node, Node::Unreadable(_)));
                if refused {
                    continue;
                }
                let Some(mut source) = bench.open(rail, kind) else {
                    prop_assert!(kind == SourceKind::PortCounters);
                    prop_assert!(!tree.keys().any(|path| path.starts_with(&files)));
                    continue;
                };
                let schema = std::sync::Arc::clone(source.schema());
                let mut row = vec![0; schema.columns.len()];
                source.read(&mut row);
                for (column, value) in schema.columns.iter().zip(row) {
                    let path = format!("{files}{}", column.name);
                    prop_assert_eq!(file(&tree, &path), value.to_string());
                }
            }
        }
    }
}
