//! What each fuzz target does with an input; the programs in `bin/` only hand it over.
//!
//! The daemon is a program, not a library. Its modules are therefore compiled into this crate by path, at its root, where
//! they find each other by the names that they have at home.

pub mod targets;

mod commands;
mod page;

/// The options of `history`, which the command line's parser fills at home.
#[allow(dead_code)]
mod cli {
    use std::path::PathBuf;
    use std::time::Duration;

    #[derive(Debug)]
    pub(crate) struct History {
        pub(crate) at: Option<String>,
        pub(crate) window: Duration,
        pub(crate) since: String,
        pub(crate) until: String,
        pub(crate) port: Option<String>,
        pub(crate) signal: Option<String>,
        pub(crate) step: Option<Duration>,
        pub(crate) what_moved: bool,
        pub(crate) all: bool,
        pub(crate) format: HistoryFormat,
        pub(crate) archive: PathBuf,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum HistoryFormat {
        Table,
        Csv,
        Json,
        Parquet,
        Openmetrics,
    }
}

macro_rules! daemon {
    ($($path:literal $name:ident),* $(,)?) => {$(
        // Each as a whole: what only the commands need is dead here.
        #[allow(dead_code, unused_imports)]
        #[path = $path]
        mod $name;
    )*};
}

daemon! {
    "../../crates/rocewatch/src/agent/mod.rs" agent,
    "../../crates/rocewatch/src/clock.rs" clock,
    "../../crates/rocewatch/src/config/mod.rs" config,
    "../../crates/rocewatch/src/event.rs" event,
    "../../crates/rocewatch/src/failure.rs" failure,
    "../../crates/rocewatch/src/files.rs" files,
    "../../crates/rocewatch/src/http/mod.rs" http,
    "../../crates/rocewatch/src/incident.rs" incident,
    "../../crates/rocewatch/src/metrics/mod.rs" metrics,
    "../../crates/rocewatch/src/past/mod.rs" past,
    "../../crates/rocewatch/src/service.rs" service,
    "../../crates/rocewatch/src/shown.rs" shown,
    "../../crates/rocewatch/src/usual.rs" usual,
    "../../crates/rocewatch/src/web/mod.rs" web,
    "../../crates/rocewatch/src/who/mod.rs" who,
}
