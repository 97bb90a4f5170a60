//! Where log lines go: text for people on a terminal, journald's protocol under systemd, JSON otherwise.

use crate::config::{Format, Level, Log};
use crate::failure::Failure;
use std::io::IsTerminal;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{self, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
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
    Registry::default().with(level).with(output(log.format)?).init();
    Ok(Handle(handle))
}

type Output = Box<dyn Layer<layer::Layered<reload::Layer<LevelFilter, Registry>, Registry>> + Send + Sync>;

/// What the names of the journal's fields begin with: `ROCEWATCH_PRIORITY` is PFC's, `PRIORITY` the journal's own.
const PREFIX: &str = "ROCEWATCH";

fn output(format: Format) -> Result<Output, Failure> {
    // systemd sets `JOURNAL_STREAM` where standard error goes to the journal.
    let under_systemd = std::env::var_os("JOURNAL_STREAM").is_some();
    let journald = tracing_journald::layer().map(|layer| layer.with_field_prefix(Some(PREFIX.to_owned())));
    Ok(match (format, journald) {
        (Format::Text, _) => Box::new(text()),
        (Format::Auto, _) if std::io::stderr().is_terminal() => Box::new(text()),
        (Format::Journald, Ok(journald)) => Box::new(journald),
        (Format::Auto, Ok(journald)) if under_systemd => Box::new(journald),
        (Format::Json | Format::Auto, _) => Box::new(
            fmt::layer()
                .json()
                .flatten_event(true)
                .with_writer(std::io::stderr),
        ),
        (Format::Journald, Err(error)) => {
            return Err(Failure::Runtime(format!(
                "cannot log to journald: {error}; set log.format to \"text\" or \"json\""
            )));
        }
    })
}

fn text<S>() -> impl Layer<S>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    fmt::layer()
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
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
