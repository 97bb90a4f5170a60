//! A source that is read ten times a second on every port allocates nothing.
#![allow(clippy::disallowed_methods)] // the tests write the files that are read

mod support;

use model::{Read, SourceKind};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::Sysfs;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `alloc` above, so from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn reading_a_row_allocates_nothing() {
    let sysfs = Sysfs::new();
    sysfs.nic(0);
    // A counter that fails costs nothing either.
    sysfs.break_file("class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent");
    for kind in [SourceKind::HwCounters, SourceKind::PortCounters, SourceKind::Link] {
        let mut source = sysfs.active("mlx5_0", kind);
        let mut row = vec![0; source.schema().columns.len()];
        let before = ALLOCATIONS.get();
        assert_eq!(source.read(&mut row), Read::Row);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{kind}");
    }
}
