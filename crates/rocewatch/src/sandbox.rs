//! The daemon locks itself in: from then on it reads what it watches, writes its state, executes nothing and opens no
//! further port, whatever a mistake or an attacker would have it do. By Landlock, which needs no privilege (Linux 5.13).
//!
//! What was opened before stays open, and sockets of other kinds are not concerned: netlink, the journal, the service
//! manager's. Threads that are started later are locked in with the one that started them.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, path_beneath_rules,
};
use std::fmt;
use std::path::{Path, PathBuf};

/// The rights of files that are handled: those of Linux 6.10. On an older kernel, those that it knows.
const RIGHTS: ABI = ABI::V5;

/// What stays possible. What is not there is left out.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// Files and folders that are read, with all below them.
    pub(crate) read: Vec<PathBuf>,
    /// Folders in which files are made, written, renamed and removed.
    pub(crate) write: Vec<PathBuf>,
    /// Folders of device files that are read, written and asked by ioctl.
    pub(crate) devices: Vec<PathBuf>,
}

/// How far the daemon is locked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// In everything.
    Enforced,
    /// As far as an older kernel goes.
    Partly,
    /// Not at all: this kernel has no Landlock, it is not enabled, or a filter of system calls forbids it.
    Unsupported,
    /// Not at all: the configuration says so.
    Off,
}

impl Sandbox {
    /// As the API says it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Partly => "partly_enforced",
            Self::Unsupported => "unsupported",
            Self::Off => "off",
        }
    }
}

/// Locks this thread in, and every thread that it starts afterwards. Where that cannot be, the log says why.
pub(crate) fn enter(grants: &Grants) -> Sandbox {
    let status = match restrict(grants) {
        Ok(status) => status,
        Err(error) => {
            tracing::warn!("not locked in, the kernel does not take the rules: {error}");
            return Sandbox::Unsupported;
        }
    };
    match status.ruleset {
        RulesetStatus::FullyEnforced => {
            tracing::info!("locked in by Landlock: {grants}");
            Sandbox::Enforced
        }
        RulesetStatus::PartiallyEnforced => {
            tracing::info!(
                "locked in as far as this kernel's Landlock goes ({}): {grants}",
                version(&status.landlock)
            );
            Sandbox::Partly
        }
        RulesetStatus::NotEnforced => {
            tracing::info!(
                "not locked in: {}; what the service manager forbids still holds",
                version(&status.landlock)
            );
            Sandbox::Unsupported
        }
    }
}

fn restrict(grants: &Grants) -> Result<RestrictionStatus, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(RIGHTS))?
        .handle_access(AccessNet::BindTcp)?
        .create()?
        .add_rules(path_beneath_rules(&grants.read, reading()))?
        .add_rules(path_beneath_rules(&grants.write, writing()))?
        .add_rules(path_beneath_rules(&grants.devices, asking()))?
        .restrict_self()
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

fn writing() -> BitFlags<AccessFs> {
    reading()
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
}

fn asking() -> BitFlags<AccessFs> {
    reading() | AccessFs::WriteFile | AccessFs::IoctlDev
}

fn version(status: &LandlockStatus) -> String {
    match status {
        LandlockStatus::NotImplemented => {
            "this kernel has no Landlock, or a filter of system calls hides it".to_owned()
        }
        LandlockStatus::NotEnabled => "Landlock is not enabled on this machine".to_owned(),
        LandlockStatus::Available { effective_abi, .. } => format!("version {effective_abi}"),
    }
}

/// The folder of a configuration file, where an editor puts the file that replaces it; and, where the file is a symbolic
/// link, the folder of what it leads to.
pub(crate) fn folders_of(file: &Path) -> Vec<PathBuf> {
    let folder = |path: &Path| match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let target = file.canonicalize().ok();
    let mut folders: Vec<_> = [Some(file), target.as_deref()]
        .into_iter()
        .flatten()
        .map(folder)
        .collect();
    folders.dedup();
    folders
}

impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reads {}", Paths(&self.read))?;
        if !self.write.is_empty() {
            write!(f, "; writes {}", Paths(&self.write))?;
        }
        if !self.devices.is_empty() {
            write!(f, "; devices {}", Paths(&self.devices))?;
        }
        Ok(())
    }
}

struct Paths<'a>(&'a [PathBuf]);

impl fmt::Display for Paths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", path.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // tries what is forbidden, from a thread of its own

    use super::*;
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;
    use std::net::TcpListener;
    use std::process::Command;

    fn locked_in<T: Send>(grants: &Grants, then: impl FnOnce(Sandbox) -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| then(enter(grants)));
            inside.join().expect("nothing panics in there")
        })
    }

    #[test]
    fn what_is_granted_works_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["readable", "state", "secret"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "content").unwrap();
        }
        let grants = Grants {
            read: vec![at("readable"), at("not there")],
            write: vec![at("state")],
            devices: Vec::new(),
        };
        locked_in(&grants, |sandbox| {
            if sandbox == Sandbox::Unsupported {
                return;
            }
            let refused = |result: std::io::Result<()>| result.unwrap_err().kind() == PermissionDenied;
            assert_eq!(fs::read(at("readable/file")).unwrap(), b"content");
            assert!(refused(fs::write(at("readable/file"), "other")));
            assert!(refused(fs::write(at("readable/new"), "other")));

            fs::write(at("state/new"), "other").unwrap();
            fs::rename(at("state/new"), at("state/file")).unwrap();
            fs::remove_file(at("state/file")).unwrap();
            fs::create_dir(at("state/archive")).unwrap();
            assert!(refused(std::os::unix::fs::symlink("/", at("state/link"))));

            assert!(refused(fs::read(at("secret/file")).map(drop)));
            assert!(refused(fs::read_dir(at("secret")).map(drop)));
            assert!(refused(fs::remove_file(at("secret/file"))));
            // Not even what anybody may execute.
            assert!(refused(Command::new("/bin/true").status().map(drop)));
            if sandbox == Sandbox::Enforced {
                assert!(refused(TcpListener::bind("127.0.0.1:0").map(drop)));
            }
        });
    }

    #[test]
    fn what_was_opened_before_stays_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "content").unwrap();
        let file = fs::File::open(&path).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let text = locked_in(&Grants::default(), |_| {
            std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            listener.accept().unwrap();
            std::io::read_to_string(&file).unwrap()
        });
        assert_eq!(text, "content");
    }

    #[test]
    fn a_configuration_may_be_replaced_and_may_be_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        fs::create_dir(at("real")).unwrap();
        fs::write(at("real/rocewatch.toml"), "").unwrap();
        std::os::unix::fs::symlink(at("real/rocewatch.toml"), at("link.toml")).unwrap();
        assert_eq!(folders_of(&at("real/rocewatch.toml")), [at("real")]);
        assert_eq!(folders_of(&at("link.toml")), [at(""), at("real")]);
        assert_eq!(folders_of(Path::new("nowhere.toml")), [PathBuf::from(".")]);
    }

    #[test]
    fn the_log_tells_what_is_granted() {
        let grants = Grants {
            read: vec!["/sys".into(), "/proc".into()],
            write: vec!["/var/lib/rocewatch".into()],
            devices: Vec::new(),
        };
        assert_eq!(grants.to_string(), "reads /sys, /proc; writes /var/lib/rocewatch");
    }
}
