//! Memory that the kernel writes statistics into.

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::slice;

/// Zeroed 64-bit cells with an inaccessible page behind them.
///
/// A kernel before January 2026 (without its commit 7b07be1ff1cb) ignores how many statistics the caller has room for
/// and writes as many as there are at that moment. No slack is enough against that; the page is: a copy that runs
/// into it ends with `EFAULT`, and nothing of this process is overwritten.
pub(super) struct Buffer {
    start: NonNull<u64>,
    cells: usize,
    mapped: usize,
}

// SAFETY: the mapping belongs to the value alone and is not tied to a thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Room for at least `cells`.
    pub(super) fn new(cells: usize) -> Result<Self, Errno> {
        let page = rustix::param::page_size();
        let usable = (cells * size_of::<u64>()).next_multiple_of(page).max(page);
        let mapped = usable + page;
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        let start = NonNull::new(start.cast::<u64>()).ok_or(Errno::NOMEM)?;
        let buffer = Self {
            start,
            cells: usable / size_of::<u64>(),
            mapped,
        };
        let behind = start.as_ptr().cast::<u8>().wrapping_add(usable).cast::<c_void>();
        // SAFETY: the page is the last of the mapping just made, and nothing refers to it yet.
        unsafe { mprotect(behind, page, MprotectFlags::empty()) }?;
        Ok(buffer)
    }

    /// The address to hand to the kernel.
    pub(super) fn address(&mut self) -> *mut c_void {
        self.start.as_ptr().cast()
    }

    /// What it holds.
    pub(super) fn cells(&self) -> &[u64] {
        // SAFETY: `cells` cells from `start`, which is page-aligned, are mapped readable until `self` is dropped, were
        // zeroed by the kernel, and are written through `&mut self` only.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.cells) }
    }

    /// What it holds, for writing.
    pub(super) fn cells_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `cells`, and `&mut self` makes the borrow the only one.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.cells) }
    }

    /// What it holds, as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the same memory as in `cells`; every bit pattern is a valid byte.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.cells * size_of::<u64>()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping of `new`, and no borrow of it outlives `self`. A failure leaks it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn it_is_zeroed_and_holds_what_is_written() {
        let mut buffer = Buffer::new(3).unwrap();
        assert!(buffer.cells().len() >= 3);
        assert!(buffer.cells().iter().all(|&cell| cell == 0));
        buffer.cells_mut()[1] = 0x0807_0605_0403_0201u64.to_le();
        assert_eq!(&buffer.bytes()[8..11], [1, 2, 3]);
    }

    #[test]
    fn a_kernel_that_writes_too_much_gets_efault() {
        let mut buffer = Buffer::new(1).unwrap();
        let page = rustix::param::page_size();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 3 * page]).unwrap();
        // SAFETY: the kernel writes to the mapping only, up to the page that it must not write to.
        let read = unsafe { libc::pread(file.as_raw_fd(), buffer.address(), 3 * page, 0) };
        // A file read stops at the fault and tells how far it came.
        assert_eq!(read, isize::try_from(page).unwrap());
        assert!(buffer.bytes().iter().all(|&byte| byte == 7));
    }
}
