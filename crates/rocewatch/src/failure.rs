//! What makes a command end early: a message that says what to do, and the exit status that goes with it.

use std::fmt;
use std::process::ExitCode;

/// Why a command could not go on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or the configuration is wrong: `EX_USAGE` of `sysexits.h`.
    Usage(String),
    /// Something on this machine is not as it has to be.
    Runtime(String),
}

impl Failure {
    /// Tells the person at the terminal, and the shell.
    #[allow(clippy::print_stderr)] // the one place where a command says why it failed
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("rocewatch: {self}");
        ExitCode::from(match self {
            Self::Usage(_) => 64,
            Self::Runtime(_) => 1,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Runtime(message)) = self;
        f.write_str(message)
    }
}
