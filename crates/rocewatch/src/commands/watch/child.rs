//! The command that is watched: the one thing that Rocewatch ever executes, because somebody has typed it.

use super::super::Failure;
use linux::{Caught, Signals};
use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Exit statuses of what runs other programs: env(1), timeout(1), nohup(1), and the shell.
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// What the shell adds a signal to.
const BY_SIGNAL: u8 = 128;

/// The running command. It has the terminal, the environment, the working directory, the process group and the standard
/// streams that it would have without us.
pub(super) struct Watched {
    child: Child,
    signals: Signals,
}

impl Watched {
    /// Starts the command.
    #[allow(clippy::disallowed_methods)] // this is the place
    pub(super) fn start(command: &[OsString]) -> Result<Self, Failure> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::Usage("there is no command behind --".to_owned()))?;
        let signals =
            Signals::catch().map_err(|error| super::cannot(format!("signals cannot be caught: {error}")))?;
        let child = Command::new(program).args(arguments).spawn();
        let child = child.map_err(|error| not_started(program, &error))?;
        Ok(Self { child, signals })
    }

    /// Passes on what signals come within `limit`, and gives the status if the command has ended.
    pub(super) fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>, Failure> {
        let lost = |error: Error| super::cannot(format!("the command cannot be waited for: {error}"));
        match self.signals.next(limit).map_err(lost)? {
            Some(Caught::Child) => self.child.try_wait().map_err(lost),
            Some(Caught::Sent(number)) => {
                if let Err(errno) = linux::send(self.child.id(), number) {
                    tracing::warn!(%errno, number, "the signal cannot be passed on");
                }
                Ok(None)
            }
            // The command has it from the terminal.
            Some(Caught::Typed(_)) | None => Ok(None),
        }
    }

    /// Waits after the command has ended; false if a signal came, which means that somebody is in a hurry.
    pub(super) fn pause(&mut self, limit: Duration) -> bool {
        matches!(self.signals.next(limit), Ok(None | Some(Caught::Child)))
    }
}

/// The status to end with: the command's, or what the shell makes of a signal.
pub(super) fn status_of(status: ExitStatus) -> u8 {
    let of_signal = || {
        u8::try_from(status.signal()?)
            .ok()
            .map(|number| BY_SIGNAL | number)
    };
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.or_else(of_signal).unwrap_or(u8::MAX)
}

fn not_started(program: &OsString, error: &Error) -> Failure {
    let program = program.to_string_lossy();
    let status = match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_EXECUTE,
    };
    Failure::Ended {
        status,
        message: Some(format!("{program}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_what_the_shell_says() {
        assert_eq!(status_of(ExitStatus::from_raw(0)), 0);
        assert_eq!(status_of(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(status_of(ExitStatus::from_raw(255 << 8)), 255);
        // Ended by SIGTERM, and by SIGSEGV with a core.
        assert_eq!(status_of(ExitStatus::from_raw(15)), 143);
        assert_eq!(status_of(ExitStatus::from_raw(11 | 0x80)), 139);
    }
}
