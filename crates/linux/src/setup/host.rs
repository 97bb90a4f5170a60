//! GPUs, modules and NUMA distances.

use crate::Tree;
use crate::number::decimal;
use model::{GpuDirect, GpuSetup, KernelBuild, Module, Port};

const MODULES: &str = "module";
const GPU_DRIVERS: [&str; 2] = ["nvidia", "amdgpu"];
/// Of drivers of the OFED kind.
const PEERS: &str = "kernel/mm/memory_peers";

/// True if a GPU's driver is loaded.
pub(super) fn has_gpu_driver(tree: &Tree) -> bool {
    GPU_DRIVERS
        .iter()
        .any(|name| tree.exists(&format!("{MODULES}/{name}")))
}

/// What the kernel has for RDMA to GPU memory.
pub(super) fn gpu_direct(tree: &Tree, kernel: Option<&KernelBuild>) -> GpuDirect {
    let first = |names: [&str; 2]| names.into_iter().find_map(|name| module(tree, name));
    GpuDirect {
        modules_known: tree.exists(MODULES),
        peer_memory: first(["nvidia_peermem", "nv_peer_mem"]),
        gpu_driver: first(GPU_DRIVERS),
        kernel: kernel.cloned(),
        registered_bytes: registered(tree),
    }
}

fn module(tree: &Tree, name: &str) -> Option<Module> {
    let folder = format!("{MODULES}/{name}");
    if !tree.exists(&folder) {
        return None;
    }
    let taint = tree.read_string(&format!("{folder}/taint")).ok();
    Some(Module {
        name: name.to_owned(),
        version: tree.read_string(&format!("{folder}/version")).ok(),
        references: tree.number(&format!("{folder}/refcnt"), decimal).ok(),
        proprietary: taint.map(|taint| taint.contains('P')),
    })
}

/// The sum over all clients; `None` if none tells.
fn registered(tree: &Tree) -> Option<u64> {
    let clients = tree.list(PEERS).ok()?;
    let bytes = |client: &str| {
        tree.number(&format!("{PEERS}/{client}/num_reg_bytes"), decimal)
            .ok()
    };
    clients
        .iter()
        .filter_map(|client| bytes(&client.name))
        .reduce(u64::saturating_add)
}

/// Distance from the NIC's NUMA node to that of the nearest GPU.
pub(super) fn distance(tree: &Tree, port: &Port, gpus: &[GpuSetup]) -> Option<u32> {
    let from = port.numa_node?;
    let nearest = &port.gpu.as_ref()?.address;
    let to = gpus.iter().find(|gpu| gpu.address == *nearest)?.numa_node?;
    let line = tree
        .read_string(&format!("devices/system/node/node{from}/distance"))
        .ok()?;
    // A column for each node there is, in the order of their numbers (`node_read_distance` in drivers/base/node.c).
    let number = |name: &str| name.strip_prefix("node")?.parse::<u32>().ok();
    let entries = tree.list("devices/system/node").ok()?;
    let mut nodes: Vec<u32> = entries.iter().filter_map(|entry| number(&entry.name)).collect();
    nodes.sort_unstable();
    let column = nodes.iter().position(|node| *node == to)?;
    line.split_whitespace().nth(column)?.parse().ok()
}
