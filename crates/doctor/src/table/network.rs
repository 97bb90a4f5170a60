//! GIDs, addresses, routes, neighbours.

use crate::check::{Area, Check, Severity};

const GIDS: &str = "the GID table in sysfs; no right needed";
const ROUTES: &str = "rtnetlink of this process's network namespace; no right needed";

pub(crate) const GID_MISSING: Check = Check {
    id: "gid_missing",
    title: "No GID is RoCE v2 over IPv4",
    area: Area::Network,
    severity: Severity::Error,
    reads: GIDS,
    fires: "A RoCE port with a carrier has GIDs, and none of RoCE v2 with an IPv4 address. Not if it has one of RoCE v2 with a global IPv6 address.",
    why: "RoCE v2 is what routers and ECMP know. A job that asks for IPv4 finds no address; one that takes another index uses RoCE v1, which no router forwards.",
    advice: "Give the netdev its address, bring it up, and see that the device's mode is RoCE v2.",
    commands: &[
        "ip addr show dev {netdev}",
        "cma_roce_mode -d {device} -m 2",
        "rdma link show {device}/1",
    ],
};

pub(crate) const CM_ROCE_MODE: Check = Check {
    id: "cm_roce_mode",
    title: "The connection manager uses RoCE v1",
    area: Area::Network,
    severity: Severity::Warning,
    reads: "default_roce_mode of rdma_cm (configfs; root)",
    fires: "default_roce_mode of a RoCE port is IB/RoCE v1, and the port has GIDs of RoCE v2.",
    why: "What asks the connection manager (storage, many MPIs, ib_send_bw -R) talks RoCE v1, which no router forwards and no switch marks. NCCL chooses its GID itself.",
    advice: "Set RoCE v2, which is what the kernel takes by itself where the NIC has it.",
    commands: &["cma_roce_mode -d {device} -m 2"],
};

pub(crate) const GID_INDEX_DIFFERS: Check = Check {
    id: "gid_index_differs",
    title: "No GID index is RoCE v2 over IPv4 on every rail",
    area: Area::Network,
    severity: Severity::Error,
    reads: GIDS,
    fires: "Every rail of a kind has such a GID, and there is no index at which all have one.",
    why: "NCCL_IB_GID_INDEX is one number for all rails: on some of them it names RoCE v1, IPv6 or nothing, and connections time out. NCCL 2.21 and later chooses by itself if it is not set.",
    advice: "Remove what shifted the table (an address that was added twice or in another order, a VLAN), or take the netdev down and up to have it built anew; or leave NCCL_IB_GID_INDEX unset with a recent NCCL.",
    commands: &[
        "for i in 0 1 2 3 4 5 6 7; do cat /sys/class/infiniband/{device}/ports/1/gids/$i; done",
        "ip link set {netdev} down && ip link set {netdev} up",
    ],
};

pub(crate) const SUBNET_SHARED: Check = Check {
    id: "subnet_shared",
    title: "Several rails are in one subnet and share its route",
    area: Area::Network,
    severity: Severity::Warning,
    reads: ROUTES,
    fires: "Two rails have addresses in one subnet, and one of them has no rule of its own for its address. A rail is judged by its IPv4 address, by IPv6 if it has none.",
    why: "The kernel takes one route for the subnet, so that ARP or neighbour discovery, ICMP and TCP of all these rails leave by one of them, and neighbours are resolved there. RoCE connections are set up with the wrong MAC address or not at all (ARP flux).",
    advice: "Give each rail its own subnet; or a routing table and a rule for its address, and set arp_ignore=1, arp_announce=2.",
    commands: &[
        "ip {family} route add {network} dev {netdev} table {table}",
        "ip {family} rule add from {address} table {table}",
        "sysctl -w net.ipv4.conf.{netdev}.arp_ignore=1 net.ipv4.conf.{netdev}.arp_announce=2",
    ],
};

pub(crate) const SOURCE_ROUTE_MISSING: Check = Check {
    id: "source_route_missing",
    title: "A rail has no way to other subnets, unlike its siblings",
    area: Area::Network,
    severity: Severity::Error,
    reads: ROUTES,
    fires: "Most rails of a kind have a route with a gateway, by a rule for their address or in the main table, and this one has none. Of IPv4, or of IPv6 where a rail has no IPv4 address.",
    why: "Packets to another subnet leave by another rail, whose switch does not expect this source address, or not at all: RoCE within the rack works, across racks it times out.",
    advice: "Add the table and the rule that the other rails have.",
    commands: &[
        "ip {family} route add default via GATEWAY dev {netdev} table {table}",
        "ip {family} rule add from {address} table {table}",
    ],
};

pub(crate) const STRICT_SOURCE: Check = Check {
    id: "strict_source",
    title: "The rail drops packets whose answer would leave by another rail",
    area: Area::Network,
    severity: Severity::Error,
    reads: "rp_filter of the netdev and of all, by rtnetlink (RTM_GETNETCONF), and routes; no right needed",
    fires: "rp_filter is 1 (strict), and the rail has no way of its own: `subnet_shared` or `source_route_missing` fires for it as well.",
    why: "The kernel drops IPv4 packets from addresses that it would answer by another interface: ARP, ping and the connection manager fail on all rails but one, while RDMA that is set up already goes on.",
    advice: "Give the rail its table and rule; until then filter loosely. The greater setting of the netdev and of all holds.",
    commands: &[
        "sysctl net.ipv4.conf.all.rp_filter net.ipv4.conf.{netdev}.rp_filter",
        "sysctl -w net.ipv4.conf.{netdev}.rp_filter=2",
        "nstat -az TcpExtIPReversePathFilter",
    ],
};

pub(crate) const HOP_LIMIT_LOW: Check = Check {
    id: "hop_limit_low",
    title: "Packets to other subnets may cross too few routers",
    area: Area::Network,
    severity: Severity::Warning,
    reads: "routes by rtnetlink, and net.ipv4.ip_default_ttl; no right needed",
    fires: "A route of the rail with a gateway has a hop limit below 6, or it has none and the one of the node is. A fabric of three tiers has five routers on the way.",
    why: "A router that counts the hop limit down to nothing drops the packet: what is near answers, what is far times out. RDMA connections that the connection manager sets up take it from the route; NCCL sets its own.",
    advice: "Take the metric off the route, or set the usual 64.",
    commands: &[
        "ip {family} route show table all dev {netdev}",
        "sysctl -w net.ipv4.ip_default_ttl=64",
    ],
};

pub(crate) const NEIGHBOUR_FAILED: Check = Check {
    id: "neighbour_failed",
    title: "A gateway or peer of the rail does not answer",
    area: Area::Network,
    severity: Severity::Warning,
    reads: ROUTES,
    fires: "A gateway of the rail is a neighbour that failed, or failed neighbours are all that the rail has: by ARP, or by neighbour discovery where the rail has no IPv4 address.",
    why: "Without the MAC address of the next hop no RDMA connection is set up; it looks like a timeout.",
    advice: "Check the switch port's VLAN, the gateway's address, and that the cable leads to the right rail.",
    commands: &["ip neigh show dev {netdev}", "ping -c 1 -I {netdev} {neighbour}"],
};

pub(crate) const BOND_HASH: Check = Check {
    id: "bond_hash",
    title: "The bond chooses its link by MAC addresses alone",
    area: Area::Network,
    severity: Severity::Warning,
    reads: "bonding/mode and bonding/xmit_hash_policy of the bond in sysfs; no right needed",
    fires: "The port's netdev is a bond, or a member of one, of mode balance-xor or 802.3ad whose `xmit_hash_policy` is layer2.",
    why: "All packets to one next hop, such as the gateway of the rail, leave by one link of the bond, however many flows there are: one link is full, the other idle.",
    advice: "Hash by addresses and ports, and have the switch do the same for what it sends.",
    commands: &[
        "cat /proc/net/bonding/{bond}",
        "ip link set dev {bond} type bond xmit_hash_policy layer3+4",
    ],
};
