//! A ring of rows with one writer and any number of readers: lock-free, wait-free for the writer, without `unsafe` and
//! without allocation after its creation.
//!
//! Each slot has a sequence word that counts generations, a seqlock. Its cells are atomic, so a reader that races the
//! writer reads defined values, sees by the sequence word that they may be torn, and never returns them.

mod reader;
mod row;
mod slots;
mod sync;
mod writer;

pub use reader::{Cursor, Next, Reader, Unavailable};
pub use row::{Row, Window};
pub use writer::Writer;

use slots::Slots;
use sync::Arc;

/// A ring that holds the newest `rows` rows of `columns` values each.
///
/// # Panics
/// If `rows` is zero.
#[must_use]
pub fn channel(columns: usize, rows: usize) -> (Writer, Reader) {
    assert!(rows > 0, "a ring holds at least one row");
    let slots = Arc::new(Slots::new(columns, rows));
    (Writer::new(Arc::clone(&slots)), Reader::new(slots))
}
