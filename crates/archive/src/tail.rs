//! A file that grows, and that is mended when a write fails half-way.

use crate::files::{Disk, Sink};
use std::io;

/// The end of a file.
pub(crate) struct Tail {
    file: Box<dyn Sink>,
    /// What was appended as a whole.
    length: u64,
    unsynced: bool,
    /// What is behind `length` could not be cut off, or what was written may not be there: nothing may follow it.
    broken: bool,
}

impl Tail {
    /// Opens a file of which `length` bytes are to be kept.
    pub(crate) fn open(disk: &dyn Disk, path: &str, length: u64) -> io::Result<Self> {
        let mut file = disk.append(path)?;
        file.truncate(length)?;
        Ok(Self {
            file,
            length,
            unsynced: true,
            broken: false,
        })
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// True if one must go on in another file.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Appends all of `bytes` or, as far as a reader can see, nothing.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.append(bytes) {
            self.broken = self.file.truncate(self.length).is_err();
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.unsynced = true;
        Ok(())
    }

    /// Makes what was appended survive a power loss.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            // After a failure the kernel takes the pages for written (fsync(2)): a second try would succeed and be wrong.
            self.file.sync().inspect_err(|_| self.broken = true)?;
            self.unsynced = false;
        }
        Ok(())
    }
}
