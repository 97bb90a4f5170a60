//! What the simulated server says of itself: names, places and addresses.

use crate::columns::DRIVER;
use crate::rail::Rail;
use crate::world::RAILS;
use model::{DeviceId, Gid, GidType, Gpu, LinkLayer, Pci, PcieLink, Port, PortId, PortState};

/// PCI buses of the NICs, four on each socket; the nearest GPU is three buses further, behind the same switch.
const BUSES: [u8; RAILS] = [0x18, 0x40, 0x4f, 0x5e, 0x9a, 0xc0, 0xce, 0xdc];
const GPU_BUS_OFFSET: u8 = 3;
const RAILS_PER_SOCKET: usize = RAILS / 2;
/// Bridges between a NIC and its GPU: the two downstream ports of their switch.
const BRIDGES: u8 = 2;
const FIRST_IFINDEX: u32 = 4;
const MTU: u32 = 9_000;
const PCIE: PcieLink = PcieLink {
    gigatransfers: 32.0,
    width: 16,
};
/// The words in brackets reach every place that shows a port.
const FIRMWARE: &str = "28.39.1002 (simulated)";
const BOARD: &str = "MT_0000000838";

/// The netdev index of a rail.
pub(crate) fn ifindex(rail: usize) -> u32 {
    FIRST_IFINDEX + number(rail)
}

/// The rail of a port of this server.
pub(crate) fn rail(port: &PortId) -> Option<usize> {
    (0..RAILS).find(|rail| id(*rail) == *port)
}

fn id(rail: usize) -> PortId {
    PortId {
        device: DeviceId::pci(&pci_address(BUSES[rail])),
        number: 1,
    }
}

fn pci_address(bus: u8) -> String {
    format!("0000:{bus:02x}:00.0")
}

fn number(rail: usize) -> u32 {
    u32::try_from(rail).expect("a server has few rails")
}

/// The port of a rail, as it is now.
pub(crate) fn port(rail: usize, state: &Rail) -> Port {
    let bus = BUSES[rail];
    let netdev = format!("enp{bus}s0np0");
    Port {
        id: id(rail),
        device: format!("mlx5_{rail}"),
        ifindex: Some(ifindex(rail)),
        rdma_index: Some(number(rail)),
        driver: DRIVER.to_owned(),
        firmware: Some(FIRMWARE.to_owned()),
        board: Some(BOARD.to_owned()),
        guid: Some(format!("b83f:d203:00{rail:02x}:1c00")),
        pci: Some(Pci {
            address: pci_address(bus),
            current: Some(PCIE),
            max: Some(PCIE),
        }),
        numa_node: Some(number(rail / RAILS_PER_SOCKET)),
        gpu: Some(Gpu {
            address: pci_address(bus + GPU_BUS_OFFSET),
            bridges: Some(BRIDGES),
        }),
        link_layer: LinkLayer::Ethernet,
        state: Some(if state.carrier {
            PortState::Active
        } else {
            PortState::Down
        }),
        mtu: Some(MTU),
        gids: gids(rail, &netdev),
        netdev: Some(netdev),
    }
}

/// The usual order of mlx5: link-local, then IPv4, each for both versions of `RoCE`.
fn gids(rail: usize, netdev: &str) -> Vec<Gid> {
    let link_local = format!("fe80:0000:0000:0000:ba3f:d2ff:fe{rail:02x}:1c00");
    let ipv4 = format!("0000:0000:0000:0000:0000:ffff:0a{:02x}:000b", rail + 1);
    [
        (&link_local, GidType::V1),
        (&link_local, GidType::V2),
        (&ipv4, GidType::V1),
        (&ipv4, GidType::V2),
    ]
    .into_iter()
    .zip(0..)
    .map(|((gid, kind), index)| Gid {
        index,
        gid: gid.clone(),
        kind,
        netdev: Some(netdev.to_owned()),
    })
    .collect()
}
