//! Who is on each device: queue pairs by process, container and pod, for people, for programs and for incidents.

use model::{Host, Owner, Place, Port, QueuePair, QueuePairs, Why};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Digits of a container's identity that people know it by.
const SHORT: usize = 12;

/// The queue pairs of one device.
#[derive(Serialize)]
pub(crate) struct Device {
    device: String,
    /// Absent if nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    owners: Option<Vec<Group>>,
    /// Queue pairs that the device has by the kernel's count and that nobody is told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    untold: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// One owner and what it holds.
#[derive(Serialize)]
struct Group {
    owner: OwnerKind,
    /// Of a part of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    #[serde(flatten)]
    process: Option<Process>,
    queue_pairs: Vec<Pair>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum OwnerKind {
    Process,
    Kernel,
    Unseen,
}

#[derive(Serialize)]
struct Process {
    pid: u32,
    comm: Option<String>,
    container: Option<String>,
    runtime: Option<&'static str>,
    pod: Option<String>,
    slurm_job: Option<String>,
    /// Where it is another than that of rocewatch.
    network_namespace: Option<u64>,
}

#[derive(Serialize)]
struct Pair {
    number: u32,
    port: Option<u32>,
    #[serde(rename = "type")]
    kind: &'static str,
    state: &'static str,
    remote_number: Option<u32>,
    remote_address: Option<String>,
}

/// Asks about every device of `ports`, all at once; one that does not answer within `limit` is told to.
pub(crate) fn on(host: &Arc<dyn Host>, ports: &[Arc<Port>], limit: Duration) -> Vec<Device> {
    let mut devices: BTreeMap<&str, &Arc<Port>> = BTreeMap::new();
    for port in ports.iter().filter(|port| port.has_rdma()) {
        devices.entry(&port.device).or_insert(port);
    }
    let asked: Vec<_> = devices
        .into_iter()
        .map(|(device, port)| {
            let (host, port) = (Arc::clone(host), Arc::clone(port));
            let (answer, inbox) = channel();
            // Nobody waits for its end: a driver may hold it for as long as it likes.
            let ask = move || drop(answer.send(host.queue_pairs(&port)));
            let started = std::thread::Builder::new().name("who".to_owned()).spawn(ask);
            (device.to_owned(), started.map(|_| inbox))
        })
        .collect();
    let answer = |(device, asked): (String, std::io::Result<std::sync::mpsc::Receiver<_>>)| {
        let answer = asked
            .map_err(|error| Why::new("thread", error.to_string()))
            .and_then(|inbox| inbox.recv_timeout(limit).unwrap_or_else(|_| Err(silent(&device))));
        Device::new(device, answer)
    };
    asked.into_iter().map(answer).collect()
}

fn silent(device: &str) -> Why {
    Why::new(
        "ETIMEDOUT",
        format!("{device} does not answer: its driver or firmware hangs"),
    )
}

impl Device {
    fn new(device: String, answer: Result<QueuePairs, Why>) -> Self {
        match answer {
            Ok(queue_pairs) => Self {
                device,
                untold: queue_pairs.of.map(|of| of - queue_pairs.seen.len() as u64),
                owners: Some(groups(queue_pairs.seen)),
                why: None,
            },
            Err(why) => Self {
                device,
                owners: None,
                untold: None,
                why: Some(why.to_string()),
            },
        }
    }

    /// The device for people.
    pub(crate) fn write(&self, out: &mut String) {
        let _ = writeln!(out, "{}", self.device);
        for group in self.owners.iter().flatten() {
            let _ = writeln!(out, "  {}", group.whose());
            let _ = writeln!(out, "    {}", group.what());
        }
        let none = self.owners.as_ref().is_some_and(Vec::is_empty);
        if none && self.untold.is_none() {
            out.push_str("  nobody holds a queue pair\n");
        }
        if let Some(untold) = self.untold {
            let _ = writeln!(out, "  {untold} more, which the kernel does not tell of");
        }
        if let Some(why) = &self.why {
            let _ = writeln!(out, "  {why}");
        }
        out.push('\n');
    }
}

/// By owner: those with the most first.
fn groups(seen: Vec<QueuePair>) -> Vec<Group> {
    let mut by_owner: BTreeMap<Owner, Vec<Pair>> = BTreeMap::new();
    for queue_pair in seen {
        let pair = Pair {
            number: queue_pair.number,
            port: queue_pair.port,
            kind: queue_pair.kind.as_str(),
            state: queue_pair.state.as_str(),
            remote_number: queue_pair.remote,
            remote_address: queue_pair.remote_address.map(|address| address.to_string()),
        };
        by_owner.entry(queue_pair.owner).or_default().push(pair);
    }
    let mut groups: Vec<_> = by_owner
        .into_iter()
        .map(|(owner, queue_pairs)| Group::new(owner, queue_pairs))
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.queue_pairs.len()));
    groups
}

impl Group {
    fn new(owner: Owner, queue_pairs: Vec<Pair>) -> Self {
        let (kind, kernel, process) = match owner {
            Owner::Kernel(name) => (OwnerKind::Kernel, Some(name), None),
            Owner::Unseen => (OwnerKind::Unseen, None, None),
            Owner::Process(holder) => {
                let Place {
                    container,
                    runtime,
                    pod,
                    job,
                } = holder.place;
                let process = Process {
                    pid: holder.process,
                    comm: holder.name,
                    container,
                    runtime,
                    pod,
                    slurm_job: job,
                    network_namespace: holder.network_namespace,
                };
                (OwnerKind::Process, None, Some(process))
            }
        };
        Self {
            owner: kind,
            kernel,
            process,
            queue_pairs,
        }
    }

    fn whose(&self) -> String {
        if let Some(process) = &self.process {
            return process.to_string();
        }
        match &self.kernel {
            Some(name) => format!("the kernel: {name}"),
            None => "processes that the kernel does not name: they have ended, or this program is in a PID namespace of its \
                     own (hostPID: true shows them)"
                .to_owned(),
        }
    }

    /// How many of which type and state.
    fn what(&self) -> String {
        let mut kinds: BTreeMap<(&str, &str, Option<u32>), usize> = BTreeMap::new();
        for pair in &self.queue_pairs {
            *kinds.entry((pair.kind, pair.state, pair.port)).or_default() += 1;
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let words = kinds.iter().map(|((kind, state, port), count)| {
            let port = port.map_or("no port yet".to_owned(), |port| format!("port {port}"));
            format!("{count} {kind} {state} on {port}")
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let comm = self.comm.as_deref().unwrap_or("(ended)");
        write!(f, "{comm} (process {})", self.pid)?;
        if let Some(container) = &self.container {
            let short = container.get(..SHORT).unwrap_or(container);
            write!(f, "  container {short}")?;
            if let Some(runtime) = self.runtime {
                write!(f, " ({runtime})")?;
            }
        }
        if let Some(pod) = &self.pod {
            write!(f, "  pod {pod}")?;
        }
        if let Some(job) = &self.slurm_job {
            write!(f, "  Slurm job {job}")?;
        }
        self.network_namespace
            .map_or(Ok(()), |namespace| write!(f, "  network namespace {namespace}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Holder, QueuePairKind, QueuePairState};

    fn queue_pair(number: u32, kind: u8, owner: Owner) -> QueuePair {
        QueuePair {
            number,
            port: Some(1),
            kind: QueuePairKind(kind),
            state: QueuePairState(3),
            remote: (kind == 2).then_some(number + 100),
            remote_address: None,
            owner,
        }
    }

    fn trainer() -> Owner {
        Owner::Process(Holder {
            process: 4711,
            name: Some("python3".into()),
            place: Place {
                container: Some("4bc0a1f2d3e4958677869504a3b2c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f60514".into()),
                runtime: Some("containerd"),
                pod: Some("2a6f1c3e-8f0b-4f5d-9b1a-7c2d3e4f5a6b".into()),
                job: None,
            },
            network_namespace: Some(4_026_532_000),
        })
    }

    fn told(answer: Result<QueuePairs, Why>) -> (String, serde_json::Value) {
        let device = Device::new("mlx5_0".into(), answer);
        let mut text = String::new();
        device.write(&mut text);
        (text, serde_json::to_value(&device).expect("JSON"))
    }

    #[test]
    fn queue_pairs_are_told_by_owner() {
        let mut seen = vec![queue_pair(1, 1, Owner::Kernel("ib_core".into()))];
        seen.extend((10..14).map(|number| queue_pair(number, 2, trainer())));
        seen.push(queue_pair(14, 4, trainer()));
        seen.push(queue_pair(15, 2, Owner::Unseen));
        let (text, json) = told(Ok(QueuePairs { seen, of: Some(10) }));
        let right = "\
mlx5_0
  python3 (process 4711)  container 4bc0a1f2d3e4 (containerd)  pod 2a6f1c3e-8f0b-4f5d-9b1a-7c2d3e4f5a6b  network namespace 4026532000
    4 RC RTS on port 1, 1 UD RTS on port 1
  the kernel: ib_core
    1 GSI RTS on port 1
  processes that the kernel does not name: they have ended, or this program is in a PID namespace of its own (hostPID: true shows them)
    1 RC RTS on port 1
  3 more, which the kernel does not tell of

";
        assert_eq!(text, right);
        let first = &json["owners"][0];
        assert_eq!((&first["pid"], &first["comm"]), (&4711.into(), &"python3".into()));
        assert_eq!(first["queue_pairs"][0]["remote_number"], 110);
        assert_eq!(json["untold"], 3);
    }

    #[test]
    fn nobody_and_nobody_knows_are_two_things() {
        let (text, json) = told(Ok(QueuePairs::default()));
        assert!(text.contains("nobody holds a queue pair"), "{text}");
        assert_eq!(json["owners"], serde_json::json!([]));
        let (text, json) = told(Err(silent("mlx5_0")));
        assert!(
            text.contains("does not answer") && !text.contains("nobody"),
            "{text}"
        );
        assert_eq!(json.get("owners"), None);
    }
}
