//! What each fuzz target does with an input; the programs in `bin/` only hand it over.
//!
//! The daemon is a program, not a library. Its modules are therefore compiled into this crate by path, at its root, where
//! they find each other by the names that they have at home.

pub mod targets;

mod page;

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
}
