//! Memory of the process.

/// Gives the kernel the pages that were freed and that the allocator keeps for later, of every thread's part of the heap.
/// The GNU C library gives back the end of a part alone, and only when there is much of it (mallopt(3), `M_TRIM_THRESHOLD`);
/// other C libraries keep less, and have no such call.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) may be called at any time, from any thread (MT-Safe), and touches free memory alone.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    #[test]
    #[cfg(target_env = "gnu")]
    fn what_was_freed_goes_back() {
        let process = Process::own().expect("procfs is mounted");
        let resident = || process.usage().expect("the kernel tells").resident_bytes;
        // Pieces below the size that is mapped by itself, the last of which stays in the way of the end of the heap.
        let mut pieces: Vec<Vec<u8>> = (0..2_000).map(|_| vec![1; 16 << 10]).collect();
        let full = resident();
        let last = pieces.split_off(1_999);
        drop(pieces);
        give_back_memory();
        let most_of_it = 20 << 20;
        assert!(resident() + most_of_it < full, "{} of {full}", resident());
        assert_eq!(last.len(), 1);
    }
}
