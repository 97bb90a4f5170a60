//! What the kernel accounts to this process: a read and three calls, since a scrape pays for it each time. Reading
//! `/proc/PID/stat`, which has it all, makes the kernel gather and write 52 numbers.

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, openat};
use rustix::io::pread;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use std::time::Duration;

/// Longest `/proc/PID/statm`: seven numbers.
const STATM: usize = 256;

/// Where this process's figures are read.
#[derive(Debug)]
pub struct Process {
    statm: OwnedFd,
    /// The folder of its threads.
    threads: OwnedFd,
    /// The folder of its descriptors.
    descriptors: OwnedFd,
    most_open_files: Option<u64>,
}

/// The figures now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// CPU time of all threads, in user space and in the kernel.
    pub cpu: Duration,
    /// Threads.
    pub threads: u64,
    /// Address space.
    pub virtual_bytes: u64,
    /// Memory that is resident.
    pub resident_bytes: u64,
    /// Open descriptors; `None` if they cannot be counted.
    pub open_files: Option<u64>,
    /// How many there might be at the start; `None` if there was no limit. Only prlimit(2) from outside changes it later.
    pub most_open_files: Option<u64>,
}

impl Process {
    /// This process; `None` where no procfs is mounted.
    #[must_use]
    pub fn own() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let open = |path, more| openat(CWD, path, flags | more, Mode::empty()).ok();
        Some(Self {
            statm: open("/proc/self/statm", OFlags::empty())?,
            threads: open("/proc/self/task", OFlags::DIRECTORY)?,
            descriptors: open("/proc/self/fd", OFlags::DIRECTORY)?,
            most_open_files: getrlimit(Resource::Nofile).current,
        })
    }

    /// Its figures now; `None` if the kernel tells them in a way that nobody knew of.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let mut content = [0; STATM];
        let length = pread(&self.statm, &mut content, 0).ok()?;
        let (size, resident) = pages(content.get(..length)?)?;
        let page = page_size() as u64;
        Some(Usage {
            cpu: cpu_time()?,
            threads: threads(&self.threads)?,
            virtual_bytes: size * page,
            resident_bytes: resident * page,
            open_files: open_files(&self.descriptors),
            most_open_files: self.most_open_files,
        })
    }
}

/// By the C library: what rustix does to find the clock's shortest way crashes under valgrind, by which `./x cost` counts.
fn cpu_time() -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is one `struct timespec` and lives.
    let outcome = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    let (seconds, nanoseconds) = (time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?);
    (outcome == 0).then(|| Duration::new(seconds, nanoseconds))
}

/// All pages, and those that are resident: the first two numbers of `proc_pid_statm(5)`.
fn pages(statm: &[u8]) -> Option<(u64, u64)> {
    let mut fields = std::str::from_utf8(statm).ok()?.split_ascii_whitespace();
    let mut next = || fields.next()?.parse().ok();
    Some((next()?, next()?))
}

/// As every directory it has two links, and besides one for each thread (`proc_task_getattr` of fs/proc/base.c).
#[allow(clippy::useless_conversion)] // narrower on arm64
fn threads(folder: &OwnedFd) -> Option<u64> {
    u64::from(fstat(folder).ok()?.st_nlink).checked_sub(2)
}

/// The directory's size tells since 6.2 (commit f1f1f2569901); before, it was zero.
fn open_files(folder: &OwnedFd) -> Option<u64> {
    let size = fstat(folder).ok()?.st_size;
    if size > 0 {
        return size.try_into().ok();
    }
    let entries = Dir::read_from(folder).ok()?;
    // Two lead to directories, and one is the descriptor that is being listed.
    Some((entries.count() as u64).saturating_sub(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_come_first_and_resident_ones_second() {
        assert_eq!(pages(b"4711 815 400 3 0 900 0\n"), Some((4711, 815)));
        assert_eq!(pages(b"4711\n"), None);
        assert_eq!(pages(b""), None);
    }

    #[test]
    fn this_process_has_what_it_must_have() {
        let process = Process::own().expect("procfs is mounted");
        let before = process.usage().expect("the kernel tells");
        let more: Vec<_> = (0..10).map(|_| Process::own()).collect();
        let after = process.usage().expect("the kernel tells");
        // This thread and the one that waits for it, if no more; as many as are in the folder, but for those that come and go.
        assert!((2..1000).contains(&before.threads), "{before:?}");
        assert!(before.resident_bytes > 100_000);
        assert!(before.virtual_bytes > before.resident_bytes);
        assert!(after.cpu >= before.cpu);
        // Other tests of this program open files at the same time.
        assert!(after.open_files.expect("counted") >= more.len() as u64 + 3);
        assert!(
            after
                .most_open_files
                .is_none_or(|most| most >= after.open_files.unwrap_or(0))
        );
    }
}
