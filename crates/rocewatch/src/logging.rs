//! Where log lines go: text for people on a terminal, journald's protocol under systemd, JSON otherwise.

use crate::config::{Format, Level, Log};
use crate::failure::Failure;
use std::io::IsTerminal;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// Changes the level while the daemon runs.
pub(crate) struct Handle(reload::Handle<LevelFilter, Registry>);

impl Handle {
    /// Logs from this level on.
    pub(crate) fn set_level(&self, level: Level) {
        if let Err(error) = self.0.reload(filter(level)) {
            tracing::warn!(%error, "the log level could not be changed");
        }
    }
}

/// Starts logging for the whole process.
///
/// # Errors
/// If journald was asked for and is not there.
pub(crate) fn start(log: &Log) -> Result<Handle, Failure> {
    let (level, handle) = reload::Layer::new(filter(log.level));
    let output: Box<dyn Layer<_> + Send + Sync> = match resolved(log.format) {
        Format::Journald => {
            let journald = tracing_journald::layer().map_err(|error| {
                Failure::Runtime(format!(
                    "cannot log to journald: {error}; set log.format to \"text\" or \"json\""
                ))
            })?;
            Box::new(journald)
        }
        Format::Json => Box::new(
            fmt::layer()
                .json()
                .flatten_event(true)
                .with_writer(std::io::stderr),
        ),
        Format::Text | Format::Auto => Box::new(
            fmt::layer()
                .with_target(false)
                .with_ansi(std::io::stderr().is_terminal())
                .with_writer(std::io::stderr),
        ),
    };
    Registry::default().with(level).with(output).init();
    Ok(Handle(handle))
}

/// systemd sets `JOURNAL_STREAM` where standard error goes to the journal.
fn resolved(format: Format) -> Format {
    match format {
        Format::Auto if std::io::stderr().is_terminal() => Format::Text,
        Format::Auto if std::env::var_os("JOURNAL_STREAM").is_some() => Format::Journald,
        Format::Auto => Format::Json,
        chosen => chosen,
    }
}

fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}
