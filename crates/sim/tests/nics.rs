//! The same physics under the names of each driver, and nothing of what the driver does not have.

mod support;

use catalog::{Index, Signal};
use model::{Host, Opened, Read, SourceKind};
use proptest::prelude::*;
use sim::{Nic, Scenario};
use std::time::Duration;
use support::{Bench, RDMA, Reader, Snapshot, setup};

fn grown(reader: &mut Reader, bench: &Bench, seconds: f64) -> (Snapshot, Snapshot) {
    let before = reader.read();
    bench.pass(seconds);
    (before, reader.read())
}

#[test]
fn every_nic_counts_the_same_traffic() {
    // The packets of RDMA that the rails of one seed send in a minute, which is long for a driver that looks once a second.
    let packets = |nic| {
        let bench = Bench::new(setup(Scenario::Incast, 4, nic, 4));
        let mut reader = bench.reader(1);
        let (before, after) = grown(&mut reader, &bench, 60.0);
        [Signal::PacketsTxRdma, Signal::EcnRxCe, Signal::CnpTx].map(|signal| {
            reader
                .grew(&before, &after, signal, None)
                .expect("every driver has it")
        })
    };
    let expected = packets(Nic::Mlx5);
    assert!(expected[0] > 1e8, "{expected:?}");
    for nic in Nic::ALL {
        let seen = packets(nic);
        for (seen, expected) in seen.into_iter().zip(expected) {
            assert!(
                (seen - expected).abs() <= 1.0,
                "{nic}: {seen}, on mlx5 {expected}"
            );
        }
    }
}

#[test]
fn what_a_driver_lacks_is_absent() {
    use Signal::{
        CnpRx, CnpRxHandled, CnpRxIgnored, PcieStalledWritePercent, PfcRxPauseDuration, PfcRxTransitions,
        PfcRxXoffFrames, RoceAckTimeout,
    };
    let has = |nic, signal, index| {
        let bench = Bench::new(setup(Scenario::Healthy, 1, nic, 1));
        let mut reader = bench.reader(0);
        let snapshot = reader.read();
        reader.value(&snapshot, signal, index).is_some()
    };
    for (signal, index, present) in [
        (PfcRxPauseDuration, RDMA, [true, true, false, true]),
        (PfcRxTransitions, RDMA, [true, true, false, false]),
        (PfcRxXoffFrames, RDMA, [false, false, true, false]),
        // mlx5 names the priorities with PFC alone, the others all.
        (
            PfcRxPauseDuration,
            Some(Index::Priority(0)),
            [false, true, false, true],
        ),
        (CnpRxHandled, None, [true, false, true, false]),
        (CnpRxIgnored, None, [true, false, true, false]),
        (CnpRx, None, [false, true, false, true]),
        (RoceAckTimeout, None, [true, true, false, true]),
        (PcieStalledWritePercent, None, [true, false, false, false]),
        (Signal::BytesTx, RDMA, [true, true, false, false]),
        (Signal::LinkLanes, None, [true; 4]),
        (Signal::ConfigPfcEnabled, None, [true, true, true, false]),
        (Signal::PfcStormPrevention, None, [true, false, false, false]),
    ] {
        assert_eq!(Nic::ALL.map(|nic| has(nic, signal, index)), present, "{signal}");
    }
}

#[test]
fn sources_of_a_driver_are_those_that_its_kernel_has() {
    let has = |nic, kind| {
        let bench = Bench::new(setup(Scenario::Healthy, 1, nic, 1));
        match bench.host.open(&bench.ports[0], kind) {
            Opened::Active(_) => true,
            Opened::NotApplicable(why) => {
                assert_eq!(why.reason, "not_on_this_driver");
                false
            }
            Opened::Failed(why) => panic!("{why}"),
        }
    };
    for (kind, present) in [
        (SourceKind::Ethtool, [true; 4]),
        (SourceKind::HwCounters, [true; 4]),
        (SourceKind::DeviceCounters, [false; 4]),
        (SourceKind::PortCounters, [true, false, false, false]),
        (SourceKind::Link, [true; 4]),
        (SourceKind::Settings, [true; 4]),
        (SourceKind::Dcb, [true, true, true, false]),
    ] {
        assert_eq!(Nic::ALL.map(|nic| has(nic, kind)), present, "{kind}");
    }
    assert_eq!(
        Nic::ALL.map(Nic::kernel),
        ["6.12.0", "6.12.0", "6.12.0", "6.18.0"]
    );
}

#[test]
fn no_name_is_there_twice_and_none_is_a_pattern() {
    for nic in Nic::ALL {
        let reader = Bench::new(setup(Scenario::PfcAllPriorities, 1, nic, 1)).reader(0);
        for (kind, source) in &reader.sources {
            let schema = source.schema();
            let mut names: Vec<&str> = schema.columns.iter().map(|column| &*column.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{nic} {kind}");
            assert!(
                names.iter().all(|name| !name.contains('{')),
                "{nic} {kind}: {names:?}"
            );
        }
    }
}

#[test]
fn bnxt_looks_once_a_second_and_only_while_the_link_is_up() {
    let bench = Bench::new(setup(Scenario::LinkFlap, 2, Nic::Bnxt, 8));
    let mut reader = bench.reader(2);
    let mut steps = Vec::new();
    let counters = |snapshot: &Snapshot| {
        [SourceKind::Ethtool, SourceKind::HwCounters].map(|kind| snapshot.0[&kind].clone())
    };
    let mut before = counters(&reader.read());
    for tenth in 1..=200 {
        bench.clock.advance(Duration::from_millis(100));
        let after = counters(&reader.read());
        if after != before {
            steps.push(tenth);
        }
        before = after;
    }
    // No carrier at the full seconds 10 (the flap begins with it), 11, 13, 16 and 17.
    let expected: Vec<i32> = (1..=20)
        .filter(|second| ![11, 16, 17].contains(second))
        .map(|second| second * 10)
        .collect();
    assert_eq!(steps, expected);
}

#[test]
fn ports_are_named_as_each_driver_names_them() {
    let named = |nic| {
        let bench = Bench::new(setup(Scenario::Healthy, 1, nic, 2));
        (bench.ports[1].device.clone(), bench.ports[1].driver.clone())
    };
    let expected = [
        ("mlx5_1", "mlx5_core"),
        ("bnxt_re1", "bnxt_en"),
        ("irdma1", "ice"),
        ("ionic_1", "ionic"),
    ];
    for (nic, (device, driver)) in Nic::ALL.into_iter().zip(expected) {
        assert_eq!(named(nic), (device.to_owned(), driver.to_owned()));
    }
}

#[test]
fn irdma_counts_from_the_ip_header_on() {
    let of = |nic, signal| {
        let bench = Bench::new(setup(Scenario::Healthy, 6, nic, 1));
        let mut reader = bench.reader(0);
        let (before, after) = grown(&mut reader, &bench, 10.0);
        reader.grew(&before, &after, signal, None).unwrap()
    };
    let packets = of(Nic::Mlx5, Signal::PacketsTxRdma);
    let header = (of(Nic::Mlx5, Signal::BytesTxRdma) - of(Nic::Irdma, Signal::BytesTxRdma)) / packets;
    assert!((header - 14.0).abs() < 1e-3, "{header} bytes a packet");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_server_of_any_size_has_ports_of_their_own(ports in 1..=64_u8, nic in prop::sample::select(&Nic::ALL[..])) {
        let bench = Bench::new(setup(Scenario::Healthy, 1, nic, ports));
        prop_assert_eq!(bench.ports.len(), usize::from(ports));
        let distinct = |of: &dyn Fn(&model::Port) -> String| {
            let names: std::collections::BTreeSet<String> = bench.ports.iter().map(of).collect();
            names.len() == bench.ports.len()
        };
        prop_assert!(distinct(&|port| port.id.to_string()));
        prop_assert!(distinct(&|port| port.device.clone()));
        prop_assert!(distinct(&|port| port.netdev.clone().unwrap()));
        prop_assert!(distinct(&|port| port.gpu.clone().unwrap().address));
        prop_assert!(distinct(&|port| port.gids[3].gid.clone()));
        prop_assert!(distinct(&|port| port.ifindex.unwrap().to_string()));
        // No longer than the kernel lets a netdev's name be, 15 characters.
        prop_assert!(bench.ports.iter().all(|port| port.netdev.as_ref().unwrap().len() <= 15));
        prop_assert!(bench.ports.iter().all(|port| port.numa_node.unwrap() < 2));
        let last = bench.ports.len() - 1;
        let mut source = bench.open(last, SourceKind::Ethtool).unwrap();
        let mut row = vec![0; source.schema().columns.len()];
        prop_assert_eq!(source.read(&mut row), Read::Row);
    }
}
