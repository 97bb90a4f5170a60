//! Queue pairs and who holds them.

use std::fmt;
use std::net::SocketAddr;

/// A queue pair of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePair {
    /// Its number.
    pub number: u32,
    /// The port that it is bound to; `None` before it is.
    pub port: Option<u32>,
    /// What it carries.
    pub kind: QueuePairKind,
    /// How far it is.
    pub state: QueuePairState,
    /// The number of the queue pair that it is connected to.
    pub remote: Option<u32>,
    /// Where that is, of a connection that was made by the RDMA connection manager. Of others, NCCL's among them, the kernel
    /// does not tell.
    pub remote_address: Option<SocketAddr>,
    /// Who holds it.
    pub owner: Owner,
}

/// Who holds something of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A part of the kernel, by its name.
    Kernel(String),
    /// A process.
    Process(Holder),
    /// A process that the kernel does not name: it has ended, or is of a PID namespace that this one does not see.
    Unseen,
}

/// A process that holds something of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Its number, in this PID namespace.
    pub process: u32,
    /// Its name, of at most 15 bytes; `None` if it has ended since.
    pub name: Option<String>,
    /// Where it runs.
    pub place: Place,
    /// The inode of its network namespace, where that is another than this process's own.
    pub network_namespace: Option<u64>,
}

/// What a process runs in, by its control group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The container, by the runtime's identity of it.
    pub container: Option<String>,
    /// What runs the container: `docker`, `containerd`, `cri-o`, `podman`; `None` if its name does not tell.
    pub runtime: Option<&'static str>,
    /// The UID of the Kubernetes pod.
    pub pod: Option<String>,
    /// The Slurm job.
    pub job: Option<String>,
}

/// The queue pairs of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePairs {
    /// Those that the kernel tells of, by number.
    pub seen: Vec<QueuePair>,
    /// How many there are by the kernel's own count, if it is more.
    pub of: Option<u64>,
}

/// What a queue pair carries: `enum ib_qp_type` of `include/rdma/ib_verbs.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePairKind(pub u8);

/// How far a queue pair is: `enum ib_qp_state` of `include/rdma/ib_verbs.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePairState(pub u8);

impl QueuePairKind {
    /// The word of rdma(8); `other` for one that this version does not know.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self.0 {
            0 => "SMI",
            1 => "GSI",
            2 => "RC",
            3 => "UC",
            4 => "UD",
            8 => "RAW_PACKET",
            9 => "XRC_INI",
            10 => "XRC_TGT",
            0xff => "DRIVER",
            _ => "other",
        }
    }
}

impl QueuePairState {
    /// The word of rdma(8); `other` for one that this version does not know.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self.0 {
            0 => "RESET",
            1 => "INIT",
            2 => "RTR",
            3 => "RTS",
            4 => "SQD",
            5 => "SQE",
            6 => "ERR",
            _ => "other",
        }
    }
}

impl fmt::Display for QueuePairKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for QueuePairState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
