//! Reads RoCE counters and facts from a Linux kernel.

#[cfg(test)]
mod allocations;
mod changes;
mod clock;
mod dcb;
mod ethtool;
#[cfg(test)]
mod guest;
mod netlink;
#[cfg(test)]
mod netns;
mod route;
mod settings;
mod tree;
#[cfg(test)]
mod warm;

use std::sync::Arc;

pub(crate) use tree::{Tree, why_from_errno};

/// The running kernel, as far as this crate can read it yet.
pub struct Kernel(Context);

impl Kernel {
    /// The kernel whose sysfs is mounted at `/sys`.
    #[must_use]
    pub fn new(every_statistic: bool) -> Self {
        let columns = if every_statistic {
            ethtool::Columns::All
        } else {
            ethtool::Columns::Known
        };
        Self(Context {
            tree: Arc::new(Tree::open("/sys".as_ref()).expect("sysfs")),
            live: true,
            columns,
        })
    }

    /// Opens a source of a port.
    #[must_use]
    pub fn open(&self, port: &model::Port, source: model::SourceKind) -> model::Opened {
        match source {
            model::SourceKind::Ethtool => ethtool::open(&self.0, port),
            model::SourceKind::Settings => settings::open(&self.0, port),
            model::SourceKind::Dcb => dcb::open(&self.0, port),
            _ => model::Opened::NotApplicable(model::Why::new("not_here", "another branch reads it")),
        }
    }

    /// What changes from now on.
    ///
    /// # Errors
    /// Why changes cannot be followed.
    pub fn changes(&self) -> Result<Box<dyn model::Changes>, model::Why> {
        changes::open(&self.0)
    }
}

/// What every source is opened with.
pub(crate) struct Context {
    /// The kernel's files.
    pub tree: Arc<Tree>,
    /// The files are this kernel's own, so that netlink and ioctl speak of the same devices.
    pub live: bool,
    /// Which of a driver's statistics get columns.
    pub columns: ethtool::Columns,
}
