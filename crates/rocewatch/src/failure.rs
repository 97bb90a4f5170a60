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
    /// The command has done what it was asked for, and ends with a status that tells what came of it: what the doctor found,
    /// or that of the command that `watch` ran.
    Ended {
        /// The status.
        status: u8,
        /// What there is to say of it, if that has not been said.
        message: Option<String>,
    },
}

impl Failure {
    /// Tells the person at the terminal, and the shell.
    #[allow(clippy::print_stderr)] // the one place where a command says why it failed
    pub(crate) fn report(&self) -> ExitCode {
        if !matches!(self, Self::Ended { message: None, .. }) {
            eprintln!("rocewatch: {self}");
        }
        ExitCode::from(match self {
            Self::Usage(_) => 64,
            Self::Runtime(_) => 1,
            Self::Ended { status, .. } => *status,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Runtime(message) => f.write_str(message),
            Self::Ended { status, message } => match message {
                Some(message) => f.write_str(message),
                None => write!(f, "ended with status {status}"),
            },
        }
    }
}
