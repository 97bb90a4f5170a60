//! Counters of a copied sysfs.
#![allow(clippy::disallowed_methods)] // the tests write the files that are read

mod support;

use model::{ABSENT, Host, Opened, Read, SourceKind};
use support::{HW_COUNTERS, PORT_COUNTERS, Sysfs, read, value};

const PORT: &str = "class/infiniband/mlx5_0/ports/1";

fn one_nic() -> Sysfs {
    let sysfs = Sysfs::new();
    sysfs.nic(0);
    sysfs
}

#[test]
fn hw_counters_come_from_their_files_without_the_setting_among_them() {
    let sysfs = one_nic();
    let mut source = sysfs.active("mlx5_0", SourceKind::HwCounters);
    let row = read(&mut *source);
    assert_eq!(row.len(), HW_COUNTERS.len());
    for (i, name) in HW_COUNTERS.iter().enumerate() {
        assert_eq!(value(&row, name), 100 + i as u64, "{name}");
    }
    sysfs.file(&format!("{PORT}/hw_counters/np_cnp_sent"), "18446744073709551614");
    assert_eq!(value(&read(&mut *source), "np_cnp_sent"), u64::MAX - 1);
}

#[test]
fn the_catalogue_is_asked_for_the_driver_that_the_link_names() {
    let source = one_nic().active("mlx5_0", SourceKind::HwCounters);
    let column = source
        .schema()
        .columns
        .iter()
        .find(|column| &*column.name == "np_cnp_sent")
        .unwrap();
    assert_eq!(column.meaning.unwrap().signal().as_str(), "cnp.tx");
}

#[test]
fn a_file_that_fails_is_one_absent_cell_and_is_left_alone() {
    let sysfs = one_nic();
    let mut source = sysfs.active("mlx5_0", SourceKind::HwCounters);
    let file = format!("{PORT}/hw_counters/out_of_sequence");
    sysfs.file(&file, "nonsense");
    let row = read(&mut *source);
    assert_eq!(value(&row, "out_of_sequence"), ABSENT);
    assert_eq!(value(&row, "np_cnp_sent"), 103);
    sysfs.file(&file, "7");
    assert_eq!(
        value(&read(&mut *source), "out_of_sequence"),
        ABSENT,
        "not tried again for ten seconds"
    );
}

#[test]
fn a_file_that_fails_from_the_start_keeps_its_column() {
    let sysfs = one_nic();
    sysfs.break_file(&format!("{PORT}/counters/port_rcv_data"));
    let row = read(&mut *sysfs.active("mlx5_0", SourceKind::PortCounters));
    assert_eq!(value(&row, "port_rcv_data"), ABSENT);
    assert_eq!(value(&row, "port_xmit_data"), 200);
}

#[test]
fn all_files_that_fail_are_a_missing_row() {
    let sysfs = one_nic();
    let mut source = sysfs.active("mlx5_0", SourceKind::HwCounters);
    for name in HW_COUNTERS {
        sysfs.file(&format!("{PORT}/hw_counters/{name}"), "-1");
    }
    let mut row = [0; HW_COUNTERS.len()];
    match source.read(&mut row) {
        Read::Missing(why) => {
            assert_eq!(why.reason, "negative");
            assert!(why.detail.contains("hw_counters"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_without_performance_management_lacks_that_source_alone() {
    let sysfs = one_nic();
    for name in PORT_COUNTERS {
        sysfs.file(&format!("{PORT}/counters/{name}"), "N/A (no PMA)");
    }
    assert_eq!(
        sysfs.not_applicable("mlx5_0", SourceKind::PortCounters).reason,
        "unsupported"
    );
    sysfs.active("mlx5_0", SourceKind::HwCounters);
}

#[test]
fn a_directory_that_is_missing_or_empty_is_not_applicable() {
    let sysfs = one_nic();
    sysfs.remove(&format!("{PORT}/counters"));
    assert_eq!(
        sysfs.not_applicable("mlx5_0", SourceKind::PortCounters).reason,
        "ENOENT"
    );
    sysfs.directory(&format!("{PORT}/counters"));
    assert_eq!(
        sysfs.not_applicable("mlx5_0", SourceKind::PortCounters).reason,
        "no_counters"
    );
    assert_eq!(
        sysfs.not_applicable("mlx5_0", SourceKind::DeviceCounters).reason,
        "ENOENT"
    );
}

#[test]
fn a_source_whose_driver_refuses_has_failed_and_may_be_tried_again() {
    let sysfs = one_nic();
    for name in PORT_COUNTERS {
        sysfs.break_file(&format!("{PORT}/counters/{name}"));
    }
    match sysfs.open("mlx5_0", SourceKind::PortCounters) {
        Opened::Failed(why) => assert_eq!(why.reason, "EISDIR"),
        _ => panic!("not failed"),
    }
}

#[test]
fn a_device_as_a_whole_is_read_with_its_first_port() {
    let sysfs = one_nic();
    sysfs.rdma_port("class/infiniband/mlx5_0", 2, "rail0");
    sysfs.file("class/infiniband/mlx5_0/hw_counters/np_cnp_sent", "5");
    sysfs.file("class/infiniband/mlx5_0/hw_counters/lifespan", "10");
    let kernel = sysfs.kernel();
    let ports = kernel.ports().unwrap();
    match kernel.open(&ports[0], SourceKind::DeviceCounters) {
        Opened::Active(mut source) => assert_eq!(read(&mut *source), [("np_cnp_sent".to_owned(), 5)]),
        _ => panic!("not active"),
    }
    match kernel.open(&ports[1], SourceKind::DeviceCounters) {
        Opened::NotApplicable(why) => assert_eq!(why.reason, "first_port_only"),
        _ => panic!("read twice"),
    }
}

#[test]
fn names_are_kept_as_the_driver_has_them() {
    let sysfs = one_nic();
    sysfs.file(&format!("{PORT}/hw_counters/SwLinkUp,32"), "1");
    sysfs.file(&format!("{PORT}/hw_counters/Pio Reserved 30"), "2");
    let row = read(&mut *sysfs.active("mlx5_0", SourceKind::HwCounters));
    assert_eq!(
        (value(&row, "SwLinkUp,32"), value(&row, "Pio Reserved 30")),
        (1, 2)
    );
}

#[test]
fn an_infiniband_port_is_not_read() {
    let sysfs = one_nic();
    sysfs.file(&format!("{PORT}/link_layer"), "InfiniBand");
    for source in SourceKind::ALL {
        assert_eq!(sysfs.not_applicable("mlx5_0", source).reason, "infiniband");
    }
    sysfs.remove(&format!("{PORT}/link_layer"));
    assert!(matches!(
        sysfs.open("mlx5_0", SourceKind::HwCounters),
        Opened::Failed(_)
    ));
}

#[test]
fn an_ethernet_port_has_a_link_and_no_rdma_counters() {
    let sysfs = Sysfs::new();
    sysfs.ethernet();
    for source in [
        SourceKind::HwCounters,
        SourceKind::DeviceCounters,
        SourceKind::PortCounters,
    ] {
        assert_eq!(sysfs.not_applicable("eth0", source).reason, "no_rdma_device");
    }
    sysfs.active("eth0", SourceKind::Link);
}

#[test]
fn carrier_and_its_counts() {
    let sysfs = one_nic();
    let mut source = sysfs.active("mlx5_0", SourceKind::Link);
    let row = |carrier, ups, downs| {
        [
            ("carrier", carrier),
            ("carrier_up_count", ups),
            ("carrier_down_count", downs),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    };
    assert_eq!(read(&mut *source), row(1, 3, 2));
    sysfs.file("class/net/rail0/operstate", "down");
    sysfs.file("class/net/rail0/carrier_down_count", "3");
    assert_eq!(read(&mut *source), row(0, 3, 3));
    sysfs.file("class/net/rail0/flags", "0x1002");
    assert_eq!(read(&mut *source), row(ABSENT, 3, 3), "administratively down");
    sysfs.file("class/net/rail0/flags", "");
    assert!(matches!(source.read(&mut [0; 3]), Read::Missing(_)));
}

#[test]
fn before_4_16_the_carrier_stands_alone() {
    let sysfs = one_nic();
    sysfs.remove("class/net/rail0/carrier_up_count");
    sysfs.remove("class/net/rail0/carrier_down_count");
    assert_eq!(
        read(&mut *sysfs.active("mlx5_0", SourceKind::Link)),
        [("carrier".to_owned(), 1)]
    );
}

#[test]
fn temperatures_by_their_labels() {
    let sysfs = one_nic();
    assert_eq!(
        sysfs.not_applicable("mlx5_0", SourceKind::Hwmon).reason,
        "no_sensor"
    );
    let hwmon = "class/infiniband/mlx5_0/device/hwmon/hwmon4";
    for (file, content) in [
        ("name", "mlx5"),
        ("temp1_input", "46000"),
        ("temp1_label", "asic"),
        ("temp1_crit", "105000"),
        ("temp10_input", "52000"),
        ("temp2_input", "41500"),
        ("temp2_label", "Module0"),
    ] {
        sysfs.file(&format!("{hwmon}/{file}"), content);
    }
    let mut source = sysfs.active("mlx5_0", SourceKind::Hwmon);
    let row = |asic, module, third| {
        [("asic", asic), ("Module0", module), ("temp10", third)]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    };
    assert_eq!(read(&mut *source), row(46_000, 41_500, 52_000));
    let signal = |i: usize| source.schema().columns[i].meaning.unwrap().signal().as_str();
    assert_eq!((signal(0), signal(1)), ("temperature.chip", "temperature.module"));
    assert!(source.schema().columns[2].meaning.is_none());

    sysfs.file(&format!("{hwmon}/temp1_input"), "-1000");
    sysfs.break_file(&format!("{hwmon}/temp2_input"));
    assert_eq!(read(&mut *source)[0].1, ABSENT, "there is no sign in a row");
    let mut source = sysfs.active("mlx5_0", SourceKind::Hwmon);
    for file in ["temp1_input", "temp10_input"] {
        sysfs.file(&format!("{hwmon}/{file}"), "nonsense");
    }
    assert!(matches!(source.read(&mut [0; 3]), Read::Missing(why) if why.detail.contains("hwmon4")));
}

/// Numbers of the NIC and of the bridge above it, in the form of `aer_stats_dev_attr` in drivers/pci/pcie/aer.c.
#[test]
fn pcie_errors_of_both_ends_of_the_link_are_read() {
    let sysfs = Sysfs::new();
    let device = sysfs.nic(0);
    let why = sysfs.not_applicable("mlx5_0", SourceKind::Aer);
    assert_eq!(why.reason, "no_aer");
    let slot = device.rsplit_once('/').unwrap().0;
    sysfs.file(
        &format!("{device}/aer_dev_correctable"),
        "RxErr 2\nBadTLP 40\nTOTAL_ERR_COR 42",
    );
    sysfs.file(&format!("{device}/aer_dev_fatal"), "DLP 0\nTOTAL_ERR_FATAL 0");
    sysfs.file(&format!("{slot}/aer_dev_correctable"), "RxErr 0\nTOTAL_ERR_COR 7");
    let mut source = sysfs.active("mlx5_0", SourceKind::Aer);
    let right = [
        ("aer_dev_correctable", 42),
        ("aer_dev_fatal", 0),
        ("slot_aer_dev_correctable", 7),
    ];
    assert_eq!(
        read(&mut *source),
        right.map(|(name, value)| (name.to_owned(), value))
    );
    let signal = |i: usize| source.schema().columns[i].meaning.unwrap().signal().as_str();
    assert_eq!(
        (signal(0), signal(2)),
        ("pcie.correctable", "pcie.slot_correctable")
    );
}

#[test]
fn a_netdev_without_rdma_has_temperatures_too() {
    let sysfs = Sysfs::new();
    sysfs.ethernet();
    sysfs.file("class/net/eth0/device/hwmon/hwmon0/temp1_input", "57000");
    let mut source = sysfs.active("eth0", SourceKind::Hwmon);
    assert_eq!(read(&mut *source), [("temp1".to_owned(), 57_000)]);
    let meaning = source.schema().columns[0].meaning.unwrap();
    assert_eq!(meaning.signal().as_str(), "temperature.chip");
}
