//! What cannot be read, and why nothing at all can be.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A part of the archive that cannot be read. It was left out; all around it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, within the archive's folder.
    pub file: String,
    /// Where it begins, in bytes.
    pub at: u64,
    /// How long it is.
    pub bytes: u64,
    /// What happened, as far as can be told.
    pub cause: Cause,
    /// A few words for people.
    pub why: String,
}

/// How a part of the archive came to be unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was being written when the agent or the machine died. Expected, and no fault of the disk.
    Torn,
    /// It was whole once and is no longer: a fault of the disk or a change by others.
    Damaged,
}

impl Damage {
    /// A file that the disk does not give.
    pub(crate) fn unreadable(file: &str, length: u64, error: &io::Error) -> Self {
        Self {
            file: file.to_owned(),
            at: 0,
            bytes: length,
            cause: Cause::Damaged,
            why: error.to_string(),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.cause {
            Cause::Torn => "were not written to the end",
            Cause::Damaged => "cannot be read",
        };
        let Self {
            file, at, bytes, why, ..
        } = self;
        write!(f, "{file}: {bytes} bytes at {at} {what}: {why}")
    }
}

/// Why an archive cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another version of Rocewatch wrote it.
    #[error(
        "{file} is of format {found}, and this version of rocewatch reads format {} only: use the version that wrote \
         it, or give the agent another folder",
        crate::frame::FORMAT
    )]
    Format {
        /// The file.
        file: String,
        /// Its format.
        found: u8,
    },
    /// Another process writes it.
    #[error("another rocewatch writes this archive: stop it, or give one of them another folder")]
    Locked,
    /// A folder with something else in it.
    #[error("there is no archive in {}: give the folder that the agent writes to, or a pin", .0.display())]
    None(PathBuf),
    /// The file system does not let it be read.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// What the kernel said.
        #[source]
        error: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |error| Self::Io { what, error }
    }
}
