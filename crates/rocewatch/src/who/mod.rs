//! Who is on each device: queue pairs by process, container and pod, for people, for programs and for incidents.

mod asking;
mod holders;

pub(crate) use asking::Asking;
pub(crate) use holders::Holders;

use model::{Host, Owner, Place, Port, QueuePair, QueuePairs, Why};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

/// Digits of a container's identity that people know it by.
const SHORT: usize = 12;

/// What a device answers, or why it does not.
pub(crate) type Answer = Result<QueuePairs, Why>;

/// The queue pairs of one device.
#[derive(Serialize)]
pub(crate) struct Device {
    #[serde(rename = "device")]
    name: String,
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
    #[serde(flatten)]
    whose: Whose,
    queue_pairs: Vec<Pair>,
}

/// An owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Whose {
    owner: OwnerKind,
    /// Of a part of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    #[serde(flatten)]
    process: Option<Process>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OwnerKind {
    Process,
    Kernel,
    Unseen,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Process {
    pid: u32,
    comm: Option<String>,
    container: Option<String>,
    runtime: Option<String>,
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

/// Queue pairs of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Alike {
    count: u64,
    #[serde(rename = "type")]
    kind: String,
    state: String,
    /// Absent before they are bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u32>,
}

/// Asks about every device of `ports`, all at once; one that does not answer within `limit` is told to.
pub(crate) fn on(host: &Arc<dyn Host>, ports: &[Arc<Port>], limit: Duration) -> Vec<Device> {
    let mut asking = Asking::default();
    let devices = asking.ask(host, ports);
    let answer = |device: String| {
        let answer = asking.answer(&device, limit);
        Device::new(
            device.clone(),
            answer.unwrap_or_else(|| Err(asking::silent(&device))),
        )
    };
    devices.into_iter().map(answer).collect()
}

impl Device {
    fn new(name: String, answer: Answer) -> Self {
        match answer {
            Ok(queue_pairs) => Self {
                name,
                untold: untold(&queue_pairs),
                owners: Some(by_owner(queue_pairs.seen).map(Group::new).collect()),
                why: None,
            },
            Err(why) => Self {
                name,
                owners: None,
                untold: None,
                why: Some(why.to_string()),
            },
        }
    }

    /// The device for people.
    pub(crate) fn write(&self, out: &mut String) {
        let _ = writeln!(out, "{}", self.name);
        for group in self.owners.iter().flatten() {
            let _ = writeln!(out, "  {}", group.whose);
            let pairs = group.queue_pairs.iter();
            let alike = alike(pairs.map(|pair| (pair.kind, pair.state, pair.port)));
            let _ = writeln!(out, "    {}", words(&alike));
        }
        let nobody = self.owners.as_ref().is_some_and(Vec::is_empty);
        write_rest(nobody, self.untold, self.why.as_deref(), out);
        out.push('\n');
    }
}

/// What there is to say of a device behind its owners, of whom there is `nobody` or somebody.
fn write_rest(nobody: bool, untold: Option<u64>, why: Option<&str>, out: &mut String) {
    match untold {
        Some(untold) => {
            let _ = writeln!(out, "  {untold} more, which the kernel does not tell of");
        }
        None if nobody => out.push_str("  nobody holds a queue pair\n"),
        None => {}
    }
    if let Some(why) = why {
        let _ = writeln!(out, "  {why}");
    }
}

/// Queue pairs that the kernel counts and does not tell of.
fn untold(queue_pairs: &QueuePairs) -> Option<u64> {
    queue_pairs.of.map(|of| of - queue_pairs.seen.len() as u64)
}

/// By owner: those with the most first.
fn by_owner(seen: Vec<QueuePair>) -> impl Iterator<Item = (Owner, Vec<QueuePair>)> {
    let mut by_owner: BTreeMap<Owner, Vec<QueuePair>> = BTreeMap::new();
    for queue_pair in seen {
        by_owner
            .entry(queue_pair.owner.clone())
            .or_default()
            .push(queue_pair);
    }
    let mut groups: Vec<_> = by_owner.into_iter().collect();
    groups.sort_by_key(|(_, queue_pairs)| std::cmp::Reverse(queue_pairs.len()));
    groups.into_iter()
}

impl Group {
    fn new((owner, queue_pairs): (Owner, Vec<QueuePair>)) -> Self {
        let pair = |queue_pair: QueuePair| Pair {
            number: queue_pair.number,
            port: queue_pair.port,
            kind: queue_pair.kind.as_str(),
            state: queue_pair.state.as_str(),
            remote_number: queue_pair.remote,
            remote_address: queue_pair.remote_address.map(|address| address.to_string()),
        };
        Self {
            whose: Whose::new(owner),
            queue_pairs: queue_pairs.into_iter().map(pair).collect(),
        }
    }
}

impl Whose {
    fn new(owner: Owner) -> Self {
        let (owner, kernel, process) = match owner {
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
                    runtime: runtime.map(str::to_owned),
                    pod,
                    slurm_job: job,
                    network_namespace: holder.network_namespace,
                };
                (OwnerKind::Process, None, Some(process))
            }
        };
        Self {
            owner,
            kernel,
            process,
        }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.process, &self.kernel) {
            (Some(process), _) => process.fmt(f),
            (None, Some(name)) => write!(f, "the kernel: {name}"),
            (None, None) => f.write_str(
                "processes that the kernel does not name: they have ended, or this program is in a PID namespace of its \
                 own (hostPID: true shows them)",
            ),
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.comm {
            Some(comm) => write!(f, "{comm} (process {})", self.pid)?,
            None => write!(f, "process {}, which has ended or is hidden in /proc", self.pid)?,
        }
        if let Some(container) = &self.container {
            let short = container.get(..SHORT).unwrap_or(container);
            write!(f, "  container {short}")?;
            if let Some(runtime) = &self.runtime {
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

/// How many of which type and state, the most first.
fn alike<'a>(pairs: impl Iterator<Item = (&'a str, &'a str, Option<u32>)>) -> Vec<Alike> {
    let mut kinds: BTreeMap<_, u64> = BTreeMap::new();
    for kind in pairs {
        *kinds.entry(kind).or_default() += 1;
    }
    let alike = |((kind, state, port), count): ((&str, &str, _), _)| Alike {
        count,
        kind: kind.to_owned(),
        state: state.to_owned(),
        port,
    };
    let mut alike: Vec<_> = kinds.into_iter().map(alike).collect();
    alike.sort_by_key(|alike| std::cmp::Reverse(alike.count));
    alike
}

fn words(alike: &[Alike]) -> String {
    let words = |alike: &Alike| {
        let Alike {
            count,
            kind,
            state,
            port,
        } = alike;
        let port = port.map_or("no port yet".to_owned(), |port| format!("port {port}"));
        format!("{count} {kind} {state} on {port}")
    };
    alike.iter().map(words).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Holder, QueuePairKind, QueuePairState};

    pub(super) fn queue_pair(number: u32, kind: u8, owner: Owner) -> QueuePair {
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

    pub(super) fn trainer() -> Owner {
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
        let (text, json) = told(Err(asking::silent("mlx5_0")));
        assert!(
            text.contains("does not answer") && !text.contains("nobody"),
            "{text}"
        );
        assert_eq!(json.get("owners"), None);
    }
}
