//! How a node and its ports are set up, as far as rows do not tell it: files, and what DCB netlink, ethtool netlink and
//! rtnetlink tell once. What cannot be read is left out.

mod build;
mod dcb;
mod host;
mod link;
mod netdev;
mod pci;
mod routes;

use crate::pci::{Gpus, device};
use crate::{Context, Tree};
use model::{GpuSetup, KernelBuild, NodeSetup, Port, PortSetup, Setup};
use std::path::Path;

/// All that can be learned of `ports` and their node. Waits for rtnl where the kernel is asked.
pub(crate) fn read(ctx: &Context, procfs: &Path, build: Option<&KernelBuild>, ports: &[Port]) -> Setup {
    let tree = &*ctx.tree;
    let gpus = tree.exists("bus/pci/devices").then(|| Gpus::find(tree).all());
    let of = |port: &Port| {
        (
            port.id.clone(),
            of_port(ctx, port, gpus.as_deref().unwrap_or_default()),
        )
    };
    Setup {
        ports: ports.iter().map(of).collect(),
        node: NodeSetup {
            gpu_direct: host::gpu_direct(tree, build),
            routing: ctx.live.then(|| routes::read(procfs)).flatten(),
            gpus,
        },
    }
}

/// How the running kernel was built, which matters beside a GPU's driver; `None` of a copy of another's files.
pub(crate) fn kernel_build(tree: &Tree, procfs: &Path) -> Option<KernelBuild> {
    let matters = tree.is_sysfs() && host::has_gpu_driver(tree);
    matters.then(|| build::read(procfs)).flatten()
}

fn of_port(ctx: &Context, port: &Port, gpus: &[GpuSetup]) -> PortSetup {
    let tree = &*ctx.tree;
    let mut setup = PortSetup::default();
    let device = device(tree, port);
    if let Some(path) = &device {
        setup.pci = pci::hops(tree, path);
        setup.iommu = pci::iommu(tree, path);
        setup.driver_version = tree.read_string(&format!("{path}/driver/module/version")).ok();
    }
    setup.gpu_numa_distance = host::distance(tree, port, gpus);
    setup.default_tos = netdev::default_tos(tree, port);
    setup.cm_mode = netdev::cm_mode(tree, port);
    let Some(name) = &port.netdev else { return setup };
    setup.trust = netdev::trust(tree, name);
    setup.ecn = netdev::ecn(tree, name);
    setup.bond = netdev::bond(tree, name);
    if ctx.live {
        dcb::read(name, &mut setup);
        setup.link = port.ifindex.and_then(link::read).unwrap_or_default();
    }
    setup
}
