//! What one interface answers about its statistics.

use super::buffer::Buffer;
use super::ioctl::{self, Interface};
use super::watch::{Notice, Watch};
use rustix::io::Errno;

/// The kernel's answers about one interface; a test has others.
pub(super) trait Nic: Send {
    /// Index of the interface that has the name now.
    fn ifindex(&mut self) -> Result<u32, Errno>;

    /// How many statistics there are, 0 if the driver has none.
    fn count(&mut self) -> Result<usize, Errno>;

    /// Names, asked for `count` of them, [`ioctl::NAME`] bytes each. An answer of another length (the kernel's is then 0)
    /// says that there are no longer `count`.
    fn names(&mut self, count: usize) -> Result<&[u8], Errno>;

    /// Values, asked for `count` of them; the same holds of the answer's length.
    fn values(&mut self, count: usize) -> Result<&[u64], Errno>;

    /// What can be said of the names since this was last asked.
    fn notice(&mut self) -> Notice;
}

/// The running kernel.
pub(super) struct Kernel {
    interface: Interface,
    watch: Option<Watch>,
    names: Buffer,
    values: Buffer,
}

impl Kernel {
    /// The interface of this name and index.
    pub(super) fn new(name: &str, ifindex: u32) -> Result<Self, Errno> {
        Ok(Self {
            interface: Interface::new(name)?,
            watch: Watch::new(name, ifindex).ok(),
            names: Buffer::new(0)?,
            values: Buffer::new(0)?,
        })
    }
}

impl Nic for Kernel {
    fn ifindex(&mut self) -> Result<u32, Errno> {
        self.interface.ifindex()
    }

    fn count(&mut self) -> Result<usize, Errno> {
        self.interface.count()
    }

    fn names(&mut self, count: usize) -> Result<&[u8], Errno> {
        make_room(&mut self.names, ioctl::cells_for_names(count))?;
        self.interface.names(count, &mut self.names)
    }

    fn values(&mut self, count: usize) -> Result<&[u64], Errno> {
        make_room(&mut self.values, ioctl::cells_for_values(count))?;
        self.interface.values(count, &mut self.values)
    }

    fn notice(&mut self) -> Notice {
        self.watch.as_mut().map_or(Notice::Unknown, Watch::look)
    }
}

fn make_room(buffer: &mut Buffer, cells: usize) -> Result<(), Errno> {
    if buffer.cells().len() < cells {
        *buffer = Buffer::new(cells)?;
    }
    Ok(())
}
