//! The memory that writer and readers share, and the protocol between them.
//!
//! A slot's sequence word is 0 before its first row, `2 × generation + 1` while row number
//! `generation × rows + slot` is being written, and `2 × generation + 2` when it is complete.

use crate::row::{Row, Window};
use crate::sync::{AtomicU64, Ordering, fence};

/// Cells of a slot before the values: the window.
const HEAD: usize = 2;

pub(crate) struct Slots {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    sequences: Box<[AtomicU64]>,
    cells: Box<[AtomicU64]>,
    /// Rows pushed so far.
    pushed: AtomicU64,
    closed: AtomicU64,
}

impl Slots {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            columns,
            rows,
            sequences: zeros(rows),
            cells: zeros(rows * (columns + HEAD)),
            pushed: AtomicU64::new(0),
            closed: AtomicU64::new(0),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.sequences.len() + self.cells.len()) * size_of::<AtomicU64>()
    }

    pub(crate) fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closed.store(1, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
    }

    fn slot_of(&self, number: u64) -> (usize, u64) {
        let rows = self.rows as u64;
        // The remainder is below `rows`, which is a usize.
        #[allow(clippy::cast_possible_truncation)]
        ((number % rows) as usize, 2 * (number / rows))
    }

    fn cells_of(&self, slot: usize) -> &[AtomicU64] {
        let width = self.columns + HEAD;
        &self.cells[slot * width..(slot + 1) * width]
    }

    /// Writes row `number`. To be called by one thread, with ascending numbers.
    pub(crate) fn write(&self, number: u64, window: Window, values: &[u64]) {
        let (slot, generation) = self.slot_of(number);
        let sequence = &self.sequences[slot];
        sequence.store(generation + 1, Ordering::Relaxed);
        // A reader that sees any of the new cells also sees that they are being written.
        fence(Ordering::Release);
        let cells = self.cells_of(slot);
        cells[0].store(window.began, Ordering::Relaxed);
        cells[1].store(window.ended, Ordering::Relaxed);
        for (cell, value) in cells[HEAD..].iter().zip(values) {
            cell.store(*value, Ordering::Relaxed);
        }
        sequence.store(generation + 2, Ordering::Release);
        self.pushed.store(number + 1, Ordering::Release);
    }

    /// Lets `copy` read the window and the values of row `number`; false, with whatever was copied worthless, if the
    /// row is not or no longer there as a whole.
    pub(crate) fn read(&self, number: u64, copy: impl FnOnce(Window, &[AtomicU64])) -> bool {
        let (slot, generation) = self.slot_of(number);
        let complete = generation + 2;
        let sequence = &self.sequences[slot];
        if sequence.load(Ordering::Acquire) != complete {
            return false;
        }
        let cells = self.cells_of(slot);
        let window = Window {
            began: cells[0].load(Ordering::Relaxed),
            ended: cells[1].load(Ordering::Relaxed),
        };
        copy(window, &cells[HEAD..]);
        // The cells are read before the sequence word is looked at again.
        fence(Ordering::Acquire);
        sequence.load(Ordering::Relaxed) == complete
    }

    /// Copies row `number` as a whole or says that it is not there.
    pub(crate) fn copy(&self, number: u64, row: &mut Row) -> bool {
        row.number = number;
        let Row { window, values, .. } = row;
        self.read(number, |found, cells| {
            *window = found;
            for (value, cell) in values.iter_mut().zip(cells) {
                *value = cell.load(Ordering::Relaxed);
            }
        })
    }
}
