//! The commands that read what comes from outside, at the place where they find the daemon's modules.

#[allow(dead_code)]
#[path = "../../crates/rocewatch/src/commands/history/mod.rs"]
mod history;

use crate::cli::History;
use crate::failure::Failure;
use archive::Archive;
use jiff::Zoned;

/// What `text` means at `now`.
pub(crate) fn moment(text: &str, now: &Zoned) -> Result<Zoned, String> {
    crate::past::time::parse(text, now)
}

/// The answer of `history` at `now`, and from when to when it is, in nanoseconds since 1970.
pub(crate) fn history(
    archive: &Archive,
    options: &History,
    now: &Zoned,
) -> Result<(Vec<u8>, (i64, i64)), Failure> {
    let span = history::span(options, now)?;
    let asked = history::Asked::new(archive, options, span, now.time_zone().clone())?;
    let mut out = Vec::new();
    asked.write(&mut out).expect("memory takes it");
    Ok((out, (span.from, span.to)))
}
