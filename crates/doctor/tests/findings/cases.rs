//! Faults, and what only looks like one.

use crate::node::{GEN5, Node, ip, ipv6, over_ipv6};
use catalog::{Index, Signal};
use doctor::Algorithm;
use model::{Acs, Address, Bond, Express, Fec, GidType, Iommu, Neighbour, PcieLink, Routing, Rule, Trust};
use std::net::IpAddr;

pub(crate) type Change = fn(&mut Node);

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The checks that fire, by name.
    pub(crate) checks: Vec<&'static str>,
    pub(crate) fault: Change,
}

/// Moves the second rail there. It has no table of its own any more: its way out is by a gateway in the main one.
fn into_the_subnet_of_the_first(routing: &mut Routing, address: IpAddr) {
    routing.addresses[1].address = address;
    routing.rules.retain(|rule| rule.table != 101);
    for route in routing.routes.iter_mut().filter(|route| route.table == 101) {
        route.table = 254;
    }
}

fn case(name: &'static str, checks: &[&'static str], fault: Change) -> Case {
    Case {
        name,
        checks: checks.to_vec(),
        fault,
    }
}

fn each_dcb(node: &mut Node, change: impl Fn(&mut doctor::Dcb)) {
    node.facts
        .ports
        .iter_mut()
        .filter_map(|port| port.dcb.as_mut())
        .for_each(change);
}

/// RoCE in VLANs, by whose tags the ports go.
fn by_tags(node: &mut Node) {
    each_setup(node, |setup| {
        setup.trust = Some(Trust::Pcp);
        setup.default_tos = None;
    });
    for port in &mut node.facts.ports {
        let mut vlan = port.port.gids[3].clone();
        vlan.index = 5;
        vlan.netdev = Some("rail.100".to_owned());
        port.port.gids.push(vlan);
    }
}

fn bond(mode: &str, hash: &str) -> Bond {
    Bond {
        name: "bond0".to_owned(),
        mode: mode.to_owned(),
        hash: Some(hash.to_owned()),
    }
}

fn routing(node: &mut Node) -> &mut Routing {
    node.facts.node.routing.as_mut().unwrap()
}

fn each_setup(node: &mut Node, change: impl Fn(&mut model::PortSetup)) {
    node.facts
        .ports
        .iter_mut()
        .for_each(|port| change(&mut port.setup));
}

/// PFC of all rails and their switch ports.
fn pfc(node: &mut Node, mask: u8) {
    each_dcb(node, |dcb| dcb.pfc = Some(mask));
    each_setup(node, |setup| {
        setup.peer_pfc = Some(mask);
        setup.buffers = None;
    });
}

/// The same with everything beside it in order, so that nothing but the mask is at fault.
fn pfc_alone(node: &mut Node, mask: u8) {
    pfc(node, mask);
    each_dcb(node, |dcb| {
        dcb.class_of = [None; 8];
        dcb.dscp = [None; 64];
    });
    each_setup(node, |setup| {
        setup.default_tos = None;
        setup.ecn.cnp_dscp = None;
    });
    node.facts.ports.iter_mut().for_each(|port| port.window = None);
}

pub(crate) fn all() -> Vec<Case> {
    [lossless(), marking(), links(), pci(), network(), host()]
        .into_iter()
        .flatten()
        .collect()
}

fn lossless() -> Vec<Case> {
    vec![
        case("PFC nowhere", &["pfc_off"], |node| pfc_alone(node, 0)),
        case("PFC everywhere", &["pfc_on_all"], |node| pfc_alone(node, 0xff)),
        case("PFC on two", &["pfc_too_many"], |node| pfc_alone(node, 0b1_1000)),
        case("PFC on 5", &["pfc_other_priority"], |node| {
            pfc_alone(node, 0b10_0000);
        }),
        case("PFC on 3 where 4 is planned", &["pfc_other_priority"], |node| {
            pfc_alone(node, 0b1000);
            node.policy.lossless = Some(0b1_0000);
        }),
        case("a rail with PFC on 4", &["pfc_rails_differ"], |node| {
            pfc_alone(node, 0b1000);
            node.facts.ports[2].dcb.as_mut().unwrap().pfc = Some(0b1_0000);
            node.facts.ports[2].setup.peer_pfc = Some(0b1_0000);
        }),
        case("the switch says 4", &["pfc_peer_differs"], |node| {
            node.facts.ports[0].setup.peer_pfc = Some(0b1_0000);
        }),
        case("global pause", &["pause_beside_pfc"], |node| {
            node.facts.ports[0].link.pause_rx = Some(true);
        }),
        case(
            "global pause instead of PFC",
            &["pause_beside_pfc", "pfc_off"],
            |node| {
                pfc_alone(node, 0);
                node.facts.ports[0].link.pause_tx = Some(true);
            },
        ),
        case("storm prevention off", &["storm_prevention_off"], |node| {
            node.facts.ports[1].link.storm_prevention = Some(0);
        }),
        case("no buffer", &["buffer_zero"], |node| {
            node.facts.ports[1].setup.buffers.as_mut().unwrap().bytes[1] = 0;
        }),
        case("one buffer for all", &["buffer_shared"], |node| {
            let buffers = node.facts.ports[1].setup.buffers.as_mut().unwrap();
            buffers.of_priority = [0; 8];
            buffers.bytes[0] = 220_000;
        }),
        // 400 Gb/s and 9,000 bytes: (301 + 216 * 30 / 100) * 400 + 272 * 9022 / 100 + 9022 = 179,561 bytes.
        case("a buffer a byte too small for 30 m", &["buffer_small"], |node| {
            node.policy.cable = Some(30);
            node.facts.ports[1].setup.buffers.as_mut().unwrap().bytes[1] = 179_560;
        }),
        case("a buffer too small for any cable", &["buffer_small"], |node| {
            node.facts.ports[1].setup.buffers.as_mut().unwrap().bytes[1] = 100_000;
        }),
        case("LLDP owns DCB", &["dcbx_not_host"], |node| {
            each_dcb(node, |dcb| dcb.dcbx = Some(0b1010));
        }),
        case("RoCE on priority 0", &["roce_on_other_priority"], |node| {
            for port in &mut node.facts.ports {
                let window = port.window.as_mut().unwrap();
                window.set(Signal::BytesTx, Some(Index::Priority(3)), 0.0);
                window.set(Signal::BytesTx, Some(Index::Priority(0)), 40.6e9);
            }
        }),
        case("TCP on priority 3", &["others_on_lossless"], |node| {
            let window = node.facts.ports[0].window.as_mut().unwrap();
            window.set(Signal::BytesRxRdma, None, 10e9);
            window.set(Signal::BytesRx, Some(Index::Priority(3)), 20e9);
        }),
        case("notification point off", &["ecn_np_off"], |node| {
            each_setup(node, |setup| setup.ecn.notification_point = Some(0b1111_0111));
        }),
        case("reaction point off", &["ecn_rp_off"], |node| {
            each_setup(node, |setup| setup.ecn.reaction_point = Some(0));
        }),
        case("CNPs with DSCP 40", &["cnp_dscp"], |node| {
            node.policy.cnp_dscp = Some(48);
            each_setup(node, |setup| setup.ecn.cnp_dscp = Some(40));
        }),
    ]
}

fn marking() -> Vec<Case> {
    vec![
        case("trust PCP by qos/trust", &["default_tos", "trust_pcp"], |node| {
            each_setup(node, |setup| setup.trust = Some(Trust::Pcp));
        }),
        case("trust PCP by an empty APP table", &["trust_pcp"], |node| {
            each_dcb(node, |dcb| dcb.dscp = [None; 64]);
            each_setup(node, |setup| {
                setup.trust = None;
                setup.default_tos = None;
            });
        }),
        case("DSCP 26 leads to priority 2", &["dscp_not_lossless"], |node| {
            node.policy.dscp = Some(26);
            each_dcb(node, |dcb| dcb.dscp[26] = Some(2));
            each_setup(node, |setup| setup.default_tos = Some(24 * 4));
        }),
        case("no DSCP leads to priority 3", &["dscp_not_lossless"], |node| {
            each_dcb(node, |dcb| dcb.dscp[24..32].fill(Some(0)));
            each_setup(node, |setup| setup.default_tos = None);
        }),
        case("default traffic class 32", &["default_tos"], |node| {
            each_setup(node, |setup| setup.default_tos = Some(32));
        }),
        case(
            "CNPs in the class of data",
            &["class_shared", "cnp_class"],
            |node| {
                each_dcb(node, |dcb| dcb.class_of[6] = Some(3));
            },
        ),
        case("CNPs on the priority of data", &["cnp_class"], |node| {
            each_setup(node, |setup| setup.ecn.cnp_dscp = Some(26));
        }),
        case("CNPs with the tag of data", &["cnp_class"], |node| {
            by_tags(node);
            each_setup(node, |setup| setup.ecn.cnp_priority = Some(3));
        }),
        case("1 % for RoCE", &["class_starved"], |node| {
            each_dcb(node, |dcb| dcb.share_of[3] = Some(1));
        }),
        case("RoCE with the rest in one class", &["class_shared"], |node| {
            each_dcb(node, |dcb| dcb.class_of[3] = Some(0));
        }),
    ]
}

fn links() -> Vec<Case> {
    vec![
        case("a rail without a link", &["link_down"], |node| {
            node.facts.ports[3].link.up = Some(false);
        }),
        case(
            "a rail with half of its lanes",
            &["link_lanes", "link_slow"],
            |node| {
                node.facts.ports[3].link.speed = Some(200_000_000_000);
                node.facts.ports[3].link.lanes = Some(2);
            },
        ),
        case("all rails below the policy", &["link_slow"], |node| {
            node.policy.speed = Some(800_000_000_000);
        }),
        case("a lone rail below its best", &["link_slow"], |node| {
            node.facts.ports.truncate(1);
            node.facts.ports[0].link.speed = Some(200_000_000_000);
        }),
        case("FEC off", &["fec_off"], |node| {
            each_setup(node, |setup| setup.link.fec = Some(Fec::Off));
        }),
        case("a rail with another FEC", &["fec_differs"], |node| {
            node.facts.ports[0].setup.link.fec = Some(Fec::LlRs);
        }),
        case("MTU 1500", &["mtu_small"], |node| {
            node.facts
                .ports
                .iter_mut()
                .for_each(|port| port.port.mtu = Some(1500));
        }),
        case("a rail with MTU 4200", &["mtu_rails_differ"], |node| {
            node.facts.ports[1].port.mtu = Some(4200);
        }),
    ]
}

fn pci() -> Vec<Case> {
    const SLOWER: PcieLink = PcieLink {
        gigatransfers: 16.0,
        width: 16,
    };
    const NARROWER: PcieLink = PcieLink { width: 8, ..GEN5 };
    fn link(node: &mut Node, ends: std::ops::Range<usize>, link: PcieLink) {
        for hop in &mut node.facts.ports[0].setup.pci[ends] {
            hop.current = Some(link);
        }
    }
    vec![
        case("x8 at the NIC", &["pcie_below_line", "pcie_narrow"], |node| {
            link(node, 0..2, NARROWER);
        }),
        case("Gen4 at the NIC", &["pcie_below_line", "pcie_slow"], |node| {
            link(node, 0..2, SLOWER);
        }),
        case("x8 at the switch", &["pcie_narrow"], |node| {
            link(node, 2..4, NARROWER);
        }),
        case("Gen4 at the switch", &["pcie_slow"], |node| {
            link(node, 2..4, SLOWER);
        }),
        case(
            "a slot of the fourth generation",
            &["pcie_below_line", "pcie_slot"],
            |node| {
                link(node, 0..2, SLOWER);
                node.facts.ports[0].setup.pci[1].max = Some(SLOWER);
            },
        ),
        case("payload 128", &["pcie_payload"], |node| {
            express(node, |express| express.payload = 128);
        }),
        case("read request 128", &["pcie_read_request"], |node| {
            express(node, |express| express.read_request = 128);
        }),
        case("two corrected errors a second", &["pcie_errors"], |node| {
            errors(node, Signal::PcieSlotCorrectable, 2.0);
        }),
        case("a link that recovers twice a second", &["pcie_errors"], |node| {
            errors(node, Signal::PcieRxErrors, 2.0);
        }),
        case("an error that cost a transaction", &["pcie_errors"], |node| {
            errors(node, Signal::PcieNonfatal, 0.1);
        }),
        case("a fatal error of yesterday", &["pcie_errors"], |node| {
            node.facts.ports[0].link.pcie_fatal = Some(1);
        }),
        case("ACS", &["acs_redirect"], |node| {
            node.facts.ports[0].setup.pci[1].acs = Some(Acs {
                request_redirect: true,
                completion_redirect: true,
            });
        }),
        case("IOMMU", &["iommu_translates"], |node| {
            each_setup(node, |setup| setup.iommu = Some(Iommu::Translated));
        }),
    ]
}

fn errors(node: &mut Node, signal: Signal, per_second: f64) {
    let window = node.facts.ports[0].window.as_mut().unwrap();
    window.set(signal, None, per_second);
}

fn express(node: &mut Node, change: impl Fn(&mut Express)) {
    change(node.facts.ports[0].setup.pci[0].express.as_mut().unwrap());
}

fn network() -> Vec<Case> {
    vec![
        case("no IPv4", &["gid_missing"], |node| {
            node.facts.ports[0].port.gids.truncate(2);
        }),
        case("RoCE v1 alone", &["gid_missing"], |node| {
            for gid in &mut node.facts.ports[0].port.gids {
                gid.kind = GidType::V1;
            }
        }),
        case("a connection manager of RoCE v1", &["cm_roce_mode"], |node| {
            node.facts.ports[0].setup.cm_mode = Some(GidType::V1);
        }),
        case("a table that has shifted", &["gid_index_differs"], |node| {
            node.facts.ports[1]
                .port
                .gids
                .iter_mut()
                .for_each(|gid| gid.index += 2);
        }),
        case("one subnet for two rails", &["subnet_shared"], |node| {
            into_the_subnet_of_the_first(routing(node), ip(0, 3));
        }),
        case("a rule that is missing", &["source_route_missing"], |node| {
            routing(node).rules.remove(2);
        }),
        case(
            "one subnet for two rails that filter",
            &["strict_source", "subnet_shared"],
            |node| {
                let routing = routing(node);
                into_the_subnet_of_the_first(routing, ip(0, 3));
                routing.strict = vec![10, 11];
            },
        ),
        case(
            "a rule that is missing on a rail that filters",
            &["source_route_missing", "strict_source"],
            |node| {
                let routing = routing(node);
                routing.rules.remove(2);
                routing.strict = vec![12];
            },
        ),
        case("a route of three hops", &["hop_limit_low"], |node| {
            let routes = &mut routing(node).routes;
            routes[0].hop_limit = Some(3);
        }),
        case("a node of one hop", &["hop_limit_low"], |node| {
            routing(node).hop_limit = Some(1);
        }),
        case("a gateway that does not answer", &["neighbour_failed"], |node| {
            let routing = routing(node);
            routing.neighbours[0].failed = true;
            routing.neighbours[1].failed = false;
        }),
        case("a bond that hashes MAC addresses", &["bond_hash"], |node| {
            node.facts.ports[0].setup.bond = Some(bond("802.3ad", "layer2"));
        }),
        case("one subnet of IPv6 for two rails", &["subnet_shared"], |node| {
            let routing = routing(node);
            over_ipv6(routing);
            into_the_subnet_of_the_first(routing, ipv6(0, 3));
        }),
        case(
            "a rule of IPv6 that is missing",
            &["source_route_missing"],
            |node| {
                let routing = routing(node);
                over_ipv6(routing);
                routing.rules.remove(2);
            },
        ),
        case(
            "a router of IPv6 that does not answer",
            &["neighbour_failed"],
            |node| {
                let routing = routing(node);
                over_ipv6(routing);
                // As a router announces itself.
                let router = "fe80::1".parse().unwrap();
                routing.neighbours[0].address = router;
                routing.routes[0].gateway = Some(router);
                routing.neighbours[0].failed = true;
                routing.neighbours[1].failed = false;
            },
        ),
    ]
}

fn host() -> Vec<Case> {
    vec![
        case("no peer memory", &["gpudirect_missing"], |node| {
            node.facts.node.gpu_direct.peer_memory = None;
        }),
        case(
            "open modules on a kernel of before",
            &["gpudirect_missing"],
            |node| {
                let direct = &mut node.facts.node.gpu_direct;
                direct.peer_memory = None;
                direct.gpu_driver.as_mut().unwrap().proprietary = Some(false);
                "5.4.0-216-generic".clone_into(&mut direct.kernel.as_mut().unwrap().release);
            },
        ),
        case(
            "AMD GPUs without the kernel's part",
            &["dma_buf_not_built"],
            |node| {
                amd(node);
                let kernel = node.facts.node.gpu_direct.kernel.as_mut().unwrap();
                kernel.lacks = Some(vec!["CONFIG_DMABUF_MOVE_NOTIFY"]);
            },
        ),
        case("peer memory without a byte", &["gpudirect_unused"], |node| {
            node.facts.node.gpu_direct.registered_bytes = Some(0);
        }),
        case("a NIC at the other socket", &["gpu_far"], |node| {
            node.facts.ports[0].setup.gpu_numa_distance = Some(21);
        }),
        case("old firmware", &["firmware_differs"], |node| {
            node.facts.ports[0].port.firmware = Some("28.36.1010".to_owned());
        }),
        case("another driver", &["driver_differs"], |node| {
            node.facts.ports[0].setup.driver_version = Some("23.10".to_owned());
        }),
        case("a hot module", &["module_hot"], |node| {
            node.facts.ports[0].link.module_celsius = Some(75.0);
        }),
        case("a hot chip", &["chip_hot"], |node| {
            node.facts.ports[0].link.chip_celsius = Some(104.0);
        }),
        case("a dim lane", &["optics_dim"], |node| {
            node.facts.ports[0].link.rx_nanowatts[2] = 60_000;
        }),
        case("a lane with a tenth of the light", &["optics_dim"], |node| {
            node.facts.ports[0].link.rx_nanowatts = vec![2_000_000, 2_000_000, 150_000, 2_000_000];
        }),
    ]
}

/// GPUs of AMD in place of NVIDIA's, on a kernel that has all that they need.
fn amd(node: &mut Node) {
    let direct = &mut node.facts.node.gpu_direct;
    direct.peer_memory = None;
    direct.registered_bytes = None;
    direct.kernel.as_mut().unwrap().lacks = Some(Vec::new());
    let driver = direct.gpu_driver.as_mut().unwrap();
    "amdgpu".clone_into(&mut driver.name);
    driver.proprietary = Some(false);
    for gpu in node.facts.node.gpus.iter_mut().flatten() {
        gpu.vendor = 0x1002;
    }
}

/// What is unusual and no fault.
#[allow(clippy::too_many_lines)] // a list
pub(crate) fn innocent() -> Vec<(&'static str, Change)> {
    vec![
        ("a buffer that just holds 30 m", |node| {
            node.policy.cable = Some(30);
            node.facts.ports[1].setup.buffers.as_mut().unwrap().bytes[1] = 179_561;
        }),
        ("PFC on 4", |node| pfc_alone(node, 0b1_0000)),
        ("a port that is down, of another board", |node| {
            node.facts.ports[3].link.up = Some(false);
            node.facts.ports[3].port.board = Some("MT_0000000001".to_owned());
            node.facts.ports[3].port.firmware = None;
        }),
        ("all ports down", |node| {
            node.facts
                .ports
                .iter_mut()
                .for_each(|port| port.link.up = Some(false));
        }),
        ("trust PCP with a VLAN", by_tags),
        ("a class of 6 %", |node| {
            each_dcb(node, |dcb| dcb.share_of[3] = Some(6));
        }),
        ("a strict class without a share", |node| {
            each_dcb(node, |dcb| {
                dcb.share_of[3] = Some(0);
                dcb.algorithm_of[3] = Some(Algorithm::Strict);
            });
        }),
        ("all priorities in the one class that there is", |node| {
            each_dcb(node, |dcb| dcb.class_of = [Some(0); 8]);
            each_setup(node, |setup| setup.ecn.cnp_dscp = None);
        }),
        ("Gen4 x16 under 200G", |node| {
            let link = PcieLink {
                gigatransfers: 16.0,
                width: 16,
            };
            for port in &mut node.facts.ports {
                port.link.speed = Some(200_000_000_000);
                for hop in &mut port.setup.pci {
                    (hop.current, hop.max) = (Some(link), Some(link));
                }
            }
        }),
        ("a bridge that a hypervisor made up", |node| {
            node.facts.ports[0].setup.pci.truncate(2);
            node.facts.ports[0].setup.pci[1].max = Some(PcieLink {
                gigatransfers: 2.5,
                width: 1,
            });
        }),
        ("FEC off at 10G", |node| {
            for port in &mut node.facts.ports {
                (port.link.speed, port.link.lanes) = (Some(10_000_000_000), Some(1));
                port.setup.link.fec = Some(Fec::Off);
            }
        }),
        ("ACS without a GPU nearby", |node| {
            node.facts.ports[0].port.gpu = None;
            node.facts.ports[0].setup.pci[1].acs = Some(Acs {
                request_redirect: true,
                completion_redirect: true,
            });
        }),
        ("IOMMU without GPUs", |node| {
            node.facts.node.gpus = Some(Vec::new());
            each_setup(node, |setup| setup.iommu = Some(Iommu::Translated));
        }),
        ("RoCE v2 over IPv6 alone", |node| {
            for port in &mut node.facts.ports {
                for gid in port.port.gids.iter_mut().skip(2) {
                    "2001:0db8:0000:0000:0000:0000:0000:0001".clone_into(&mut gid.gid);
                }
            }
        }),
        ("a NIC that has RoCE v1 alone, and says so", |node| {
            for port in &mut node.facts.ports {
                port.setup.cm_mode = Some(GidType::V1);
                port.port.gids.clear();
            }
        }),
        ("a table with a common index among others", |node| {
            let port = &mut node.facts.ports[1].port;
            let mut more = port.gids[3].clone();
            more.index = 1;
            port.gids[1] = more;
        }),
        ("one subnet with a rule for each address", |node| {
            let routing = routing(node);
            routing.addresses[1].address = ip(0, 3);
            routing.rules[1] = Rule {
                from: (ip(0, 3), 32),
                table: 101,
            };
        }),
        ("a bond that hashes flows", |node| {
            node.facts.ports[0].setup.bond = Some(bond("802.3ad", "layer3+4"));
        }),
        ("a bond with a link in reserve", |node| {
            node.facts.ports[0].setup.bond = Some(bond("active-backup", "layer2"));
        }),
        ("a node of IPv6 alone", |node| over_ipv6(routing(node))),
        (
            "a router that announces one prefix of IPv6 on all rails",
            |node| {
                let routing = routing(node);
                for rail in 0..2 {
                    let ifindex = routing.addresses[rail].ifindex;
                    routing.addresses.push(Address {
                        ifindex,
                        address: ipv6(0, 2 + u8::try_from(rail).unwrap()),
                        prefix: 64,
                    });
                    routing.neighbours.push(Neighbour {
                        ifindex,
                        address: "fe80::1".parse().unwrap(),
                        failed: true,
                    });
                }
            },
        ),
        ("no routers at all", |node| {
            let routing = routing(node);
            routing.rules.clear();
            routing.routes.retain(|route| route.gateway.is_none());
        }),
        ("a default route by one rail alone", |node| {
            let routing = routing(node);
            routing.rules.clear();
            routing
                .routes
                .retain(|route| route.gateway.is_none() || route.table == 100);
            routing.routes[0].table = 254;
        }),
        ("open kernel modules without peer memory", |node| {
            let direct = &mut node.facts.node.gpu_direct;
            direct.peer_memory = None;
            direct.gpu_driver.as_mut().unwrap().proprietary = Some(false);
        }),
        ("AMD GPUs", amd),
        ("AMD GPUs on a kernel that does not tell its options", |node| {
            amd(node);
            node.facts.node.gpu_direct.kernel.as_mut().unwrap().lacks = None;
        }),
        ("AMD GPUs with peer memory of the OFED kind", |node| {
            amd(node);
            let direct = &mut node.facts.node.gpu_direct;
            direct.kernel.as_mut().unwrap().lacks = Some(vec!["CONFIG_PCI_P2PDMA"]);
            direct.registered_bytes = Some(1 << 30);
        }),
        ("rails that filter, each with a way of its own", |node| {
            routing(node).strict = vec![10, 11, 12, 13];
        }),
        ("rails without routers that filter", |node| {
            let routing = routing(node);
            routing.rules.clear();
            routing.routes.retain(|route| route.gateway.is_none());
            routing.strict = vec![10, 11, 12, 13];
        }),
        ("a low hop limit where there are no routers", |node| {
            let routing = routing(node);
            routing.routes.retain(|route| route.gateway.is_none());
            routing.rules.clear();
            routing.hop_limit = Some(1);
        }),
        ("a corrected PCIe error now and then", |node| {
            errors(node, Signal::PcieCorrectable, 0.4);
        }),
        ("retries of a link with error correction", |node| {
            for hop in &mut node.facts.ports[0].setup.pci {
                let link = PcieLink {
                    gigatransfers: 64.0,
                    width: 16,
                };
                (hop.current, hop.max) = (Some(link), Some(link));
            }
            errors(node, Signal::PcieCorrectable, 500.0);
        }),
        ("peer memory without a byte on an idle node", |node| {
            node.facts.node.gpu_direct.registered_bytes = Some(0);
            node.facts.ports.iter_mut().for_each(|port| port.window = None);
        }),
        ("rails of two boards with firmware of their own", |node| {
            node.facts.ports[3].port.board = Some("MT_0000000001".to_owned());
            node.facts.ports[3].port.firmware = Some("22.41.1000".to_owned());
        }),
        ("little RDMA, and all on priority 0", |node| {
            let window = node.facts.ports[0].window.as_mut().unwrap();
            window.set(Signal::BytesTxRdma, None, 1e5);
            window.set(Signal::BytesTx, Some(Index::Priority(3)), 0.0);
        }),
        ("global pause that nobody can tell", |node| {
            node.facts.ports[0].link.pause_rx = None;
            node.facts.ports[0].link.pause_tx = None;
        }),
    ]
}
