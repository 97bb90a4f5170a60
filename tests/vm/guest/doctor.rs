//! What the doctor says of a real kernel that is set up wrongly, one fault after the other, and of one that is not.

use super::bench::{NICS, calm, shell};
use super::support::run;
use std::collections::BTreeSet;

/// What is done, what undoes it, and the checks that it makes fire, with the rail where it is one alone.
struct Fault {
    done: &'static str,
    undone: &'static str,
    said: &'static [&'static str],
}

const fn fault(done: &'static str, undone: &'static str, said: &'static [&'static str]) -> Fault {
    Fault { done, undone, said }
}

const FAULTS: [Fault; 29] = [
    fault(
        "dcb pfc set dev rail1 prio-pfc all:off",
        "dcb pfc set dev rail1 prio-pfc 3:on",
        &["pfc_off", "pfc_rails_differ"],
    ),
    fault(
        "dcb pfc set dev rail1 prio-pfc all:on",
        "dcb pfc set dev rail1 prio-pfc all:off 3:on",
        // The buffer of the other seven is the smaller one.
        &["buffer_small", "pfc_on_all", "pfc_rails_differ"],
    ),
    fault(
        "ethtool -A rail0 rx on tx on",
        "ethtool -A rail0 rx off tx off; dcb pfc set dev rail0 prio-pfc 3:on",
        &["pause_beside_pfc"],
    ),
    fault(
        "echo 'mlx5_0 !pfc_storm_tout 0' >/proc/fakeroce",
        "echo 'mlx5_0 !pfc_storm_tout 8000' >/proc/fakeroce",
        &["storm_prevention_off"],
    ),
    fault(
        "dcb buffer set dev rail0 prio-buffer 3:0",
        "dcb buffer set dev rail0 prio-buffer 3:1",
        &["buffer_shared"],
    ),
    fault(
        "dcb app flush dev rail0",
        "dcb app add dev rail0 dscp-prio 26:3",
        &["trust_pcp"],
    ),
    fault(
        "dcb app replace dev rail0 dscp-prio 26:2",
        "dcb app replace dev rail0 dscp-prio 26:3",
        &["dscp_not_lossless"],
    ),
    fault(
        "dcb ets set dev rail0 tc-bw 0:25 3:1",
        "dcb ets set dev rail0 tc-bw 0:13 3:13",
        &["class_starved"],
    ),
    fault(
        "dcb ets set dev rail0 prio-tc 3:0",
        "dcb ets set dev rail0 prio-tc 3:3",
        &["class_shared"],
    ),
    fault(
        "ip link set rail2 mtu 1500",
        "ip link set rail2 mtu 9000",
        &["mtu_rails_differ", "mtu_small"],
    ),
    fault(
        "echo 'mlx5_3 !speed 200000' >/proc/fakeroce",
        "echo 'mlx5_3 !speed 400000' >/proc/fakeroce",
        &["link_slow"],
    ),
    fault(
        "ip addr del 10.0.2.1/24 dev rail2",
        "ip addr add 10.0.2.1/24 dev rail2",
        &["gid_missing"],
    ),
    fault(
        "ip addr add 10.0.2.9/24 dev rail1; ip addr del 10.0.1.1/24 dev rail1",
        "ip addr del 10.0.2.9/24 dev rail1; ip addr add 10.0.1.1/24 dev rail1",
        // The new address came before the old one went, and so to another index.
        &["gid_index_differs", "subnet_shared"],
    ),
    fault(
        "echo 'mlx5_1 !carrier 0' >/proc/fakeroce",
        "echo 'mlx5_1 !carrier 1' >/proc/fakeroce; sleep 2",
        &["link_down"],
    ),
    fault(
        "dcb pfc set dev rail1 prio-pfc 4:on",
        "dcb pfc set dev rail1 prio-pfc 4:off",
        // Priority 4 has no buffer of its own.
        &["buffer_shared", "pfc_rails_differ", "pfc_too_many"],
    ),
    fault(
        "dcb pfc set dev rail1 prio-pfc 3:off 5:on",
        "dcb pfc set dev rail1 prio-pfc 3:on 5:off",
        // DSCP 26 leads to priority 3, and priority 5 has no buffer of its own.
        &[
            "buffer_shared",
            "dscp_not_lossless",
            "pfc_other_priority",
            "pfc_rails_differ",
        ],
    ),
    fault(
        "echo 'mlx5_0 !peer_pfc 0x10' >/proc/fakeroce",
        "echo 'mlx5_0 !peer_pfc 8' >/proc/fakeroce",
        &["pfc_peer_differs"],
    ),
    fault(
        "dcb buffer set dev rail0 buffer-size 1:0",
        "dcb buffer set dev rail0 buffer-size 1:163840",
        &["buffer_zero"],
    ),
    fault(
        // Enough for 200 Gb/s, not for 400.
        "dcb buffer set dev rail0 buffer-size 1:131072",
        "dcb buffer set dev rail0 buffer-size 1:163840",
        &["buffer_small"],
    ),
    fault(
        "dcb dcbx set dev rail0 lld-managed ieee",
        "dcb dcbx set dev rail0 host ieee",
        &["dcbx_not_host"],
    ),
    fault(
        "echo 'mlx5_3 !lanes 2' >/proc/fakeroce",
        "echo 'mlx5_3 !lanes 0' >/proc/fakeroce",
        &["link_lanes"],
    ),
    fault(
        "ethtool --set-fec rail0 encoding off",
        "ethtool --set-fec rail0 encoding rs",
        // 100 Gb/s a lane are not to be had without.
        &["fec_differs", "fec_off"],
    ),
    fault(
        "ethtool --set-fec rail0 encoding baser",
        "ethtool --set-fec rail0 encoding rs",
        &["fec_differs"],
    ),
    fault(
        "echo 'mlx5_2 !fw_sub 1000' >/proc/fakeroce",
        "echo 'mlx5_2 !fw_sub 1002' >/proc/fakeroce",
        &["firmware_differs"],
    ),
    fault(
        "sh /tmp/ways_out add",
        "sh /tmp/ways_out del",
        &["source_route_missing"],
    ),
    fault(
        "sh /tmp/ways_out add; echo 1 >/proc/sys/net/ipv4/conf/rail1/rp_filter",
        "sh /tmp/ways_out del; echo 0 >/proc/sys/net/ipv4/conf/rail1/rp_filter",
        &["source_route_missing", "strict_source"],
    ),
    fault(
        "ip route replace 10.9.0.0/16 via 10.0.0.254 dev rail0 hoplimit 3",
        "ip route del 10.9.0.0/16",
        &["hop_limit_low"],
    ),
    fault(
        "ip neigh replace 10.0.0.77 dev rail0 nud failed",
        "ip neigh del 10.0.0.77 dev rail0",
        &["neighbour_failed"],
    ),
    fault(
        "ip link add bond7 mtu 9000 type bond mode 802.3ad miimon 100; ip link set rail7 down; ip link set rail7 master bond7; \
         ip link set bond7 up; sleep 2",
        "ip link del bond7; ip link set rail7 up; ip addr replace 10.0.7.1/24 dev rail7; sleep 2",
        &["bond_hash"],
    ),
];

/// Gives every rail but `rail1` a way to other subnets, or takes it back; may be run again.
const WAYS_OUT: &str = "\
for rail in 0 2 3 4 5 6 7; do
    ip rule del from 10.0.$rail.1 table 10$rail 2>/dev/null
    ip route flush table 10$rail 2>/dev/null
    [ $1 = del ] && continue
    ip route add default via 10.0.$rail.254 dev rail$rail table 10$rail || exit 1
    ip rule add from 10.0.$rail.1 table 10$rail || exit 1
done
exit 0
";

/// What depends on the policy, or on modules, which are not read unless somebody wants it.
const CONFIG: &str = "[policy]\ncnp_dscp = 48\n[sampling]\nmodule = \"10s\"\n";
const MORE_FAULTS: [Fault; 4] = [
    fault(
        "dcb app add dev rail0 dscp-prio 48:3",
        "dcb app del dev rail0 dscp-prio 48:3",
        &["cnp_class"],
    ),
    fault(
        "echo 'mlx5_1 !module_celsius 80' >/proc/fakeroce",
        "echo 'mlx5_1 !module_celsius 0' >/proc/fakeroce",
        &["module_hot"],
    ),
    fault(
        "echo 'mlx5_1 !module_celsius 50;mlx5_1 !module_rx_uw 60' >/proc/fakeroce",
        "echo 'mlx5_1 !module_celsius 0;mlx5_1 !module_rx_uw 900' >/proc/fakeroce",
        &["optics_dim"],
    ),
    fault(
        "echo 'mlx5_1 !module_celsius 50' >/proc/fakeroce",
        "echo 'mlx5_1 !module_celsius 0' >/proc/fakeroce",
        &[],
    ),
];

/// The checks that the doctor names after it has watched for so long. A guest without a processor to itself may not have every
/// source read in time, which the doctor then says; it is asked again.
fn said(watch: &str, options: &[&str]) -> BTreeSet<String> {
    let report = (0..5).find_map(|_| {
        let output = run(&[&["doctor", "--format", "json", "--for", watch], options].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["not_read"].is_null().then_some(report)
    });
    let report = report.expect("every source is read");
    let lists = ["findings", "verdicts"].into_iter();
    lists
        .flat_map(|list| report[list].as_array().expect("a list"))
        .map(|said| said["check"].as_str().expect("a name").to_owned())
        .collect()
}

fn names(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

/// The tool `dcb` numbers its requests by the second, and fails when the second changes between two of them.
fn set(commands: &str) {
    for command in commands.split("; ") {
        shell(&format!(
            "for try in 1 2 3 4 5; do {command} && exit 0; done; exit 1"
        ));
    }
}

fn set_up_rightly() {
    for rail in 0..NICS {
        set(&format!(
            "ip link set rail{rail} mtu 9000; dcb app replace dev rail{rail} dscp-prio 26:3; \
             dcb buffer set dev rail{rail} prio-buffer 3:1 buffer-size 0:98176 1:163840"
        ));
    }
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn each_fault_that_the_kernel_can_be_set_to_is_found_and_gone_when_it_is_undone() {
    calm();
    set_up_rightly();
    std::fs::write("/tmp/ways_out", WAYS_OUT).expect("/tmp is writable");
    found_and_gone(&FAULTS, &[]);
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn what_the_policy_or_a_module_is_asked_for_is_found_too() {
    calm();
    set_up_rightly();
    std::fs::write("/tmp/doctor.toml", CONFIG).expect("/tmp is writable");
    found_and_gone(&MORE_FAULTS, &["--config", "/tmp/doctor.toml"]);
}

fn found_and_gone(faults: &[Fault], options: &[&str]) {
    assert_eq!(said("10ms", options), names(&[]), "set up rightly");
    let mut wrong = Vec::new();
    for fault in faults {
        set(fault.done);
        let found = said("10ms", options);
        set(fault.undone);
        if found != names(fault.said) {
            wrong.push(format!("{}: {found:?} instead of {:?}", fault.done, fault.said));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(said("10ms", options), names(&[]), "all undone");
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn bytes_on_the_wrong_priority_and_a_slow_host_are_told_by_their_rates() {
    calm();
    set_up_rightly();
    shell(
        "echo 'mlx5_0 tx_vport_rdma_unicast_bytes +0 1000000000;mlx5_0 tx_prio0_bytes +0 1100000000;\
         mlx5_1 tx_prio3_pause_duration +0 300000;mlx5_1 rx_discards_phy +0 50;\
         mlx5_2 rx_vport_rdma_unicast_bytes +0 1000000000;mlx5_2 rx_prio3_bytes +0 3000000000' >/proc/fakeroce",
    );
    let found = said("3s", &[]);
    calm();
    for check in ["roce_on_other_priority", "others_on_lossless", "host_is_slow"] {
        assert!(found.contains(check), "{check} is not among {found:?}");
    }
}
