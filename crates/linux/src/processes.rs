//! What procfs tells of processes and of the routes of this network namespace: proc(5).

use crate::errno::why_from_errno;
use model::Why;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::io::{Errno, read};
use std::path::{Path, PathBuf};

/// The most that is read of a file. An environment has at most a quarter of the stack's limit, 2 MiB (execve(2)).
const MOST: usize = 4 << 20;
/// `RTF_UP` of include/uapi/linux/route.h.
const UP: u32 = 1;

/// A procfs.
#[derive(Debug)]
pub struct Processes {
    root: OwnedFd,
    path: PathBuf,
}

impl Processes {
    /// The procfs that is mounted at `path`.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Why> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| why_from_errno(errno, &path.display().to_string()))?;
        Ok(Self {
            root,
            path: path.to_owned(),
        })
    }

    /// The environment that a process was started with; what it has changed of it since is not in it. Takes the rights to
    /// trace the process: its user's, or `CAP_SYS_PTRACE`.
    ///
    /// # Errors
    /// There is no such process, or it is another user's.
    pub fn environment(&self, process: u32) -> Result<Vec<(String, String)>, Why> {
        self.read(&format!("{process}/environ"))
            .map(|content| variables(&content))
    }

    /// The netdev by which a process (`None`: this one), in its network namespace, reaches whatever has no route of its own:
    /// that of the IPv4 default route with the least metric, or else of the IPv6 one.
    #[must_use]
    pub fn default_netdev(&self, process: Option<u32>) -> Option<String> {
        let table = |name, parse: fn(&str) -> Option<String>| parse(&self.network(process, name)?);
        table("route", default_of_ipv4).or_else(|| table("ipv6_route", default_of_ipv6))
    }

    /// The netdevs of a process's network namespace; `None` if they cannot be read.
    #[must_use]
    pub fn netdevs(&self, process: Option<u32>) -> Option<Vec<String>> {
        Some(netdevs(&self.network(process, "dev")?))
    }

    fn network(&self, process: Option<u32>, file: &str) -> Option<String> {
        let process = process.map_or("self".to_owned(), |process| process.to_string());
        let content = self.read(&format!("{process}/net/{file}")).ok()?;
        Some(String::from_utf8_lossy(&content).into_owned())
    }

    /// A process's name, as its main thread has set it; at most 15 bytes.
    pub(crate) fn name(&self, process: u32) -> Option<String> {
        let content = self.read(&format!("{process}/comm")).ok()?;
        Some(String::from_utf8_lossy(&content).trim_end().to_owned())
    }

    /// The process that a thread is of: `Tgid` of its status.
    pub(crate) fn of_thread(&self, thread: u32) -> Option<u32> {
        let content = self.read(&format!("{thread}/status")).ok()?;
        let text = String::from_utf8_lossy(&content);
        let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        line.trim().parse().ok()
    }

    /// The text of a process's `cgroup`.
    pub(crate) fn cgroup(&self, process: u32) -> Option<String> {
        let content = self.read(&format!("{process}/cgroup")).ok()?;
        Some(String::from_utf8_lossy(&content).into_owned())
    }

    /// The inode of a process's network namespace. Takes the rights to trace it.
    pub(crate) fn network_namespace(&self, process: &str) -> Option<u64> {
        let link = readlinkat(&self.root, format!("{process}/ns/net"), Vec::new()).ok()?;
        let number = link.to_str().ok()?.strip_prefix("net:[")?.strip_suffix(']')?;
        number.parse().ok()
    }

    fn read(&self, file: &str) -> Result<Vec<u8>, Why> {
        self.content(file).map_err(|errno| {
            let path = self.path.join(file);
            why_from_errno(errno, &path.display().to_string())
        })
    }

    fn content(&self, file: &str) -> Result<Vec<u8>, Errno> {
        let descriptor = openat(&self.root, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut content = Vec::new();
        let mut part = vec![0; 64 * 1024];
        while content.len() < MOST {
            match read(&descriptor, &mut part)? {
                0 => break,
                length => content.extend_from_slice(&part[..length]),
            }
        }
        Ok(content)
    }
}

/// `NAME=VALUE`, each ended by a NUL. Of a name that is there twice getenv(3) finds the first.
fn variables(content: &[u8]) -> Vec<(String, String)> {
    let entries = content.split(|byte| *byte == 0);
    let pair = |entry: &[u8]| {
        let text = String::from_utf8_lossy(entry).into_owned();
        let (name, value) = text.split_once('=')?;
        (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    };
    entries.filter_map(pair).collect()
}

/// `net/dev`: two lines of heading, then a name with a colon behind it and numbers.
fn netdevs(table: &str) -> Vec<String> {
    let names = table.lines().skip(2).filter_map(|line| line.rsplit_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// `net/route`: a heading, then name, destination, gateway, flags, two counts, metric, mask, …; numbers but the metric are
/// hexadecimal (`net/ipv4/fib_trie.c`, `fib_route_seq_show`).
fn default_of_ipv4(table: &str) -> Option<String> {
    let routes = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [netdev, destination, _, flags, _, _, metric, mask, ..] = fields[..] else {
            return None;
        };
        let is_default = [destination, mask].iter().all(|word| zero(word));
        let up = u32::from_str_radix(flags, 16).ok()? & UP != 0;
        (is_default && up).then_some((metric.parse::<u32>().ok()?, netdev))
    });
    least(routes)
}

/// `net/ipv6_route`: destination, its length, source, its length, gateway, metric, two counts, flags, name; all hexadecimal
/// (`net/ipv6/ip6_fib.c`, `ipv6_route_native_seq_show`). What has no route
/// is led to `lo`.
fn default_of_ipv6(table: &str) -> Option<String> {
    let routes = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [destination, length, _, _, _, metric, _, _, flags, netdev] = fields[..] else {
            return None;
        };
        let is_default = zero(destination) && zero(length);
        let up = u32::from_str_radix(flags, 16).ok()? & UP != 0;
        (is_default && up && netdev != "lo").then_some((u32::from_str_radix(metric, 16).ok()?, netdev))
    });
    least(routes)
}

fn zero(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte == b'0')
}

fn least<'a>(routes: impl Iterator<Item = (u32, &'a str)>) -> Option<String> {
    // Of equal metrics the first of the table serves.
    let (_, netdev) = routes.min_by_key(|(metric, _)| *metric)?;
    Some(netdev.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IPV4: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eno1\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0
down0\t00000000\t0100000A\t0002\t0\t0\t1\t00000000\t0\t0\t0
rail0\t0000010A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
";

    #[test]
    fn the_default_route_is_the_one_of_least_metric_that_is_up() {
        assert_eq!(default_of_ipv4(IPV4).as_deref(), Some("eno1"));
        assert_eq!(default_of_ipv4("Iface Destination\n"), None);
        let zeros = "0".repeat(32);
        let ipv6 = format!(
            "{zeros} 00 {zeros} 00 fe80000000000000000000000000ffff 00000400 00000001 00000000 00450003     eno1\n\
             {zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n"
        );
        assert_eq!(default_of_ipv6(&ipv6).as_deref(), Some("eno1"));
    }

    #[test]
    fn netdevs_are_named_in_front_of_the_colon() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
                     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n    \
                     lo: 14134 137 0 0 0 0 0 0 14134\n ens1:0: 1 2 3\n";
        assert_eq!(netdevs(table), ["lo", "ens1:0"]);
        let processes = Processes::open(Path::new("/proc")).expect("procfs is mounted");
        assert!(
            processes
                .netdevs(None)
                .is_some_and(|all| all.contains(&"lo".to_owned()))
        );
        assert_eq!(
            processes.netdevs(Some(std::process::id())),
            processes.netdevs(None)
        );
    }

    #[test]
    fn this_process_has_its_environment_name_and_namespace() {
        let processes = Processes::open(Path::new("/proc")).expect("procfs is mounted");
        let own = std::process::id();
        let environment = processes.environment(own).expect("it is our own");
        let path = environment.iter().find(|(name, _)| name == "PATH");
        assert_eq!(
            path.map(|(_, value)| value.as_str()),
            std::env::var("PATH").ok().as_deref()
        );
        assert!(
            processes
                .name(own)
                .is_some_and(|name| !name.is_empty() && name.len() < 16)
        );
        assert!(processes.network_namespace("self").is_some());
        // A test runs on a thread of its own.
        let thread = std::fs::read_link("/proc/thread-self").expect("procfs is mounted");
        let thread = thread.file_name().and_then(|name| name.to_str()?.parse().ok());
        assert_eq!(thread.and_then(|thread| processes.of_thread(thread)), Some(own));
        let why = processes.environment(0).expect_err("there is no process 0");
        assert_eq!(
            (why.reason, why.detail.contains("/proc/0/environ")),
            ("ENOENT", true)
        );
    }

    proptest! {
        #[test]
        fn what_procfs_never_writes_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = (default_of_ipv4(&text), default_of_ipv6(&text), netdevs(&text));
            for (name, _) in variables(&bytes) {
                prop_assert!(!name.is_empty() && !name.contains('='));
            }
        }

        #[test]
        fn variables_are_those_that_were_set(set in prop::collection::vec(("[A-Z_]{1,9}", "[^\0]{0,20}"), 0..9)) {
            let mut content = Vec::new();
            for (name, value) in &set {
                content.extend_from_slice(format!("{name}={value}\0").as_bytes());
            }
            prop_assert_eq!(variables(&content), set);
        }
    }
}
