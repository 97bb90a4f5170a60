//! The running kernel, or a copy of its files, as a host.

use crate::errno::why_from_errno;
use crate::ethtool::Columns;
use crate::processes::Processes;
use crate::tree::Tree;
use crate::{aer, changes, dcb, ethtool, hwmon, link, module, ports, rdma, record, settings, setup, verbs};
use capture::Files;
use model::{Changes, Host, KernelBuild, LinkLayer, Opened, Port, QueuePairs, Setup, SourceKind, Why};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

/// How to read a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where its sysfs is: `/sys`, the host's in a container, or a copy.
    pub sysfs: PathBuf,
    /// Where its procfs is, for what processes hold of the devices.
    pub procfs: PathBuf,
    /// Every statistic of a driver gets a column, not only those that the catalogue knows.
    pub every_statistic: bool,
    /// Optional RDMA counters are switched on while they are read. This writes to the devices: steering rules that
    /// count are installed. Needs `CAP_NET_ADMIN` in the first user namespace.
    pub optional_counters: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sysfs: "/sys".into(),
            procfs: "/proc".into(),
            every_statistic: false,
            optional_counters: false,
        }
    }
}

/// The release of the kernel whose procfs is at `procfs`, as `uname -r` prints it; `None` if it cannot be read.
#[must_use]
pub fn release(procfs: &Path) -> Option<String> {
    Tree::open(procfs)
        .and_then(|tree| tree.read_string("sys/kernel/osrelease"))
        .ok()
}

/// For how long the node whose procfs is at `procfs` has been up, in nanoseconds; `None` if it cannot be read.
#[must_use]
pub fn uptime(procfs: &Path) -> Option<u64> {
    let text = Tree::open(procfs)
        .and_then(|tree| tree.read_string("uptime"))
        .ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    let uptime = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(uptime.as_nanos()).ok()
}

/// What every source is opened with.
pub(crate) struct Context {
    /// The kernel's files.
    pub tree: Arc<Tree>,
    /// The netdevs of the files are those of this process, so that netlink and ioctl speak of the same.
    pub live: bool,
    /// Which of a driver's statistics get columns.
    pub columns: Columns,
    /// Optional RDMA counters are switched on while they are read.
    pub optional_counters: bool,
}

/// A Linux kernel.
///
/// On its own sysfs, wherever that is mounted, it is also asked by netlink and ioctl; on a copy of one only the files
/// are read.
pub struct Kernel {
    context: Context,
    procfs: PathBuf,
    /// Read at the start: a daemon that has locked itself in cannot open the files any more.
    build: Option<KernelBuild>,
    without_rdma: Once,
}

impl Kernel {
    /// The kernel whose sysfs `options` names.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn new(options: &Options) -> Result<Self, Why> {
        let tree = Tree::open(&options.sysfs)?;
        let live = tree.is_sysfs() && has_these_netdevs(&tree);
        Ok(Self::of(tree, live, options))
    }

    /// What a capture recorded of a kernel's files. What a kernel tells otherwise than by files is not here.
    #[must_use]
    pub fn recorded(files: Files, capture: &Path) -> Self {
        Self::of(Tree::recorded(files, capture), false, &Options::default())
    }

    fn of(tree: Tree, live: bool, options: &Options) -> Self {
        let columns = if options.every_statistic {
            Columns::All
        } else {
            Columns::Known
        };
        Self {
            build: setup::kernel_build(&tree, &options.procfs),
            context: Context {
                tree: Arc::new(tree),
                live,
                columns,
                optional_counters: options.optional_counters,
            },
            procfs: options.procfs.clone(),
            without_rdma: Once::new(),
        }
    }

    /// The files of `ports` for a capture. A device that does not answer within `limit` is left out.
    #[must_use]
    pub fn record(&self, ports: &[Port], limit: Duration) -> Files {
        record::files(&self.context.tree, ports, limit)
    }

    /// Why what is asked by a netdev's name cannot be asked here, if the reason is this process and not the tree.
    fn elsewhere(&self) -> Option<Why> {
        let root = self.context.tree.root().display();
        let detail = format!(
            "the netdevs of {root} are not in this process's network namespace: run it in the host's (hostNetwork: true)"
        );
        (self.context.tree.is_sysfs() && !self.context.live).then(|| Why::new("other_netns", detail))
    }
}

impl Host for Kernel {
    fn ports(&self) -> Result<Vec<Port>, String> {
        self.ports_but(&|_| false)
    }

    fn ports_but(&self, excluded: &dyn Fn(&str) -> bool) -> Result<Vec<Port>, String> {
        let ports = ports::list(&self.context, excluded).map_err(|why| why.to_string())?;
        if !self.context.tree.exists("class/infiniband") {
            let sysfs = self.context.tree.root().display();
            self.without_rdma.call_once(|| {
                tracing::info!("{sysfs}/class/infiniband is not there (no RDMA driver is loaded): Ethernet alone is watched");
            });
        }
        Ok(ports)
    }

    fn open(&self, port: &Port, source: SourceKind) -> Opened {
        match port.link_layer {
            LinkLayer::Ethernet | LinkLayer::Other => {}
            LinkLayer::InfiniBand => {
                let detail = format!("{} is an InfiniBand port, which is listed but not read", port.id);
                return Opened::NotApplicable(Why::new("infiniband", detail));
            }
            LinkLayer::Unknown => {
                let detail = format!("{} does not say whether it is Ethernet or InfiniBand", port.id);
                return Opened::Failed(Why::new("unknown_link_layer", detail));
            }
        }
        let context = &self.context;
        match (source, self.elsewhere()) {
            (SourceKind::Ethtool | SourceKind::Dcb | SourceKind::Module, Some(why)) => {
                Opened::NotApplicable(why)
            }
            (SourceKind::Ethtool, None) => ethtool::open(context, port),
            (SourceKind::Dcb, None) => dcb::open(context, port),
            (SourceKind::Settings, _) => settings::open(context, port),
            (SourceKind::Link, _) => link::open(context, port),
            (SourceKind::HwCounters, _) => rdma::open_hw_counters(context, port),
            (SourceKind::DeviceCounters, _) => rdma::open_device_counters(context, port),
            (SourceKind::PortCounters, _) => rdma::open_port_counters(context, port),
            (SourceKind::Hwmon, _) => hwmon::open(context, port),
            (SourceKind::Aer, _) => aer::open(context, port),
            (SourceKind::Module, None) => module::open(context, port),
            (SourceKind::Verbs, _) => verbs::open(context, port),
            (SourceKind::QpCounters, _) => rdma::open_qp_counters(context, &self.procfs, port),
        }
    }

    fn setup(&self, ports: &[Port]) -> Setup {
        setup::read(&self.context, &self.procfs, self.build.as_ref(), ports)
    }

    fn queue_pairs(&self, port: &Port) -> Result<QueuePairs, Why> {
        rdma::resources::queue_pairs(&Processes::open(&self.procfs)?, port)
    }

    fn queue_pair_count(&self, port: &Port) -> Option<u64> {
        rdma::resources::queue_pair_count(port)
    }

    fn changes(&self) -> Result<Box<dyn Changes>, Why> {
        match self.elsewhere() {
            Some(why) => Err(why),
            None => changes::open(&self.context),
        }
    }
}

/// True unless a netdev of the tree is not in this process's network namespace under the same name and index.
fn has_these_netdevs(tree: &Tree) -> bool {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let socket = match socket {
        Ok(socket) => socket,
        Err(errno) => {
            let why = why_from_errno(errno, "opening a socket to compare network namespaces");
            tracing::warn!(%why, "netdevs are read from files only");
            return false;
        }
    };
    let mut physical = ports::physical_names(tree).into_iter();
    physical.all(|(name, ifindex)| netdevice::name_to_index(&socket, &name) == Ok(ifindex))
}
