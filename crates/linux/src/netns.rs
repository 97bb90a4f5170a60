//! A network namespace of a test's own, and ports and a context in it.
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // tests run `ip`, and say why they do not

use crate::ethtool::{Columns, Interface};
use crate::{Context, Tree};
use model::{DeviceId, Port, PortId};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Runs `test` on a thread in a new, empty network namespace, which ends with the thread. Does nothing but say so where that
/// is not permitted.
pub(crate) fn within(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: changes the network namespace of this thread alone, which ends with it.
            let entered = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
            if entered {
                test();
            } else {
                eprintln!(
                    "SKIPPED: a network namespace needs CAP_SYS_ADMIN: {}",
                    std::io::Error::last_os_error()
                );
            }
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Runs `ip` in the thread's namespace.
pub(crate) fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Runs a program in the thread's namespace.
pub(crate) fn run(program: &str, arguments: &str) {
    if let Err(said) = attempt(program, arguments) {
        panic!("{program} {arguments}: {said}");
    }
}

/// Runs a program in the thread's namespace; what it said if it failed.
pub(crate) fn attempt(program: &str, arguments: &str) -> Result<(), String> {
    let output = Command::new(program)
        .args(arguments.split(' '))
        .output()
        .expect(program);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(said)
}

/// A port of a netdev of this namespace.
pub(crate) fn port(netdev: &str) -> Port {
    let ifindex = Interface::new(netdev).expect("a name").ifindex().ok();
    Port {
        ifindex,
        ..any_port(netdev)
    }
}

/// A port that the kernel is not asked about.
pub(crate) fn any_port(netdev: &str) -> Port {
    let id = PortId {
        device: DeviceId::mac("02:00:00:00:00:01"),
        number: 1,
    };
    Port {
        netdev: Some(netdev.into()),
        ifindex: Some(1),
        ..Port::bare(id, netdev, "mlx5_core")
    }
}

/// A context in which every statistic gets a column.
pub(crate) fn context(root: &Path, live: bool) -> Context {
    let tree = Tree::open(root).expect("a directory");
    Context {
        tree: Arc::new(tree),
        live,
        columns: Columns::All,
        optional_counters: false,
    }
}
