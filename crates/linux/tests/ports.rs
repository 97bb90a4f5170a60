//! Ports of a copied sysfs.
#![allow(clippy::disallowed_methods)] // the tests write the files that are read

mod support;

use model::{Gid, GidType, Gpu, Host, LinkLayer, Pci, PcieLink, PortState};
use support::{Sysfs, guid};

#[test]
fn a_server_with_eight_nics() {
    let sysfs = Sysfs::new();
    // Not in order: neither names nor creation decide.
    for i in [3, 0, 7, 1, 2, 6, 5, 4] {
        sysfs.nic(i);
    }
    let ports = sysfs.ports();
    let devices: Vec<_> = ports.iter().map(|port| port.device.as_str()).collect();
    assert_eq!(
        devices,
        [
            "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"
        ]
    );
    let port = &ports[5];
    assert_eq!(port.id.to_string(), "0000:63:00.0/1");
    assert_eq!(port.netdev.as_deref(), Some("rail5"));
    assert_eq!(port.ifindex, Some(7));
    assert_eq!(port.rdma_index, None, "a copy has no RDMA netlink");
    assert_eq!(port.driver, "mlx5_core");
    assert_eq!(port.firmware.as_deref(), Some("28.39.1002"));
    assert_eq!(port.board.as_deref(), Some("MT_0000000838"));
    assert_eq!(port.guid, Some(guid("mlx5_5")));
    let link = Some(PcieLink {
        gigatransfers: 32.0,
        width: 16,
    });
    assert_eq!(
        port.pci,
        Some(Pci {
            address: "0000:63:00.0".into(),
            current: link,
            max: link
        })
    );
    assert_eq!(port.numa_node, Some(1));
    assert_eq!(
        port.gpu,
        Some(Gpu {
            address: "0000:64:00.0".into(),
            bridges: Some(3)
        })
    );
    assert_eq!(port.link_layer, LinkLayer::Ethernet);
    assert_eq!(port.state, Some(PortState::Active));
    assert_eq!(port.mtu, Some(9000));
    let gid = |index, kind| Gid {
        index,
        gid: "fe80::1".into(),
        kind,
        netdev: Some("rail5".into()),
    };
    assert_eq!(port.gids, [gid(0, GidType::V1), gid(1, GidType::V2)]);
}

#[test]
fn two_passes_over_the_same_tree_are_equal() {
    let sysfs = Sysfs::new();
    (0..3).for_each(|i| drop(sysfs.nic(i)));
    let kernel = sysfs.kernel();
    assert_eq!(kernel.ports(), kernel.ports());
}

#[test]
fn devices_come_and_go_without_a_restart() {
    let sysfs = Sysfs::new();
    sysfs.nic(0);
    let kernel = sysfs.kernel();
    sysfs.nic(1);
    assert_eq!(kernel.ports().unwrap().len(), 2);
    sysfs.remove("class/infiniband/mlx5_0");
    sysfs.remove("class/net/rail0");
    assert_eq!(kernel.ports().unwrap()[0].device, "mlx5_1");
}

#[test]
fn nothing_of_an_excluded_device_is_opened() {
    let sysfs = Sysfs::new();
    (0..2).for_each(|i| drop(sysfs.nic(i)));
    let address = sysfs.port("mlx5_0").pci.unwrap().address;
    // Opening a pipe that nobody writes into waits for ever.
    for path in ["class/infiniband/mlx5_0/node_guid", "class/net/rail0/type"] {
        sysfs.remove(path);
        sysfs.pipe(path);
    }
    for name in ["mlx5_0", "rail0", &address] {
        let listed = sysfs.kernel().ports_but(&|other| other == name).unwrap();
        let devices: Vec<_> = listed.iter().map(|port| port.device.as_str()).collect();
        assert_eq!(devices, ["mlx5_1"], "without {name}");
    }
}

#[test]
fn without_an_rdma_driver_ethernet_is_watched() {
    let sysfs = Sysfs::new();
    let device = sysfs.function(
        "pci0000:00/0000:00:02.0/0000:01:00.0",
        "ice",
        "0x020000",
        "0x8086",
        -1,
    );
    sysfs.netdev(&device, "eth0", 2, 0);
    sysfs.remove("class/infiniband");
    let port = sysfs.port("eth0");
    assert_eq!(port.id.to_string(), "0000:01:00.0/1");
    assert_eq!(
        (port.driver.as_str(), port.netdev.as_deref()),
        ("ice", Some("eth0"))
    );
    assert_eq!(
        (port.rdma_index, port.guid, port.state, port.numa_node),
        (None, None, None, None)
    );
}

#[test]
fn a_directory_that_is_no_sysfs_is_an_error_that_says_what_to_do() {
    let sysfs = Sysfs::new();
    sysfs.remove("class");
    let error = sysfs.kernel().ports().unwrap_err();
    assert!(error.contains("--sysfs"), "{error}");
    assert!(
        linux::Kernel::new(&linux::Options {
            sysfs: sysfs.path("gone"),
            ..Default::default()
        })
        .is_err()
    );
}

#[test]
fn only_netdevs_with_hardware_are_ports() {
    let sysfs = Sysfs::new();
    let device = sysfs.nic(0);
    sysfs.virtual_netdev("lo", 1);
    sysfs.virtual_netdev("br0", 10);
    sysfs.file("class/net/bonding_masters", "bond0");
    // A representor has the `device` of the function that has the RDMA device.
    sysfs.netdev(&device, "pf0vf0", 11, 0);
    // IPoIB, and a wireless card.
    let other = sysfs.function("pci0000:00/0000:00:05.0", "iwlwifi", "0x028000", "0x8086", -1);
    sysfs.netdev(&other, "ib0", 12, 0);
    sysfs.file("class/net/ib0/type", "32");
    sysfs.netdev(&other, "wlan0", 13, 0);
    sysfs.directory("class/net/wlan0/phy80211");
    assert_eq!(sysfs.ports().len(), 1);
}

#[test]
fn representors_do_not_take_the_place_of_their_function() {
    let sysfs = Sysfs::new();
    let device = sysfs.function(
        "pci0000:00/0000:00:02.0/0000:01:00.0",
        "mlx5_core",
        "0x020000",
        "0x15b3",
        0,
    );
    sysfs.netdev(&device, "uplink", 4, 0);
    sysfs.netdev(&device, "a_representor", 9, 0);
    let ports = sysfs.ports();
    assert_eq!(ports.len(), 1);
    assert_eq!(ports[0].device, "uplink");
    assert_eq!(ports[0].id.device.as_str(), "0000:01:00.0");
}

#[test]
fn two_ports_of_one_function_are_told_apart_by_number() {
    let sysfs = Sysfs::new();
    let device = sysfs.function(
        "pci0000:00/0000:00:02.0/0000:01:00.0",
        "mlx4_core",
        "0x020000",
        "0x15b3",
        0,
    );
    sysfs.netdev(&device, "eth0", 2, 0);
    sysfs.netdev(&device, "eth1", 3, 1);
    let rdma = sysfs.rdma(&device, "mlx4_0", "eth0");
    sysfs.rdma_port(&rdma, 2, "eth1");
    let ports = sysfs.ports();
    let found: Vec<_> = ports
        .iter()
        .map(|port| (port.id.to_string(), port.netdev.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            ("0000:01:00.0/1".to_owned(), Some("eth0")),
            ("0000:01:00.0/2".to_owned(), Some("eth1"))
        ]
    );
}

#[test]
fn under_a_bond_each_port_keeps_its_own_netdev() {
    let sysfs = Sysfs::new();
    let first = sysfs.function(
        "pci0000:00/0000:00:02.0/0000:01:00.0",
        "mlx5_core",
        "0x020000",
        "0x15b3",
        0,
    );
    let second = sysfs.function(
        "pci0000:00/0000:00:02.0/0000:01:00.1",
        "mlx5_core",
        "0x020000",
        "0x15b3",
        0,
    );
    sysfs.netdev(&first, "eth0", 2, 0);
    sysfs.netdev(&second, "eth1", 3, 0);
    sysfs.virtual_netdev("bond0", 9);
    sysfs.rdma(&first, "mlx5_bond_0", "bond0");
    let ports = sysfs.ports();
    let found: Vec<_> = ports
        .iter()
        .map(|port| (port.device.as_str(), port.netdev.as_deref()))
        .collect();
    assert_eq!(found, [("mlx5_bond_0", Some("eth0")), ("eth1", Some("eth1"))]);
    assert_eq!(ports[0].gids[0].netdev.as_deref(), Some("bond0"));
}

#[test]
fn software_devices_are_themselves_whatever_they_are_made_on() {
    let sysfs = Sysfs::new();
    let device = sysfs.nic(0);
    sysfs.virtual_netdev("veth0", 20);
    sysfs.file("class/infiniband/rxe0/parent", "veth0");
    sysfs.file("class/infiniband/rxe0/ports/1/link_layer", "Ethernet");
    // Before 5.9 the link of a software device was that of its netdev.
    let siw = sysfs.rdma(&device, "siw0", "rail0");
    sysfs.file(&format!("{siw}/node_desc"), "Software iWARP stack");
    let rxe = sysfs.port("rxe0");
    assert_eq!(
        (rxe.driver.as_str(), rxe.netdev.as_deref(), rxe.ifindex),
        ("rxe", Some("veth0"), Some(20))
    );
    assert_eq!(rxe.pci, None);
    let siw = sysfs.port("siw0");
    assert_eq!(siw.driver, "siw");
    assert_eq!(siw.id.device.as_str(), format!("guid-{}", guid("siw0")));
    assert_eq!(sysfs.port("mlx5_0").id.device.as_str(), "0000:13:00.0");
}

#[test]
fn a_subfunction_is_not_its_function() {
    let sysfs = Sysfs::new();
    let device = sysfs.nic(0);
    let subfunction = format!("{device}/mlx5_core.sf.4");
    sysfs.netdev(&subfunction, "sf4", 30, 0);
    sysfs.directory("bus/auxiliary/drivers/mlx5_core.sf");
    sysfs.link(
        &format!("{subfunction}/driver"),
        "bus/auxiliary/drivers/mlx5_core.sf",
    );
    sysfs.rdma(&subfunction, "mlx5_8", "sf4");
    let port = sysfs.port("mlx5_8");
    assert_eq!(port.id.device.as_str(), format!("guid-{}", guid("mlx5_8")));
    assert_eq!(port.pci.unwrap().address, "0000:13:00.0");
    assert_eq!(
        (port.netdev.as_deref(), port.driver.as_str()),
        (Some("sf4"), "mlx5_core")
    );
    assert_eq!(sysfs.ports().len(), 2);
}

#[test]
fn two_rdma_devices_of_one_function_have_identities_of_their_own() {
    let sysfs = Sysfs::new();
    let device = sysfs.nic(0);
    sysfs.rdma(&device, "mlx5_9", "rail0");
    assert_eq!(sysfs.port("mlx5_0").id.device.as_str(), "0000:13:00.0");
    assert_eq!(
        sysfs.port("mlx5_9").id.device.as_str(),
        format!("guid-{}", guid("mlx5_9"))
    );
}

#[test]
fn an_infiniband_port_is_listed_without_a_look_at_it() {
    let sysfs = Sysfs::new();
    sysfs.nic(0);
    sysfs.file("class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand");
    let port = sysfs.port("mlx5_0");
    assert_eq!((port.link_layer, port.state), (LinkLayer::InfiniBand, None));
    assert!(port.gids.is_empty());
}

#[test]
fn one_odd_device_does_not_cost_the_others() {
    let sysfs = Sysfs::new();
    sysfs.nic(0);
    // Without ports, without anything, a file among the devices, a link that leads nowhere.
    sysfs.directory("class/infiniband/irdma0");
    sysfs.file("class/infiniband/abi_version", "1");
    sysfs.link("class/infiniband/gone", "devices/gone");
    sysfs.link("class/net/gone", "devices/gone");
    // Odd files of a healthy device.
    sysfs.file("class/infiniband/mlx5_0/node_guid", "0000:0000:0000:0000");
    sysfs.file("class/infiniband/mlx5_0/fw_ver", &"x".repeat(5000));
    sysfs.break_file("class/infiniband/mlx5_0/board_id");
    sysfs.directory("class/infiniband/mlx5_0/ports/power");
    sysfs.file("class/net/rail0/mtu", "-1");
    let port = sysfs.port("mlx5_0");
    assert_eq!(
        (port.guid, port.firmware, port.board, port.mtu),
        (None, None, None, None)
    );
    assert_eq!(port.netdev.as_deref(), Some("rail0"));
}

#[test]
fn a_hole_in_the_gid_table_is_passed_over() {
    let sysfs = Sysfs::new();
    sysfs.nic(0);
    let port = "class/infiniband/mlx5_0/ports/1";
    sysfs.file(
        &format!("{port}/gids/6"),
        "0000:0000:0000:0000:0000:ffff:0a00:0001",
    );
    sysfs.file(&format!("{port}/gid_attrs/types/6"), "RoCE v2");
    let indexes: Vec<_> = sysfs.port("mlx5_0").gids.iter().map(|gid| gid.index).collect();
    assert_eq!(indexes, [0, 1, 6]);
}

#[test]
fn a_link_that_is_down_is_a_port_that_is_down() {
    let sysfs = Sysfs::new();
    sysfs.nic(0);
    sysfs.file("class/net/rail0/operstate", "down");
    assert_eq!(sysfs.port("mlx5_0").state, Some(PortState::Down));
    sysfs.file("class/net/rail0/flags", "0x1002");
    assert_eq!(sysfs.port("mlx5_0").state, Some(PortState::Down));
}

#[test]
fn a_console_is_no_gpu_and_an_accelerator_is() {
    let sysfs = Sysfs::new();
    let nic = sysfs.function(
        "pci0000:00/0000:00:02.0/0000:01:00.0",
        "bnxt_en",
        "0x020000",
        "0x14e4",
        0,
    );
    sysfs.netdev(&nic, "eth0", 2, 0);
    sysfs.function(
        "pci0000:00/0000:00:03.0/0000:02:00.0",
        "ast",
        "0x030000",
        "0x1a03",
        0,
    );
    assert_eq!(sysfs.port("eth0").gpu, None);
    sysfs.function(
        "pci0000:00/0000:00:04.0/0000:03:00.0",
        "amdgpu",
        "0x120000",
        "0x1002",
        0,
    );
    assert_eq!(
        sysfs.port("eth0").gpu,
        Some(Gpu {
            address: "0000:03:00.0".into(),
            bridges: None
        })
    );
}
