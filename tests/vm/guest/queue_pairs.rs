//! Counters of queue pairs: each process has its own where somebody has the kernel keep them, and nobody has any otherwise.

use super::bench::{EAGER, calls, calm, daemon_with, pause, shell, steer};
use super::support::{Daemon, Metrics};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const DEVICE: &str = "mlx5_2";
const LIMIT: Duration = Duration::from_secs(20);
const COUNTER: &str = "rocewatch_qp_counter_total";
const GAUGE: &str = "rocewatch_qp_gauge";

/// A process that holds queue pairs.
struct Rank(Child);

impl Rank {
    /// Makes these queue pairs of [`DEVICE`], and lives on.
    fn holding(queue_pairs: &[(u32, &str)]) -> Self {
        let lines = queue_pairs
            .iter()
            .map(|(number, kind)| format!("qp {DEVICE} {number} {kind}"));
        let lines = lines.collect::<Vec<_>>().join(";");
        let script = format!("echo '{lines}' >/proc/fakeroce && echo made && read end");
        let mut child = Command::new("bash")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash is there");
        let mut said = [0; 4];
        let mut output = child.stdout.take().expect("it is piped");
        std::io::Read::read_exact(&mut output, &mut said).expect("the queue pairs were made");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn daemon() -> Daemon {
    daemon_with(&format!("{EAGER}qp_counters = \"200ms\"\n"))
}

fn counted(metrics: &Metrics, pid: &str, kind: &str, counter: &str) -> Option<f64> {
    let labels = [
        ("device", DEVICE),
        ("comm", "bash"),
        ("pid", pid),
        ("qp_type", kind),
        ("counter", counter),
    ];
    let name = if counter == "queue_pairs" { GAUGE } else { COUNTER };
    metrics.get(name, &labels)
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn without_the_mode_there_is_none_and_with_it_each_process_has_its_own() {
    calm();
    let daemon = daemon();
    let early = Rank::holding(&[(100, "RC")]);
    steer(&format!("qpcount {DEVICE} 100 out_of_sequence 3"));
    let left_out = [("device", DEVICE), ("counter", "groups_left_out")];
    let before = daemon.wait_for("the source is read", LIMIT, |metrics| {
        metrics.get(GAUGE, &left_out) == Some(0.0)
    });
    assert_eq!(
        before.all(COUNTER, &[]).count(),
        0,
        "nobody asked the kernel for any"
    );
    assert_eq!(before.all(GAUGE, &[("counter", "queue_pairs")]).count(), 0);
    let advice = format!("rdma statistic qp set link {DEVICE}/1 auto type,pid on");
    assert!(daemon.log().contains(&advice), "{}", daemon.log());

    shell(&advice);
    let (first, second) = (
        Rank::holding(&[(200, "RC"), (201, "RC"), (202, "UD")]),
        Rank::holding(&[(300, "RC")]),
    );
    steer(&format!(
        "qpcount {DEVICE} 200 out_of_sequence 5;qpcount {DEVICE} 201 out_of_sequence 6;\
         qpcount {DEVICE} 202 packet_seq_err 7;qpcount {DEVICE} 300 rnr_nak_retry_err 8;\
         qpcount {DEVICE} 100 out_of_sequence 9"
    ));
    let (one, two) = (first.pid(), second.pid());
    let metrics = daemon.wait_for("each counts what its queue pairs saw", LIMIT, |metrics| {
        counted(metrics, &one, "RC", "out_of_sequence") == Some(11.0)
            && counted(metrics, &one, "RC", "queue_pairs") == Some(2.0)
            && counted(metrics, &one, "UD", "packet_seq_err") == Some(7.0)
            && counted(metrics, &two, "RC", "rnr_nak_retry_err") == Some(8.0)
    });
    assert_eq!(counted(&metrics, &one, "UD", "out_of_sequence"), Some(0.0));
    assert_eq!(counted(&metrics, &two, "RC", "out_of_sequence"), Some(0.0));
    let of_early = metrics.all(COUNTER, &[("pid", &early.pid())]).count();
    assert_eq!(of_early, 0, "it was made before, and is counted with the port");
    // 26 Q counters of three groups.
    assert_eq!(metrics.all(COUNTER, &[("device", DEVICE)]).count(), 3 * 26);
    // The kernel gives the port's as the sum of all: 3 and 9 of the early one, 5 and 6 of the two.
    let of_port = |metrics: &Metrics| {
        let labels = [("device", DEVICE), ("error", "out_of_sequence")];
        metrics.get("rocewatch_roce_errors_total", &labels)
    };
    daemon.wait_for("the port's are the sum", LIMIT, |metrics| {
        of_port(metrics) == Some(23.0)
    });

    // One of two queue pairs goes: nothing that was counted does. The last one of a group takes the group with it.
    steer(&format!("unqp {DEVICE} 200;unqp {DEVICE} 300"));
    let metrics = daemon.wait_for("what has no queue pair is gone", LIMIT, |metrics| {
        counted(metrics, &one, "RC", "queue_pairs") == Some(1.0)
            && counted(metrics, &two, "RC", "rnr_nak_retry_err").is_none()
    });
    assert_eq!(counted(&metrics, &one, "RC", "out_of_sequence"), Some(11.0));
    steer(&format!("unqp {DEVICE} 201;unqp {DEVICE} 202"));
    let metrics = daemon.wait_for("nobody has any left", LIMIT, |metrics| {
        metrics.all(COUNTER, &[]).count() == 0
    });
    assert_eq!(
        of_port(&metrics),
        Some(23.0),
        "what they counted stays with the port"
    );
    shell(&format!("rdma statistic qp set link {DEVICE}/1 auto off"));
    drop((early, first, second));
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn queue_pairs_that_were_bound_by_hand_go_by_their_number() {
    calm();
    let daemon = daemon();
    let rank = Rank::holding(&[(400, "RC")]);
    shell(&format!("rdma statistic qp bind link {DEVICE}/1 lqpn 400"));
    steer(&format!("qpcount {DEVICE} 400 packet_seq_err 12"));
    let labels = [("device", DEVICE), ("cntn", "1"), ("counter", "packet_seq_err")];
    daemon.wait_for("it is counted", LIMIT, |metrics| {
        metrics.get(COUNTER, &labels) == Some(12.0)
    });
    let before = calls(DEVICE)["qp_stats"];
    pause(1000);
    assert!(calls(DEVICE)["qp_stats"] > before);
    let listed = shell(&format!("/host/rocewatch counters {DEVICE}"));
    assert!(listed.contains("cntn=1 packet_seq_err"), "{listed}");
    steer(&format!("unqp {DEVICE} 400"));
    drop(rank);
}
