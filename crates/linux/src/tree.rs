//! The kernel's files, and errors as reasons.

use model::Why;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// A sysfs, the kernel's own or a copy.
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(crate) fn open(root: &Path) -> Result<Self, Why> {
        Ok(Self {
            root: root.to_owned(),
        })
    }

    #[allow(clippy::disallowed_methods)] // the one place
    pub(crate) fn read_string(&self, path: &str) -> Result<String, Why> {
        let path = self.root.join(path);
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error: io::Error| {
            why_from_errno(
                Errno::from_io_error(&error).unwrap_or(Errno::IO),
                &path.display().to_string(),
            )
        })?;
        Ok(text.trim_end().to_owned())
    }
}

/// The reason of an errno, met at `what`.
pub(crate) fn why_from_errno(errno: Errno, what: &str) -> Why {
    let reason = match errno {
        Errno::NODEV => "ENODEV",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::PERM => "EPERM",
        Errno::INVAL => "EINVAL",
        Errno::NOENT => "ENOENT",
        Errno::IO => "EIO",
        Errno::TIMEDOUT => "ETIMEDOUT",
        Errno::BUSY => "EBUSY",
        Errno::AGAIN => "EAGAIN",
        _ => "errno",
    };
    Why::new(reason, format!("{what}: {}", io::Error::from(errno)))
}
