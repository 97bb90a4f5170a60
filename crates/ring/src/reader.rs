//! Readers of a ring: any number, none of which the writer ever notices.

use crate::row::{Row, Window};
use crate::slots::Slots;
use crate::sync::{Arc, Ordering, spin_loop};

/// Reads rows of a ring by number or time. A copy reads the same ring.
#[derive(Clone)]
pub struct Reader {
    slots: Arc<Slots>,
}

/// Why a row cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It has not been written yet.
    NotYet,
    /// It was overwritten.
    Gone,
}

impl Reader {
    pub(crate) fn new(slots: Arc<Slots>) -> Self {
        Self { slots }
    }

    /// Values per row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.slots.columns
    }

    /// Rows that the ring holds at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.rows
    }

    /// Memory of the ring in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    /// Rows written so far, those that were overwritten included.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.slots.pushed()
    }

    /// True once there will be no further row.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.slots.is_closed()
    }

    /// A buffer that fits this ring's rows.
    #[must_use]
    pub fn row(&self) -> Row {
        Row {
            number: 0,
            window: Window::default(),
            values: vec![0; self.columns()].into(),
        }
    }

    /// Number of the oldest row that may still be there.
    fn oldest(&self) -> u64 {
        self.pushed().saturating_sub(self.slots.rows as u64)
    }

    /// Copies row `number` into `row`, as a whole or not at all.
    ///
    /// # Errors
    /// If the row is not there; what `row` then holds is worthless.
    pub fn read(&self, number: u64, row: &mut Row) -> Result<(), Unavailable> {
        if self.slots.copy(number, row) {
            Ok(())
        } else if number >= self.pushed() {
            Err(Unavailable::NotYet)
        } else {
            Err(Unavailable::Gone)
        }
    }

    /// Copies the newest row; false if there is none.
    pub fn latest(&self, row: &mut Row) -> bool {
        loop {
            match self.pushed().checked_sub(1) {
                None => return false,
                // It can be overwritten meanwhile, but only by newer ones.
                Some(newest) if self.read(newest, row).is_ok() => return true,
                Some(_) => spin_loop(),
            }
        }
    }

    /// Copies the newest row whose read ended at or before `time`; false if none is left.
    pub fn at_or_before(&self, time: u64, row: &mut Row) -> bool {
        let (mut low, mut high) = (self.oldest(), self.pushed());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.ended(middle) {
                Some(ended) if ended > time => high = middle,
                _ => low = middle + 1,
            }
        }
        low.checked_sub(1)
            .is_some_and(|number| self.read(number, row).is_ok() && row.window.ended <= time)
    }

    fn ended(&self, number: u64) -> Option<u64> {
        let mut ended = 0;
        self.slots
            .read(number, |window, _| ended = window.ended)
            .then_some(ended)
    }

    /// Shows `visit` the window and one column's value of each row that is there and whose read ended in
    /// `from..=to`, in order.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, column: usize, from: u64, to: u64, mut visit: impl FnMut(Window, u64)) {
        assert!(column < self.columns(), "no column {column}");
        for number in self.oldest()..self.pushed() {
            let mut found = (Window::default(), 0);
            let whole = self.slots.read(number, |window, cells| {
                found = (window, cells[column].load(Ordering::Relaxed));
            });
            if whole && (from..=to).contains(&found.0.ended) {
                visit(found.0, found.1);
            }
        }
    }
}

/// Follows a ring: gives every row once, in order.
pub struct Cursor {
    reader: Reader,
    next: u64,
}

/// What a cursor found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next row.
    Row,
    /// So many rows were overwritten before they were read; the next call goes on behind them.
    Lost(u64),
    /// Nothing new.
    None,
}

impl Cursor {
    /// A cursor before the oldest row that is there.
    #[must_use]
    pub fn new(reader: Reader) -> Self {
        let next = reader.oldest();
        Self { reader, next }
    }

    /// The ring that is followed.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Copies the next row into `row`.
    pub fn next(&mut self, row: &mut Row) -> Next {
        match self.reader.read(self.next, row) {
            Ok(()) => {
                self.next += 1;
                Next::Row
            }
            Err(Unavailable::NotYet) => Next::None,
            Err(Unavailable::Gone) => {
                // At least one: the row may be on its way out while `oldest` still counts it.
                let next = self.reader.oldest().max(self.next + 1);
                let lost = next - self.next;
                self.next = next;
                Next::Lost(lost)
            }
        }
    }
}
