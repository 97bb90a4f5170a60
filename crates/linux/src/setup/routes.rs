//! Addresses, routes, rules and neighbours of IPv4 and IPv6 by rtnetlink, and how IPv4 treats the rails:
//! `include/uapi/linux/rtnetlink.h`, `if_addr.h`, `fib_rules.h`, `neighbour.h`, `netconf.h`.

use crate::Tree;
use crate::netlink::{Attribute, Attributes, DUMP, Message, Request, Socket};
use crate::number::decimal;
use model::{Address, Neighbour, Route, Routing, Rule};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;
const RTM_NEWNETCONF: u16 = 80;
const RTM_GETNETCONF: u16 = 82;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `struct ifaddrmsg`, `rtmsg`, `ndmsg` and `fib_rule_hdr`.
const ADDRESS_HEADER: usize = 8;
const HEADER: usize = 12;
/// `IFA_F_DADFAILED | IFA_F_TENTATIVE`: another has the address, or may have.
const NOT_OWN: u8 = 0x08 | 0x40;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
/// `struct rtvia`: a family and an address of it, which need not be the route's.
const RTA_VIA: u16 = 18;
const RTAX_HOPLIMIT: u16 = 10;
const RTN_UNICAST: u8 = 1;
/// `struct rtnexthop`: length, flags, weight, interface.
const NEXT_HOP: usize = 8;
const FRA_SRC: u16 = 2;
const FRA_TABLE: u16 = 15;
const TO_TABLE: u8 = 1;
const NDA_DST: u16 = 1;
/// `struct netconfmsg` and what is left of its four bytes; `NETCONFA_IFINDEX` and `NETCONFA_RP_FILTER`, which is strict if it
/// is 1 and loose if it is 2; the index that stands for all interfaces.
const CONFIGURATION_HEADER: usize = 4;
const NETCONFA_IFINDEX: u16 = 1;
const NETCONFA_RP_FILTER: u16 = 3;
const STRICT: u32 = 1;
const ALL_INTERFACES: u32 = (-1i32).cast_unsigned();
/// `NUD_FAILED`, and the states of a neighbour that is not looked for by ARP or neighbour discovery: `NUD_NOARP`, `NUD_PERMANENT`.
const FAILED: u16 = 0x20;
const FIXED: u16 = 0x40 | 0x80;
/// More entries of a kind than a node has for its rails; a router's table is not read to its end.
const MOST: usize = 4096;

/// All of this process's network namespace; `None` if the kernel does not tell. Of a family it is all or nothing: a kernel
/// may be without IPv6, or without its rules.
pub(super) fn read(procfs: &Path) -> Option<Routing> {
    let told = [AF_INET, AF_INET6].into_iter().filter_map(|family| {
        ask(family)
            .inspect_err(|errno| tracing::debug!(%errno, family, "rtnetlink does not tell routes"))
            .ok()
    });
    let told = told.reduce(|mut all, more| {
        all.addresses.extend(more.addresses);
        all.routes.extend(more.routes);
        all.rules.extend(more.rules);
        all.neighbours.extend(more.neighbours);
        all.strict.extend(more.strict);
        all
    });
    Some(Routing {
        hop_limit: default_hop_limit(procfs),
        ..told?
    })
}

/// A setting of the network namespace of whoever reads the file.
fn default_hop_limit(procfs: &Path) -> Option<u32> {
    let limit = Tree::open(procfs)
        .ok()?
        .number("sys/net/ipv4/ip_default_ttl", decimal);
    u32::try_from(limit.ok()?).ok()
}

fn ask(family: u8) -> Result<Routing, Errno> {
    let mut socket = Socket::open(NlFamily::Route, &[], DUMP)?;
    let mut routing = Routing::default();
    for kind in [RTM_GETADDR, RTM_GETROUTE, RTM_GETRULE, RTM_GETNEIGH] {
        let mut header = [0; HEADER];
        header[0] = family;
        let length = if kind == RTM_GETADDR {
            ADDRESS_HEADER
        } else {
            HEADER
        };
        socket.dump(&mut Request::dump(kind, &header[..length]), |message| {
            learn(message, family, &mut routing);
        })?;
    }
    if family == AF_INET {
        let mut filters = Vec::new();
        let mut request = Request::dump(RTM_GETNETCONF, &[family, 0, 0, 0]);
        socket.dump(&mut request, |message| {
            if message.kind == RTM_NEWNETCONF {
                push(&mut filters, filter(message.payload));
            }
        })?;
        routing.strict = strict(&filters);
    }
    Ok(routing)
}

/// Takes in what is of the family: a kernel that does not know one tells of all.
fn learn(message: Message<'_>, family: u8, routing: &mut Routing) {
    let payload = message.payload;
    if payload.first() != Some(&family) {
        return;
    }
    match message.kind {
        RTM_NEWADDR => push(&mut routing.addresses, address(payload)),
        RTM_NEWROUTE => routes(payload, &mut routing.routes),
        RTM_NEWRULE => push(&mut routing.rules, rule(payload)),
        RTM_NEWNEIGH => push(&mut routing.neighbours, neighbour(payload)),
        _ => {}
    }
}

fn push<T>(list: &mut Vec<T>, entry: Option<T>) {
    if list.len() < MOST {
        list.extend(entry);
    }
}

fn ip(attribute: Attribute<'_>) -> Option<IpAddr> {
    ip_of(attribute.value)
}

/// Four or sixteen bytes.
fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

/// Everything, in the family of a message.
fn everything(payload: &[u8]) -> IpAddr {
    match payload.first() {
        Some(&AF_INET6) => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// The next router of a route, or of one of its paths.
fn gateway(attributes: &Attributes<'_>) -> Option<IpAddr> {
    let via = || ip_of(attributes.find_kind(RTA_VIA)?.value.get(2..)?);
    attributes.find_kind(RTA_GATEWAY).and_then(ip).or_else(via)
}

fn index_at(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*payload.get(at..)?.first_chunk()?))
}

/// A network of which so many bits are told.
fn prefix(address: IpAddr, bits: u8) -> Option<(IpAddr, u8)> {
    let most = if address.is_ipv4() { 32 } else { 128 };
    (bits <= most).then_some((address, bits))
}

fn address(payload: &[u8]) -> Option<Address> {
    let attributes = Attributes::behind(payload, ADDRESS_HEADER);
    // At a point-to-point interface the first is the peer's.
    let own = attributes
        .find_kind(IFA_LOCAL)
        .or(attributes.find_kind(IFA_ADDRESS))?;
    if payload.get(2)? & NOT_OWN != 0 {
        return None;
    }
    let (address, prefix) = prefix(ip(own)?, *payload.get(1)?)?;
    Some(Address {
        ifindex: index_at(payload, 4)?,
        address,
        prefix,
    })
}

fn routes(payload: &[u8], found: &mut Vec<Route>) {
    let (Some(&bits), Some(&table), Some(&RTN_UNICAST)) = (payload.get(1), payload.get(4), payload.get(7))
    else {
        return;
    };
    let attributes = Attributes::behind(payload, HEADER);
    let to = attributes
        .find_kind(RTA_DST)
        .map_or(Some(everything(payload)), ip);
    let Some(to) = to.and_then(|to| prefix(to, bits)) else {
        return;
    };
    let table = attributes
        .find_kind(RTA_TABLE)
        .and_then(|table| table.u32())
        .unwrap_or(table.into());
    let hop_limit = hop_limit(&attributes);
    let mut add = |ifindex, gateway| {
        let route = Route {
            to,
            gateway,
            ifindex,
            table,
            hop_limit,
        };
        push(found, Some(route));
    };
    if let Some(ifindex) = attributes.find_kind(RTA_OIF).and_then(|index| index.u32()) {
        add(ifindex, gateway(&attributes));
    }
    let mut hops = attributes
        .find_kind(RTA_MULTIPATH)
        .map_or(&[][..], |paths| paths.value);
    while let Some(length) = hops
        .first_chunk()
        .map(|length| usize::from(u16::from_ne_bytes(*length)))
    {
        let (Some(hop), Some(ifindex)) = (hops.get(..length), index_at(hops, 4)) else {
            return;
        };
        add(ifindex, gateway(&Attributes::behind(hop, NEXT_HOP)));
        // A length of 0 would never end.
        let next = length.next_multiple_of(4).max(NEXT_HOP);
        hops = hops.get(next..).unwrap_or_default();
    }
}

/// Of the metrics of a route; 0 stands for none.
fn hop_limit(attributes: &Attributes<'_>) -> Option<u32> {
    let metrics = Attributes::new(attributes.find_kind(RTA_METRICS)?.value);
    metrics.find_kind(RTAX_HOPLIMIT)?.u32().filter(|limit| *limit > 0)
}

/// An interface and its `rp_filter`.
fn filter(payload: &[u8]) -> Option<(u32, u32)> {
    let attributes = Attributes::behind(payload, CONFIGURATION_HEADER);
    let number = |kind| attributes.find_kind(kind)?.u32();
    Some((number(NETCONFA_IFINDEX)?, number(NETCONFA_RP_FILTER)?))
}

/// The interfaces that filter strictly: the greater of their own setting and that of all holds.
fn strict(filters: &[(u32, u32)]) -> Vec<u32> {
    let of_all = filters.iter().find(|(index, _)| *index == ALL_INTERFACES);
    let least = of_all.map_or(0, |(_, of_all)| *of_all);
    let is_strict = |(index, own): &(u32, u32)| i32::try_from(*index).is_ok() && (*own).max(least) == STRICT;
    filters
        .iter()
        .filter(|filter| is_strict(filter))
        .map(|(index, _)| *index)
        .collect()
}

fn rule(payload: &[u8]) -> Option<Rule> {
    let attributes = Attributes::behind(payload, HEADER);
    let (bits, table, action) = (*payload.get(2)?, *payload.get(4)?, *payload.get(7)?);
    if action != TO_TABLE {
        return None;
    }
    let full = attributes.find_kind(FRA_TABLE).and_then(|table| table.u32());
    Some(Rule {
        from: prefix(ip(attributes.find_kind(FRA_SRC)?)?, bits)?,
        table: full.unwrap_or(table.into()),
    })
}

fn neighbour(payload: &[u8]) -> Option<Neighbour> {
    let state = u16::from_ne_bytes(*payload.get(8..)?.first_chunk()?);
    if state & FIXED != 0 {
        return None;
    }
    Some(Neighbour {
        ifindex: index_at(payload, 4)?,
        address: ip(Attributes::behind(payload, HEADER).find_kind(NDA_DST)?)?,
        failed: state & FAILED != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns;
    use proptest::prelude::*;

    fn told(kind: u16, request: &Request) -> Routing {
        let mut routing = Routing::default();
        let message = Message {
            kind,
            sequence: 0,
            payload: request.payload(),
        };
        let family = request.payload()[0];
        learn(message, family, &mut routing);
        routing
    }

    #[test]
    fn a_route_over_several_rails_is_one_for_each() {
        let hop = |ifindex: u32, last: u8| {
            let gateway = Request::new(0, &[]).with(RTA_GATEWAY, &[10, 1, last, 1]);
            let mut hop = 16u16.to_ne_bytes().to_vec();
            hop.extend([0, 0]);
            hop.extend(ifindex.to_ne_bytes());
            hop.extend(gateway.payload());
            hop
        };
        let header = [AF_INET, 8, 0, 0, 254, 3, 0, RTN_UNICAST, 0, 0, 0, 0];
        let paths = [hop(4, 0), hop(5, 1)].concat();
        let request = Request::new(0, &header)
            .with(RTA_DST, &[10, 0, 0, 0])
            .with(RTA_MULTIPATH, &paths);
        let routes = told(RTM_NEWROUTE, &request).routes;
        let route = |ifindex, last| Route {
            to: (Ipv4Addr::new(10, 0, 0, 0).into(), 8),
            gateway: Some(Ipv4Addr::new(10, 1, last, 1).into()),
            ifindex,
            table: 254,
            hop_limit: None,
        };
        assert_eq!(routes, [route(4, 0), route(5, 1)]);
    }

    #[test]
    fn a_gateway_may_be_of_the_other_family() {
        let header = [AF_INET, 0, 0, 0, 254, 3, 0, RTN_UNICAST, 0, 0, 0, 0];
        let router: Ipv6Addr = "fe80::1".parse().unwrap();
        let via = [&[AF_INET6, 0][..], &router.octets()].concat();
        let request = Request::new(0, &header)
            .with(RTA_OIF, &4u32.to_ne_bytes())
            .with(RTA_VIA, &via);
        let route = Route {
            to: (Ipv4Addr::UNSPECIFIED.into(), 0),
            gateway: Some(router.into()),
            ifindex: 4,
            table: 254,
            hop_limit: None,
        };
        assert_eq!(told(RTM_NEWROUTE, &request).routes, [route]);
    }

    #[test]
    fn the_greater_setting_of_an_interface_and_of_all_holds() {
        const DEFAULT: u32 = (-2i32).cast_unsigned();
        let with = |of_all| strict(&[(ALL_INTERFACES, of_all), (DEFAULT, 1), (4, 0), (5, 1), (6, 2)]);
        assert_eq!(with(0), [5]);
        assert_eq!(with(1), [4, 5]);
        assert!(with(2).is_empty());
        assert_eq!(strict(&[(5, 1)]), [5]);
    }

    #[test]
    fn the_kernel_tells_what_was_set() {
        netns::within(|| {
            netns::ip("link add rail0 type veth peer name peer0");
            netns::ip("link set rail0 up");
            netns::ip("link set peer0 up");
            netns::run(
                "sysctl",
                "-qw net.ipv4.conf.rail0.rp_filter=1 net.ipv4.ip_default_ttl=7",
            );
            for (family, own, network, gateway, silent) in [
                ("-4", "10.1.0.2/24", "10.1.0.0", "10.1.0.1", "10.1.0.9"),
                (
                    "-6",
                    "2001:db8:1::2/64",
                    "2001:db8:1::",
                    "2001:db8:1::1",
                    "2001:db8:1::9",
                ),
            ] {
                let nodad = if family == "-6" { " nodad" } else { "" };
                netns::ip(&format!("{family} address add {own} dev rail0{nodad}"));
                netns::ip(&format!(
                    "{family} route add default via {gateway} dev rail0 table 1000 hoplimit 3"
                ));
                let (own, bits) = own.split_once('/').unwrap();
                netns::ip(&format!("{family} rule add from {own} table 1000"));
                netns::ip(&format!("{family} neighbour add {silent} dev rail0 nud failed"));
                let ifindex = netns::port("rail0").ifindex.unwrap();
                let routing = read(Path::new("/proc")).unwrap();
                let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
                let address = Address {
                    ifindex,
                    address: ip(own),
                    prefix: bits.parse().unwrap(),
                };
                assert!(routing.addresses.contains(&address), "{routing:?}");
                let rule = Rule {
                    from: (ip(own), if family == "-4" { 32 } else { 128 }),
                    table: 1000,
                };
                assert_eq!(routing.rules.last(), Some(&rule), "{routing:?}");
                let everything = if family == "-4" { "0.0.0.0" } else { "::" };
                let default = Route {
                    to: (ip(everything), 0),
                    gateway: Some(ip(gateway)),
                    ifindex,
                    table: 1000,
                    hop_limit: Some(3),
                };
                assert!(routing.routes.contains(&default), "{routing:?}");
                let of_subnet = (ip(network), address.prefix);
                let local = routing.routes.iter().any(|route| route.to == of_subnet);
                assert!(local, "{routing:?}");
                let neighbour = Neighbour {
                    ifindex,
                    address: ip(silent),
                    failed: true,
                };
                assert!(routing.neighbours.contains(&neighbour), "{routing:?}");
                assert!(routing.strict.contains(&ifindex), "{routing:?}");
                assert_eq!(routing.hop_limit, Some(7));
            }
        });
    }

    proptest! {
        #[test]
        fn any_message_is_survived(
            kind in 20u16..34,
            family in prop::sample::select(&[AF_INET, AF_INET6][..]),
            payload in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut payload = payload;
            payload.insert(0, family);
            learn(Message { kind, sequence: 0, payload: &payload }, family, &mut Routing::default());
        }

        #[test]
        fn any_paths_are_survived(paths in proptest::collection::vec(any::<u8>(), 0..200)) {
            let header = [AF_INET, 8, 0, 0, 254, 3, 0, RTN_UNICAST, 0, 0, 0, 0];
            told(RTM_NEWROUTE, &Request::new(0, &header).with(RTA_MULTIPATH, &paths));
        }
    }
}
