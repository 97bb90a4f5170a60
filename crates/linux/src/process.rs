//! What the kernel accounts to this process: one read and two calls, since a scrape pays for it each time.

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, openat};
use rustix::io::pread;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// Longest `/proc/PID/stat`: 52 numbers and a name of 16 bytes.
const STAT: usize = 2048;

/// Where this process's figures are read.
#[derive(Debug)]
pub struct Process {
    stat: OwnedFd,
    /// The folder of its descriptors.
    descriptors: OwnedFd,
}

/// The figures now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// CPU time of all threads, in user space and in the kernel.
    pub cpu_seconds: f64,
    /// Threads.
    pub threads: u64,
    /// Address space.
    pub virtual_bytes: u64,
    /// Memory that is resident.
    pub resident_bytes: u64,
    /// Open descriptors; `None` if they cannot be counted.
    pub open_files: Option<u64>,
    /// How many there may be; `None` if there is no limit.
    pub most_open_files: Option<u64>,
}

impl Process {
    /// This process; `None` where no procfs is mounted.
    #[must_use]
    pub fn own() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let open = |path, more| openat(CWD, path, flags | more, Mode::empty()).ok();
        Some(Self {
            stat: open("/proc/self/stat", OFlags::empty())?,
            descriptors: open("/proc/self/fd", OFlags::DIRECTORY)?,
        })
    }

    /// Its figures now; `None` if the kernel tells them in a way that nobody knew of.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let mut content = [0; STAT];
        let length = pread(&self.stat, &mut content, 0).ok()?;
        let mut usage = parse(
            content.get(..length)?,
            clock_ticks_per_second(),
            page_size() as u64,
        )?;
        usage.open_files = open_files(&self.descriptors);
        usage.most_open_files = getrlimit(Resource::Nofile).current;
        Some(usage)
    }
}

/// `proc_pid_stat(5)`. The name is in parentheses, and may itself have spaces and parentheses.
fn parse(stat: &[u8], ticks_per_second: u64, page: u64) -> Option<Usage> {
    let behind_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let text = std::str::from_utf8(&stat[behind_name..]).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    // As the manual numbers them: the state, behind the name, is 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Usage {
        cpu_seconds: (field(14)? + field(15)?) as f64 / ticks_per_second as f64,
        threads: field(20)?,
        virtual_bytes: field(23)?,
        resident_bytes: field(24)? * page,
        open_files: None,
        most_open_files: None,
    })
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
    fn a_name_may_look_like_the_fields_behind_it() {
        let stat = b"42 (a) R (b) S 1 42 42 0 -1 4194304 100 0 0 0 250 150 9 9 20 0 13 0 777 1048576 25 18446744073709551615";
        let expected = Usage {
            cpu_seconds: 4.0,
            threads: 13,
            virtual_bytes: 1_048_576,
            resident_bytes: 25 * 4096,
            open_files: None,
            most_open_files: None,
        };
        assert_eq!(parse(stat, 100, 4096), Some(expected));
        assert_eq!(parse(b"42 (a) S 1", 100, 4096), None);
        assert_eq!(parse(b"", 100, 4096), None);
    }

    #[test]
    fn this_process_has_what_it_must_have() {
        let process = Process::own().expect("procfs is mounted");
        let before = process.usage().expect("the kernel tells");
        let more: Vec<_> = (0..10).map(|_| Process::own()).collect();
        let after = process.usage().expect("the kernel tells");
        assert!(before.threads >= 1 && before.resident_bytes > 100_000);
        assert!(before.virtual_bytes > before.resident_bytes);
        assert!(after.cpu_seconds >= before.cpu_seconds);
        // Other tests of this program open files at the same time.
        assert!(after.open_files.expect("counted") >= more.len() as u64 + 3);
        assert!(
            after
                .most_open_files
                .is_none_or(|most| most >= after.open_files.unwrap_or(0))
        );
    }
}
