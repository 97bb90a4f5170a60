//! What the simulated server says of itself: names, places and addresses.

use crate::rail::Rail;
use crate::setup::Setup;
use crate::world::World;
use model::{DeviceId, Gid, GidType, Gpu, LinkLayer, Pci, PcieLink, Port, PortId, PortState};

/// PCI buses of the NICs of a domain, four on each socket of a server of eight; each further eight are a domain of their own.
const BUSES: [u8; 8] = [0x18, 0x40, 0x4f, 0x5e, 0x9a, 0xc0, 0xce, 0xdc];
/// The GPU of a NIC is on another bus of the same switch, this much further.
const GPU_BUS_OFFSET: u8 = 3;
/// Bridges between a NIC and its GPU: a downstream port of their switch, its upstream port, and another downstream port.
const BRIDGES: u8 = 3;
const SOCKETS: usize = 2;
const FIRST_IFINDEX: u32 = 4;
const MTU: u32 = 9_000;
const PCIE: PcieLink = PcieLink {
    gigatransfers: 32.0,
    width: 16,
};

/// Where a NIC is on the PCI bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) domain: usize,
    pub(crate) bus: u8,
}

impl Place {
    pub(crate) fn of(rail: usize) -> Self {
        Self {
            domain: rail / BUSES.len(),
            bus: BUSES[rail % BUSES.len()],
        }
    }

    /// The address of function 0 of a device on a bus of the domain.
    pub(crate) fn address(self, bus: u8, device: u8) -> String {
        format!("{:04x}:{bus:02x}:{device:02x}.0", self.domain)
    }

    pub(crate) fn nic(self) -> String {
        self.address(self.bus, 0)
    }

    pub(crate) fn gpu(self) -> String {
        self.address(self.bus + GPU_BUS_OFFSET, 0)
    }

    /// As systemd names it: the domain only where it is not 0.
    fn netdev(self) -> String {
        let domain = if self.domain == 0 {
            String::new()
        } else {
            format!("P{}", self.domain)
        };
        format!("en{domain}p{}s0np0", self.bus)
    }
}

/// The netdev index of a rail.
pub(crate) fn ifindex(rail: usize) -> u32 {
    FIRST_IFINDEX + number(rail)
}

/// The rail of a port of this server.
pub(crate) fn rail(setup: Setup, port: &PortId) -> Option<usize> {
    (0..setup.ports.get()).find(|rail| id(*rail) == *port)
}

fn id(rail: usize) -> PortId {
    PortId {
        device: DeviceId::pci(&Place::of(rail).nic()),
        number: 1,
    }
}

fn number(rail: usize) -> u32 {
    u32::try_from(rail).expect("a server has few rails")
}

/// Every port, as it is now.
pub(crate) fn ports(world: &World) -> Vec<Port> {
    let states = world.rails.iter().enumerate();
    states
        .map(|(rail, state)| port(world.setup, rail, state))
        .collect()
}

fn port(setup: Setup, rail: usize, state: &Rail) -> Port {
    let place = Place::of(rail);
    let make = setup.nic.make();
    let netdev = place.netdev();
    let ports = setup.ports.get();
    Port {
        id: id(rail),
        device: format!("{}{rail}", make.device),
        ifindex: Some(ifindex(rail)),
        rdma_index: Some(number(rail) + state.driver.registrations() * number(ports)),
        driver: make.driver.to_owned(),
        firmware: Some(make.firmware.to_owned()),
        board: make.board.map(str::to_owned),
        guid: Some(format!("b83f:d203:00{rail:02x}:1c00")),
        pci: Some(Pci {
            address: place.nic(),
            current: Some(PCIE),
            max: Some(PCIE),
        }),
        numa_node: Some(number(rail * SOCKETS / ports)),
        gpu: Some(Gpu {
            address: place.gpu(),
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

/// MAC address of the netdev of a rail, from which its GUID and its link-local address follow.
pub(crate) fn mac(rail: usize) -> String {
    format!("b8:3f:d2:{rail:02x}:1c:00")
}
