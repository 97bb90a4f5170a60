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

const FAULTS: [Fault; 14] = [
    fault(
        "dcb pfc set dev rail1 prio-pfc all:off",
        "dcb pfc set dev rail1 prio-pfc 3:on",
        &["pfc_off", "pfc_rails_differ"],
    ),
    fault(
        "dcb pfc set dev rail1 prio-pfc all:on",
        "dcb pfc set dev rail1 prio-pfc all:off 3:on",
        &["pfc_on_all", "pfc_rails_differ"],
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
];

/// The checks that the doctor names after it has watched for so long.
fn said(watch: &str) -> BTreeSet<String> {
    let output = run(&["doctor", "--format", "json", "--for", watch]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
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
             dcb buffer set dev rail{rail} prio-buffer 3:1 buffer-size 0:131008 1:131008"
        ));
    }
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn each_fault_that_the_kernel_can_be_set_to_is_found_and_gone_when_it_is_undone() {
    calm();
    set_up_rightly();
    assert_eq!(said("10ms"), names(&[]), "set up rightly");
    for fault in &FAULTS {
        set(fault.done);
        let found = said("10ms");
        set(fault.undone);
        assert_eq!(found, names(fault.said), "{}", fault.done);
    }
    assert_eq!(said("10ms"), names(&[]), "all undone");
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn bytes_on_the_wrong_priority_and_a_slow_host_are_told_by_their_rates() {
    calm();
    set_up_rightly();
    shell(
        "echo 'mlx5_0 tx_vport_rdma_unicast_bytes +0 1000000000;mlx5_0 tx_prio0_bytes +0 1100000000;\
         mlx5_1 tx_prio3_pause_duration +0 300000;mlx5_1 rx_discards_phy +0 50' >/proc/fakeroce",
    );
    let found = said("3s");
    calm();
    for check in ["roce_on_other_priority", "host_is_slow"] {
        assert!(found.contains(check), "{check} is not among {found:?}");
    }
}
