//! Signals as a program that runs another one needs them: who sent them matters, so `sigaction(2)` with `SA_SIGINFO`.
//!
//! What is typed at a terminal (`^C`, `^\`) the kernel sends to every process of the foreground group, so that the command has
//! it already and must not get it twice. What a person or a batch system sends to this process alone has to be passed on.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{c_int, c_void};
use std::io::{self, Read as _};
use std::mem;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// Signals that end a program or that it is told something by. Job control (`SIGTSTP`, `SIGCONT`) and the window's size
/// reach the command by way of its terminal, as if it had been started without us.
const PASSED_ON: [c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
/// The code of a signal that the kernel itself sent, `SI_KERNEL` of include/uapi/asm-generic/siginfo.h: a terminal's, by
/// `tty_signal_session_leader` and `isig` of drivers/tty, to the whole group.
const SI_KERNEL: c_int = 0x80;

/// Where the handler writes to. It outlives every [`Signals`], since a handler may run at any time.
static SINK: AtomicI32 = AtomicI32::new(-1);

/// The signals of this process from now on, in the order in which they came.
#[derive(Debug)]
pub struct Signals {
    source: UnixStream,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// A child has ended (or was stopped, or goes on).
    Child,
    /// Somebody sent this signal to this process, and perhaps to no other.
    Sent(i32),
    /// The terminal sent it to the whole foreground group.
    Typed(i32),
}

impl Signals {
    /// Catches the signals that a command has to get too, and those of children. One that is ignored stays ignored, as
    /// under nohup(1), for the command as well. Handlers end with `execve(2)`: a command that is started has none of them.
    ///
    /// # Errors
    /// The kernel has no descriptor left, or refuses a handler. They can be caught once in the life of a process.
    pub fn catch() -> io::Result<Self> {
        let (source, sink) = UnixStream::pair()?;
        // A handler must never wait: a signal that comes while 100,000 are unread is lost, as the kernel loses them too.
        sink.set_nonblocking(true)?;
        let free = SINK.compare_exchange(-1, sink.into_raw_fd(), Ordering::Release, Ordering::Relaxed);
        free.map_err(|_| io::Error::from(Errno::ALREADY))?;
        for number in PASSED_ON {
            if !is_ignored(number)? {
                handle(number)?;
            }
        }
        handle(libc::SIGCHLD)?;
        Ok(Self { source })
    }

    /// The next signal; `None` if none came within `limit`.
    ///
    /// # Errors
    /// Of reading, which cannot fail otherwise than by the limit.
    pub fn next(&mut self, limit: Duration) -> io::Result<Option<Caught>> {
        // Zero would mean forever.
        self.source
            .set_read_timeout(Some(limit.max(Duration::from_millis(1))))?;
        let mut record = [0; 2];
        match self.source.read_exact(&mut record) {
            Ok(()) => Ok(Some(caught(record))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn caught([number, typed]: [u8; 2]) -> Caught {
    match i32::from(number) {
        libc::SIGCHLD => Caught::Child,
        number if typed != 0 => Caught::Typed(number),
        number => Caught::Sent(number),
    }
}

/// Sends a signal to a child that has not been waited for, so that its number cannot be another's.
///
/// # Errors
/// `EINVAL` for a number that is no signal, `ESRCH` if there is no such process, `EPERM` if it has taken other rights.
pub fn send(process: u32, number: i32) -> Result<(), Errno> {
    let pid = i32::try_from(process)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(Errno::SRCH)?;
    let signal = Signal::from_named_raw(number).ok_or(Errno::INVAL)?;
    kill_process(pid, signal)
}

fn is_ignored(number: c_int) -> io::Result<bool> {
    // SAFETY: the structure is made of integers, a function pointer that may be null and a set of bits.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: asks only; `action` is one `struct sigaction` and lives.
    let outcome = unsafe { libc::sigaction(number, ptr::null(), &raw mut action) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

fn handle(number: c_int) -> io::Result<()> {
    // SAFETY: the structure is made of integers, a function pointer that may be null and a set of bits.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: `on_signal` is of the type that SA_SIGINFO wants and calls nothing that a handler may not
    // (signal-safety(7)); the former action is not wanted.
    let outcome = unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn on_signal(number: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let before = errno::errno();
    // SAFETY: the kernel hands a `siginfo_t` to a handler that was set with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    let record = [u8::try_from(number).unwrap_or(0), u8::from(code == SI_KERNEL)];
    let sink = SINK.load(Ordering::Acquire);
    // SAFETY: writes two bytes of an array that lives; a full or closed socket is an error that nobody has to know.
    let _ = unsafe { libc::write(sink, record.as_ptr().cast(), record.len()) };
    errno::set_errno(before);
}

/// The errno of this thread, which what a handler calls must not change for whom it interrupts.
mod errno {
    use std::ffi::c_int;

    fn place() -> *mut c_int {
        // SAFETY: gives the address of a variable of this thread, which lives as long as the thread.
        unsafe { libc::__errno_location() }
    }

    pub(super) fn errno() -> c_int {
        // SAFETY: the address is valid and aligned, and only this thread uses it.
        unsafe { *place() }
    }

    pub(super) fn set_errno(value: c_int) {
        // SAFETY: as for reading.
        unsafe { *place() = value };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// One test, since handlers belong to the process.
    #[test]
    fn a_signal_is_told_with_who_sent_it_and_an_ignored_one_is_left_alone() {
        // SAFETY: sets a disposition that this test alone looks at.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        let mut signals = Signals::catch().expect("handlers are granted");
        let own = std::process::id();
        send(own, libc::SIGUSR2).expect("may be sent");
        send(own, libc::SIGUSR1).expect("may be sent");
        let told = signals.next(SOON).expect("readable");
        assert_eq!(told, Some(Caught::Sent(libc::SIGUSR1)));
        assert!(Signals::catch().is_err(), "caught a second time");
        assert_eq!(send(own, 99), Err(Errno::INVAL));
    }

    #[test]
    fn what_the_kernel_sends_was_typed() {
        assert_eq!(caught([2, 1]), Caught::Typed(libc::SIGINT));
        assert_eq!(caught([15, 0]), Caught::Sent(libc::SIGTERM));
        assert_eq!(caught([17, 0]), Caught::Child);
    }
}
