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

/// Writes a file anew.
#[allow(clippy::disallowed_methods)] // this is the place
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    std::fs::write(path, content)
}
