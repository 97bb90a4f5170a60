//! The one place where the agent reads files of its own. The kernel's files are read in crate `linux`.

use std::io;
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

/// True if there is a file.
pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Writes a file that must not be there yet.
#[allow(clippy::disallowed_methods, clippy::disallowed_types)] // this is the place
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    use io::Write as _;
    std::fs::File::create_new(path)?.write_all(content)
}

/// Writes a file anew.
#[allow(clippy::disallowed_methods)] // this is the place
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    std::fs::write(path, content)
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
