//! Netdevs with hardware behind them.

use super::{Found, Object, Place, driver};
use crate::number::decimal;
use crate::pci::{self, Gpus};
use crate::tree::Tree;
use model::{DeviceId, LinkLayer, Port, PortId};

/// `ARPHRD_ETHER`, `include/uapi/linux/if_arp.h`.
const ETHERNET: u64 = 1;

/// A netdev whose `device` link leads to hardware, or to what a hypervisor shows as such: not a bridge, bond, VLAN or
/// veth.
#[derive(Debug)]
pub(super) struct Netdev {
    pub name: String,
    pub ifindex: u32,
    /// Its device, below `devices/`.
    pub path: String,
    /// Which of the ports of its device it is, from 0.
    pub dev_port: u32,
}

/// Those of these netdevs that are Ethernet and have a device, the oldest first: where several share a function, the
/// function's own came before its representors.
pub(super) fn physical<'a>(tree: &Tree, netdevs: impl Iterator<Item = &'a Object>) -> Vec<Netdev> {
    let mut netdevs: Vec<_> = netdevs.filter_map(|netdev| read(tree, netdev)).collect();
    netdevs.sort_by_key(|netdev| netdev.ifindex);
    netdevs
}

fn read(tree: &Tree, netdev: &Object) -> Option<Netdev> {
    let Object { name, device } = netdev;
    let path = device.clone()?;
    let number = |file| tree.number(&format!("class/net/{name}/{file}"), decimal).ok();
    if number("type")? != ETHERNET || tree.exists(&format!("class/net/{name}/phy80211")) {
        return None;
    }
    let ifindex = ifindex(tree, name)?;
    let dev_port = number("dev_port")
        .and_then(|port| port.try_into().ok())
        .unwrap_or(0);
    Some(Netdev {
        name: name.clone(),
        ifindex,
        path,
        dev_port,
    })
}

/// Index of any netdev.
pub(super) fn ifindex(tree: &Tree, name: &str) -> Option<u32> {
    tree.number(&format!("class/net/{name}/ifindex"), decimal)
        .ok()?
        .try_into()
        .ok()
}

/// MTU of any netdev, in bytes.
pub(super) fn mtu(tree: &Tree, name: &str) -> Option<u32> {
    tree.number(&format!("class/net/{name}/mtu"), decimal)
        .ok()?
        .try_into()
        .ok()
}

/// Identity of a netdev that has none by its device.
pub(super) fn by_address(tree: &Tree, name: &str) -> Option<DeviceId> {
    tree.read_string(&format!("class/net/{name}/address"))
        .ok()
        .map(|address| DeviceId::mac(&address))
}

/// True if `gid` is the one that the kernel makes of the netdev's MAC address (`make_default_gid` of RDMA's
/// `roce_gid_mgmt.c`): link-local, with the address as modified EUI-64.
pub(super) fn has_gid(tree: &Tree, name: &str, gid: &str) -> bool {
    let address = tree.read_string(&format!("class/net/{name}/address"));
    address.is_ok_and(|address| default_gid(&address).as_deref() == Some(gid))
}

fn default_gid(address: &str) -> Option<String> {
    let bytes = address.split(':').map(|byte| u8::from_str_radix(byte, 16).ok());
    let mac: [u8; 6] = bytes.collect::<Option<Vec<_>>>()?.try_into().ok()?;
    let [vendor, device] = [&mac[..3], &mac[3..]];
    let mut interface = [vendor, &[0xff, 0xfe], device].concat();
    // The bit that tells a universal address from a local one is inverted.
    interface[0] ^= 2;
    let groups = interface
        .chunks(2)
        .map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]));
    Some(format!(
        "fe80:0000:0000:0000:{}",
        groups.collect::<Vec<_>>().join(":")
    ))
}

impl Netdev {
    /// The port of a netdev without RDMA.
    pub(super) fn port(&self, tree: &Tree, gpus: &Gpus) -> Found {
        let by_pci = pci::address(&self.path).map(DeviceId::pci);
        let by_name = || DeviceId::mac(&self.name);
        let place = Place::of(tree, gpus, &self.path);
        let port = Port {
            id: PortId {
                device: by_pci
                    .or_else(|| by_address(tree, &self.name))
                    .unwrap_or_else(by_name),
                number: self.dev_port.saturating_add(1),
            },
            device: self.name.clone(),
            netdev: Some(self.name.clone()),
            ifindex: Some(self.ifindex),
            rdma_index: None,
            driver: driver(tree, &self.path),
            firmware: None,
            board: None,
            guid: None,
            pci: place.pci,
            numa_node: place.numa_node,
            gpu: place.gpu,
            link_layer: LinkLayer::Ethernet,
            state: None,
            mtu: mtu(tree, &self.name),
            gids: Vec::new(),
        };
        Found {
            port,
            path: Some(self.path.clone()),
            otherwise: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_gid_is_made_of_the_address() {
        assert_eq!(
            default_gid("02:66:72:00:00:05").as_deref(),
            Some("fe80:0000:0000:0000:0066:72ff:fe00:0005")
        );
        assert_eq!(default_gid("02:66:72"), None);
        assert_eq!(default_gid("not an address"), None);
    }
}
