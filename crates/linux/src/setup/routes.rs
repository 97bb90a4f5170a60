//! IPv4 addresses, routes, rules and neighbours by rtnetlink: `include/uapi/linux/rtnetlink.h`, `if_addr.h`, `fib_rules.h`,
//! `neighbour.h`.

use crate::netlink::{Attribute, Attributes, DUMP, Message, Request, Socket};
use model::{Address, Neighbour, Route, Routing, Rule};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::net::Ipv4Addr;

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;
const AF_INET: u8 = 2;
/// `struct ifaddrmsg`, `rtmsg`, `ndmsg` and `fib_rule_hdr`.
const ADDRESS_HEADER: usize = 8;
const HEADER: usize = 12;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTN_UNICAST: u8 = 1;
/// `struct rtnexthop`: length, flags, weight, interface.
const NEXT_HOP: usize = 8;
const FRA_SRC: u16 = 2;
const FRA_TABLE: u16 = 15;
const TO_TABLE: u8 = 1;
const NDA_DST: u16 = 1;
/// `NUD_FAILED`, and the states of a neighbour that is not looked for by ARP: `NUD_NOARP`, `NUD_PERMANENT`.
const FAILED: u16 = 0x20;
const FIXED: u16 = 0x40 | 0x80;
/// More entries of a kind than a node has for its rails; a router's table is not read to its end.
const MOST: usize = 4096;

/// All of this process's network namespace; `None` if the kernel does not tell.
pub(super) fn read() -> Option<Routing> {
    let asked = || -> Result<Routing, Errno> {
        let mut socket = Socket::open(NlFamily::Route, &[], DUMP)?;
        let mut routing = Routing::default();
        for kind in [RTM_GETADDR, RTM_GETROUTE, RTM_GETRULE, RTM_GETNEIGH] {
            let mut header = [0; HEADER];
            header[0] = AF_INET;
            let length = if kind == RTM_GETADDR {
                ADDRESS_HEADER
            } else {
                HEADER
            };
            socket.dump(&mut Request::dump(kind, &header[..length]), |message| {
                learn(message, &mut routing);
            })?;
        }
        Ok(routing)
    };
    asked()
        .inspect_err(|errno| tracing::debug!(%errno, "rtnetlink does not tell routes"))
        .ok()
}

fn learn(message: Message<'_>, routing: &mut Routing) {
    let payload = message.payload;
    if payload.first() != Some(&AF_INET) {
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

fn ipv4(attribute: Attribute<'_>) -> Option<Ipv4Addr> {
    <[u8; 4]>::try_from(attribute.value).ok().map(Ipv4Addr::from)
}

fn index_at(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*payload.get(at..)?.first_chunk()?))
}

/// A prefix of an IPv4 network.
fn prefix(bits: u8) -> Option<u8> {
    (bits <= 32).then_some(bits)
}

fn address(payload: &[u8]) -> Option<Address> {
    let attributes = Attributes::behind(payload, ADDRESS_HEADER);
    // At a point-to-point interface the first is the peer's.
    let own = attributes
        .find_kind(IFA_LOCAL)
        .or(attributes.find_kind(IFA_ADDRESS))?;
    Some(Address {
        ifindex: index_at(payload, 4)?,
        address: ipv4(own)?,
        prefix: prefix(*payload.get(1)?)?,
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
        .map_or(Some(Ipv4Addr::UNSPECIFIED), ipv4);
    let (Some(to), Some(bits)) = (to, prefix(bits)) else {
        return;
    };
    let table = attributes
        .find_kind(RTA_TABLE)
        .and_then(|table| table.u32())
        .unwrap_or(table.into());
    let mut add = |ifindex, gateway| {
        let route = Route {
            to: (to, bits),
            gateway,
            ifindex,
            table,
        };
        push(found, Some(route));
    };
    if let Some(ifindex) = attributes.find_kind(RTA_OIF).and_then(|index| index.u32()) {
        add(ifindex, attributes.find_kind(RTA_GATEWAY).and_then(ipv4));
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
        let gateway = Attributes::behind(hop, NEXT_HOP)
            .find_kind(RTA_GATEWAY)
            .and_then(ipv4);
        add(ifindex, gateway);
        // A length of 0 would never end.
        let next = length.next_multiple_of(4).max(NEXT_HOP);
        hops = hops.get(next..).unwrap_or_default();
    }
}

fn rule(payload: &[u8]) -> Option<Rule> {
    let attributes = Attributes::behind(payload, HEADER);
    let (bits, table, action) = (*payload.get(2)?, *payload.get(4)?, *payload.get(7)?);
    if action != TO_TABLE {
        return None;
    }
    let full = attributes.find_kind(FRA_TABLE).and_then(|table| table.u32());
    Some(Rule {
        from: (ipv4(attributes.find_kind(FRA_SRC)?)?, prefix(bits)?),
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
        address: ipv4(Attributes::behind(payload, HEADER).find_kind(NDA_DST)?)?,
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
        learn(message, &mut routing);
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
            to: (Ipv4Addr::new(10, 0, 0, 0), 8),
            gateway: Some(Ipv4Addr::new(10, 1, last, 1)),
            ifindex,
            table: 254,
        };
        assert_eq!(routes, [route(4, 0), route(5, 1)]);
    }

    #[test]
    fn the_kernel_tells_what_was_set() {
        netns::within(|| {
            netns::ip("link add rail0 type veth peer name peer0");
            netns::ip("address add 10.1.0.2/24 dev rail0");
            netns::ip("link set rail0 up");
            netns::ip("link set peer0 up");
            netns::ip("route add default via 10.1.0.1 dev rail0 table 1000");
            netns::ip("rule add from 10.1.0.2 table 1000");
            netns::ip("neighbour add 10.1.0.9 dev rail0 nud failed");
            let ifindex = netns::port("rail0").ifindex.unwrap();
            let routing = read().unwrap();
            let own = Ipv4Addr::new(10, 1, 0, 2);
            let address = Address {
                ifindex,
                address: own,
                prefix: 24,
            };
            assert!(routing.addresses.contains(&address), "{routing:?}");
            let rule = Rule {
                from: (own, 32),
                table: 1000,
            };
            assert_eq!(routing.rules, [rule]);
            let default = Route {
                to: (Ipv4Addr::UNSPECIFIED, 0),
                gateway: Some(Ipv4Addr::new(10, 1, 0, 1)),
                ifindex,
                table: 1000,
            };
            assert!(routing.routes.contains(&default), "{routing:?}");
            let local = routing
                .routes
                .iter()
                .any(|route| route.to == (Ipv4Addr::new(10, 1, 0, 0), 24));
            assert!(local, "{routing:?}");
            let neighbour = Neighbour {
                ifindex,
                address: Ipv4Addr::new(10, 1, 0, 9),
                failed: true,
            };
            assert!(routing.neighbours.contains(&neighbour), "{routing:?}");
        });
    }

    proptest! {
        #[test]
        fn any_message_is_survived(kind in 20u16..34, payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut payload = payload;
            payload.insert(0, AF_INET);
            learn(Message { kind, sequence: 0, payload: &payload }, &mut Routing::default());
        }

        #[test]
        fn any_paths_are_survived(paths in proptest::collection::vec(any::<u8>(), 0..200)) {
            let header = [AF_INET, 8, 0, 0, 254, 3, 0, RTN_UNICAST, 0, 0, 0, 0];
            told(RTM_NEWROUTE, &Request::new(0, &header).with(RTA_MULTIPATH, &paths));
        }
    }
}
