//! A node of four rails in which everything is as it should be.

use catalog::Signal;
use doctor::{Algorithm, Dcb, Facts, LinkFacts, Policy, PortFacts, PortName, PortWindow};
use model::{
    Acs, Address, Buffers, DeviceId, EcnSetup, Express, Fec, Gid, GidType, Gpu, GpuDirect, GpuSetup, Iommu,
    KernelBuild, LinkLayer, LinkSetup, Module, Neighbour, NodeSetup, Pci, PciHop, PcieLink, Port, PortId,
    PortSetup, PortState, Route, Routing, Rule, Trust,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const GEN5: PcieLink = PcieLink {
    gigatransfers: 32.0,
    width: 16,
};
const RAILS: u8 = 4;

/// What a case works on.
pub(crate) struct Node {
    pub(crate) facts: Facts,
    pub(crate) policy: Policy,
}

/// The checks that fire, in order and each once.
pub(crate) fn ids(node: &Node) -> Vec<&'static str> {
    let mut ids: Vec<_> = doctor::findings(&node.facts, &node.policy)
        .iter()
        .map(|finding| finding.check.id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

pub(crate) fn healthy() -> Node {
    Node {
        facts: Facts {
            node: node(),
            ports: (0..RAILS).map(port).collect(),
        },
        policy: Policy::default(),
    }
}

fn node() -> NodeSetup {
    let gpu = |rail: u8| GpuSetup {
        address: format!("0000:{:02x}:01.0", 0x10 * (rail + 1)),
        vendor: 0x10de,
        numa_node: Some(0),
    };
    NodeSetup {
        gpus: Some((0..RAILS).map(gpu).collect()),
        gpu_direct: GpuDirect {
            modules_known: true,
            peer_memory: Some(Module {
                name: "nvidia_peermem".to_owned(),
                version: None,
                references: Some(1),
                proprietary: Some(true),
            }),
            gpu_driver: Some(Module {
                name: "nvidia".to_owned(),
                version: Some("550.90.07".to_owned()),
                references: Some(20),
                proprietary: Some(true),
            }),
            kernel: Some(KernelBuild {
                release: "5.15.0-105-generic".to_owned(),
                lacks: Some(vec!["CONFIG_DMABUF_MOVE_NOTIFY"]),
            }),
            registered_bytes: Some(64 << 30),
        },
        routing: Some(routing()),
    }
}

/// An address of a rail.
pub(crate) fn ip(rail: u8, host: u8) -> IpAddr {
    Ipv4Addr::new(10, 1, rail, host).into()
}

/// The same of IPv6.
pub(crate) fn ipv6(rail: u8, host: u8) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, rail.into(), 0, 0, 0, host.into()).into()
}

/// The node with the same addresses, routes, rules and neighbours of IPv6 in place of those of IPv4.
pub(crate) fn over_ipv6(routing: &mut Routing) {
    let six = |address: &mut IpAddr| {
        if let IpAddr::V4(four) = *address {
            *address = match four.octets() {
                [0, 0, 0, 0] => Ipv6Addr::UNSPECIFIED.into(),
                [_, _, rail, host] => ipv6(rail, host),
            };
        }
    };
    let six_with = |network: &mut (IpAddr, u8)| {
        six(&mut network.0);
        network.1 = match network.1 {
            24 => 64,
            32 => 128,
            bits => bits,
        };
    };
    for address in &mut routing.addresses {
        six(&mut address.address);
        address.prefix = 64;
    }
    for route in &mut routing.routes {
        six_with(&mut route.to);
        route.gateway.iter_mut().for_each(six);
    }
    routing.rules.iter_mut().for_each(|rule| six_with(&mut rule.from));
    routing
        .neighbours
        .iter_mut()
        .for_each(|neighbour| six(&mut neighbour.address));
}

fn routing() -> Routing {
    let mut routing = Routing::default();
    for rail in 0..RAILS {
        let ifindex = u32::from(rail) + 10;
        let [own, gateway] = [2, 1].map(|host| ip(rail, host));
        routing.addresses.push(Address {
            ifindex,
            address: own,
            prefix: 24,
        });
        let table = 100 + u32::from(rail);
        routing.rules.push(Rule {
            from: (own, 32),
            table,
        });
        for (to, gateway, table) in [
            ((Ipv4Addr::UNSPECIFIED.into(), 0), Some(gateway), table),
            ((ip(rail, 0), 24), None, 254),
        ] {
            routing.routes.push(Route {
                to,
                gateway,
                ifindex,
                table,
                hop_limit: None,
            });
        }
        for (address, failed) in [(gateway, false), (ip(rail, 77), true)] {
            routing.neighbours.push(Neighbour {
                ifindex,
                address,
                failed,
            });
        }
    }
    routing
}

fn port(rail: u8) -> PortFacts {
    let port = rdma_port(rail);
    let window = window(&port);
    PortFacts {
        setup: setup(rail),
        dcb: Some(dcb()),
        link: LinkFacts {
            up: Some(true),
            speed: Some(400_000_000_000),
            lanes: Some(4),
            pause_rx: Some(false),
            pause_tx: Some(false),
            storm_prevention: Some(65_535),
            pcie_fatal: Some(0),
            module_celsius: Some(55.0),
            chip_celsius: Some(70.0),
            rx_nanowatts: vec![900_000, 800_000, 950_000, 700_000],
            tx_nanowatts: vec![1_000_000; 4],
        },
        window: Some(window),
        port,
    }
}

fn rdma_port(rail: u8) -> Port {
    let netdev = format!("rail{rail}");
    let address = format!("0000:{:02x}:00.0", 0x10 * (rail + 1));
    let v4 = format!("0000:0000:0000:0000:0000:ffff:0a01:0{rail}02");
    let link_local = format!("fe80:0000:0000:0000:0000:00ff:fe00:000{rail}");
    let gid = |index, gid: &str, kind| Gid {
        index,
        gid: gid.to_owned(),
        kind,
        netdev: Some(netdev.clone()),
    };
    Port {
        id: PortId {
            device: DeviceId::pci(&address),
            number: 1,
        },
        device: format!("mlx5_{rail}"),
        ifindex: Some(u32::from(rail) + 10),
        rdma_index: Some(rail.into()),
        driver: "mlx5_core".to_owned(),
        firmware: Some("28.39.1002".to_owned()),
        board: Some("MT_0000000838".to_owned()),
        guid: Some(format!("0000:0000:0000:000{rail}")),
        pci: Some(Pci {
            address: address.clone(),
            current: Some(GEN5),
            max: Some(GEN5),
        }),
        numa_node: Some(0),
        gpu: Some(Gpu {
            address: format!("0000:{:02x}:01.0", 0x10 * (rail + 1)),
            bridges: Some(3),
        }),
        link_layer: LinkLayer::Ethernet,
        state: Some(PortState::Active),
        mtu: Some(9000),
        gids: vec![
            gid(0, &link_local, GidType::V1),
            gid(1, &link_local, GidType::V2),
            gid(2, &v4, GidType::V1),
            gid(3, &v4, GidType::V2),
        ],
        netdev: Some(netdev),
    }
}

fn setup(rail: u8) -> PortSetup {
    let hop = |at: u8| PciHop {
        address: format!("0000:{:02x}:0{at}.0", 0x10 * (rail + 1)),
        current: Some(GEN5),
        max: Some(GEN5),
        express: Some(Express {
            payload_supported: 512,
            payload: 256,
            read_request: 4096,
        }),
        acs: Some(Acs::default()).filter(|_| at > 0),
    };
    PortSetup {
        trust: Some(Trust::Dscp),
        buffers: Some(Buffers {
            of_priority: [0, 0, 0, 1, 0, 0, 0, 0],
            bytes: [20_000, 200_000, 0, 0, 0, 0, 0, 0],
        }),
        peer_pfc: Some(0b1000),
        ecn: EcnSetup {
            notification_point: Some(0xff),
            reaction_point: Some(0xff),
            cnp_dscp: Some(48),
            cnp_priority: Some(6),
            cnp_interval: Some(4),
        },
        default_tos: Some(106),
        cm_mode: Some(GidType::V2),
        link: LinkSetup {
            best_speed: Some(400_000_000_000),
            fec: Some(Fec::Rs),
        },
        pci: (0..4).map(hop).collect(),
        iommu: Some(Iommu::PassThrough),
        gpu_numa_distance: Some(10),
        bond: None,
        driver_version: Some("24.04-0.6.6".to_owned()),
    }
}

/// PFC on priority 3, in a class of its own that has half of the line; CNPs on priority 6, strict.
fn dcb() -> Dcb {
    let mut dcb = Dcb {
        pfc: Some(0b1000),
        pfc_capable: Some(8),
        dcbx: Some(0b1001),
        class_of: [0, 0, 0, 3, 0, 0, 6, 0].map(Some),
        share_of: [50, 0, 0, 50, 0, 0, 0, 0].map(Some),
        algorithm_of: [Some(Algorithm::Ets); 8],
        ..Dcb::default()
    };
    dcb.algorithm_of[6] = Some(Algorithm::Strict);
    for (dscp, priority) in (0u8..).zip(&mut dcb.dscp) {
        *priority = Some(dscp >> 3);
    }
    dcb
}

/// A training job: 40 GB/s of RDMA each way on priority 3, a little of the rest on priority 0.
fn window(port: &Port) -> PortWindow {
    let mut window = PortWindow::new(PortName::of(port));
    window.speed = Some(400e9);
    window.pfc = Some(0b1000);
    for (rdma, bytes) in [
        (Signal::BytesRxRdma, Signal::BytesRx),
        (Signal::BytesTxRdma, Signal::BytesTx),
    ] {
        window.set(rdma, None, 40e9);
        window.set(bytes, Some(catalog::Index::Priority(3)), 40.6e9);
        window.set(bytes, Some(catalog::Index::Priority(0)), 1e6);
    }
    window.set_utilization(catalog::Direction::Tx, 0.82);
    window.set_utilization(catalog::Direction::Rx, 0.82);
    window
}
