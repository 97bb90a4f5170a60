//! Captures on disk: a folder, or the same packed as `.tar.zst`. Nothing else in this crate opens a file.

#![allow(clippy::disallowed_methods)] // the one place of this crate that reads and writes files

use crate::{BadCapture, Recording};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Longest capture that is read, unpacked. One of a node with 256 ports has 30 MB.
const LIMIT: u64 = 256 << 20;
/// Most parts of a capture.
const PARTS: usize = 100_000;
/// How well it is packed: text of sysfs shrinks to a twentieth at the default already.
const LEVEL: i32 = 3;
/// Rights of a packed part: a capture holds addresses, and belongs to who took it.
const MODE: u32 = 0o600;

/// Why a capture could not be loaded or stored.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// Reading or writing failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// At which file.
        path: PathBuf,
        /// How.
        error: io::Error,
    },
    /// It is no capture.
    #[error("{}: {error}", path.display())]
    Bad {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: BadCapture,
    },
}

/// Loads the capture at `path`, a folder or a `.tar.zst`.
///
/// # Errors
/// It cannot be read, or is no capture.
pub fn load(path: &Path) -> Result<Recording, PackageError> {
    let io = |error| PackageError::Io {
        path: path.to_owned(),
        error,
    };
    let members = if fs::metadata(path).map_err(io)?.is_dir() {
        let mut members = BTreeMap::new();
        collect(path, path, &mut members).map_err(io)?;
        members
    } else {
        packed_members(File::open(path).map_err(io)?).map_err(io)?
    };
    Recording::from_members(&members).map_err(|error| PackageError::Bad {
        path: path.to_owned(),
        error,
    })
}

/// The capture that is packed in these bytes.
///
/// # Errors
/// They are no `.tar.zst`, or no capture.
pub fn unpack(packed: impl Read) -> io::Result<Recording> {
    let members = packed_members(packed)?;
    Recording::from_members(&members).map_err(|error| invalid(error.to_string()))
}

/// Packs `recording` into a new file at `path`.
///
/// # Errors
/// There is a file already, or it cannot be written.
pub fn store(recording: &Recording, path: &Path) -> Result<(), PackageError> {
    let io = |error| PackageError::Io {
        path: path.to_owned(),
        error,
    };
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, MODE);
    let file = options.open(path).map_err(io)?;
    pack(recording, file).map_err(io)
}

/// Packs `recording` as `.tar.zst`.
///
/// # Errors
/// `out` cannot be written.
pub fn pack(recording: &Recording, out: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(zstd::Encoder::new(out, LEVEL)?);
    for (name, content) in recording.members() {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(MODE);
        archive.append_data(&mut header, name, content.as_bytes())?;
    }
    archive.into_inner()?.finish()?.flush()
}

/// The parts of a packed capture.
fn packed_members(packed: impl Read) -> io::Result<BTreeMap<String, String>> {
    let no_capture = |error| {
        invalid(format!(
            "it is no capture, which is a .tar.zst or a folder: {error}"
        ))
    };
    let unpacked = zstd::Decoder::new(packed)?.take(LIMIT);
    let mut archive = tar::Archive::new(unpacked);
    let mut members = BTreeMap::new();
    let mut whole = 0;
    for entry in archive.entries().map_err(no_capture)? {
        let mut entry = entry.map_err(no_capture)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.into_owned();
        let name = path
            .to_str()
            .map(|name| name.trim_start_matches("./").to_owned())
            .ok_or_else(|| invalid("a part whose name is no text".to_owned()))?;
        let mut content = String::new();
        let read = entry.read_to_string(&mut content);
        read.map_err(|error| invalid(format!("{name}: {error}")))?;
        whole += content.len() as u64;
        add(&mut members, name, content)?;
    }
    if whole >= LIMIT {
        return Err(too_long());
    }
    Ok(members)
}

/// The parts in a folder. Files whose name begins with a dot, or is `README.md`, are no parts.
fn collect(root: &Path, folder: &Path, members: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.starts_with('.') || name == "README.md" {
            continue;
        }
        if fs::metadata(&path)?.is_dir() {
            collect(root, &path, members)?;
            continue;
        }
        let mut content = String::new();
        let at = |error| invalid(format!("{}: {error}", path.display()));
        File::open(&path)?
            .take(LIMIT)
            .read_to_string(&mut content)
            .map_err(at)?;
        let name = path.strip_prefix(root).ok().and_then(Path::to_str);
        let name = name.ok_or_else(|| invalid(format!("{} has a name that is no text", path.display())))?;
        add(members, name.to_owned(), content)?;
    }
    Ok(())
}

fn add(members: &mut BTreeMap<String, String>, name: String, content: String) -> io::Result<()> {
    if members.len() == PARTS {
        return Err(invalid(format!("it has more than {PARTS} parts")));
    }
    members.insert(name, content);
    Ok(())
}

fn too_long() -> io::Error {
    invalid(format!("it is longer than {} MiB unpacked", LIMIT >> 20))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
