//! What a node's NICs said, as a file: taken on one machine, read on another as if it were that machine.
//!
//! A [`Recording`] is a tree of files and, for each source, one or two [`Reading`]s. On disk it is a folder or a
//! `.tar.zst` of it ([`load`], [`store`]), every part of it plain text: a bug report can be read before it is sent, and
//! becomes a fixture as it is. [`Replay`] plays it; [`Key`] puts pseudonyms for addresses. `docs/capture-format.md` is
//! the format.

mod files;
mod package;
mod pci_space;
mod pseudonym;
mod reading;
mod recording;
mod replay;
mod text;

pub use files::{Files, Miss, Node};
pub use package::{PackageError, load, pack, store, unpack};
pub use pseudonym::Key;
pub use reading::{Answer, Reading};
pub use recording::{About, BadCapture, Place, Recording};
pub use replay::Replay;
pub use text::BadLine;
