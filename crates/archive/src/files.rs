//! The one place where the archive's files are reached.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A folder of files, as far as the archive needs one. Paths are relative to it.
pub(crate) trait Disk: Send + Sync {
    /// Makes a folder and those above it; that it is there already is no error.
    fn make_folder(&self, folder: &str) -> io::Result<()>;
    /// Keeps other writers out for as long as the lock lives; [`io::ErrorKind::WouldBlock`] if there is one.
    fn lock(&self) -> io::Result<Lock>;
    /// Names in a folder; none if there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Opens a file to read.
    fn open(&self, path: &str) -> io::Result<Box<dyn Source>>;
    /// Opens a file to append to it, and makes it if there is none.
    fn append(&self, path: &str) -> io::Result<Box<dyn Sink>>;
    /// Removes a file; that there is none is no error.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Gives a file another name, in place of a file that may have it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes the names in a folder survive a power loss.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;
}

/// A file that is read. It stays readable when it is removed.
pub(crate) trait Source: Send + Sync {
    /// Bytes in it now.
    fn length(&self) -> io::Result<u64>;
    /// `length` bytes from `at` on.
    fn read_at(&self, at: u64, length: usize) -> io::Result<Vec<u8>>;

    /// All of it.
    fn read(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.length()?).map_err(io::Error::other)?;
        self.read_at(0, length)
    }
}

/// A file that is appended to.
pub(crate) trait Sink: Send {
    /// Appends all bytes; after an error, any part of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file off.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Makes what was appended survive a power loss.
    fn sync(&mut self) -> io::Result<()>;
}

/// Held by the one writer of a folder.
pub(crate) struct Lock(#[allow(dead_code)] Option<File>); // held, never looked at: closing it gives the lock up

impl Lock {
    /// The lock of a disk that only one can reach.
    #[cfg(test)]
    pub(crate) fn unneeded() -> Self {
        Self(None)
    }
}

/// Whether there is a folder here.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// A folder of the machine's file system.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

/// Counters tell of jobs and of neighbours: they are not for everyone to read.
const MODE: u32 = 0o640;

#[allow(clippy::disallowed_methods)] // this is the place
impl Disk for Folder {
    fn make_folder(&self, folder: &str) -> io::Result<()> {
        std::fs::create_dir_all(self.0.join(folder))
    }

    fn lock(&self) -> io::Result<Lock> {
        let file = options().open(self.0.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(Some(file))),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.0.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        // The archive names its files in ASCII; any other is none of its own.
        entries
            .filter_map(|entry| match entry {
                Ok(entry) => entry.file_name().into_string().ok().map(Ok),
                Err(error) => Some(Err(error)),
            })
            .collect()
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(File::open(self.0.join(path))?))
    }

    fn append(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(options().open(self.0.join(path))?))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        match std::fs::remove_file(self.0.join(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.0.join(from), self.0.join(to))
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        File::open(self.0.join(folder))?.sync_all()
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(MODE);
    options
}

impl Source for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

/// A file that is in memory as a whole.
impl Source for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        let part = self.get(at..).and_then(|rest| rest.get(..length));
        Ok(part.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec())
    }
}

impl Sink for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
