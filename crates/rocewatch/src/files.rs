//! The one place where the agent reads files of its own. The kernel's files are read in crate `linux`.

use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Makes sure that there is a directory.
#[allow(clippy::disallowed_methods)] // this is the place
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

/// A configuration file's text.
#[allow(clippy::disallowed_methods)] // this is the place
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// A file's bytes.
#[allow(clippy::disallowed_methods)] // this is the place
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// What tells one content of a file from the next without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of the file as it is now; `None` if there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let data = std::fs::metadata(path).ok()?;
        Some(Self {
            file: (data.dev(), data.ino()),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }
}

/// True if there is a file.
pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Writes a file that must not be there yet.
#[allow(clippy::disallowed_methods, clippy::disallowed_types)] // this is the place
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    std::fs::File::create_new(path)?.write_all(content)
}

/// Writes a file anew.
#[allow(clippy::disallowed_methods)] // this is the place
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    std::fs::write(path, content)
}

/// How the names end of files that [`write_whole`] was interrupted in.
pub(crate) const UNFINISHED: &str = ".new";

/// Writes a file so that, whenever the process ends, it is there as a whole or not at all.
#[allow(clippy::disallowed_methods)] // this is the place
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(content)?;
    file.sync_data()?;
    std::fs::rename(new, path)
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

/// Names and sizes of what is in a folder.
#[allow(clippy::disallowed_methods)] // this is the place
pub(crate) fn list(folder: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.metadata()?.len()));
        }
    }
    Ok(found)
}

/// The node's name; `None` if it cannot be read.
pub(crate) fn node_name() -> Option<String> {
    let text = read_text(Path::new("/proc/sys/kernel/hostname")).ok()?;
    Some(text.trim().to_owned())
}

/// A number that no other call has given, on this machine or another.
pub(crate) fn unique_number() -> io::Result<[u8; 16]> {
    let text = read_text(Path::new("/proc/sys/kernel/random/uuid"))?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16)
        .map(u128::to_be_bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
