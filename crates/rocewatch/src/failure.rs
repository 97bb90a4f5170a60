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
    /// The doctor found something, and has said what: the exit status that tells how bad it is.
    Found(u8),
}

impl Failure {
    /// Tells the person at the terminal, and the shell.
    #[allow(clippy::print_stderr)] // the one place where a command says why it failed
    pub(crate) fn report(&self) -> ExitCode {
        if !matches!(self, Self::Found(_)) {
            eprintln!("rocewatch: {self}");
        }
        ExitCode::from(match self {
            Self::Usage(_) => 64,
            Self::Runtime(_) => 1,
            Self::Found(status) => *status,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Runtime(message) => f.write_str(message),
            Self::Found(_) => f.write_str("the doctor found something"),
        }
    }
}
