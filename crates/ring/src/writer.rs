//! The one writer of a ring.

use crate::row::Window;
use crate::slots::Slots;
use crate::sync::Arc;

/// Puts rows into a ring. When it is dropped, readers keep what is there.
pub struct Writer {
    slots: Arc<Slots>,
    next: u64,
}

impl Writer {
    pub(crate) fn new(slots: Arc<Slots>) -> Self {
        Self { slots, next: 0 }
    }

    /// Puts in a row, over the oldest if the ring is full. Never waits, never allocates.
    ///
    /// # Panics
    /// If the row has not as many values as the ring has columns.
    pub fn push(&mut self, window: Window, values: &[u64]) {
        assert_eq!(values.len(), self.slots.columns, "a row has one value per column");
        self.slots.write(self.next, window, values);
        self.next += 1;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.slots.close();
    }
}
