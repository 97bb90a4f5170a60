//! `docs/events.md` is what the table of events makes. `UPDATE_DOCS=1 cargo test -p rocewatch-signals` writes it anew.

// A test reads and writes the document of its own repository; the ban is for the daemon.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

#[test]
fn events() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
    let wanted = signals::detect::docs();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).expect("docs/ is writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/events.md is not what the table says: run with UPDATE_DOCS=1"
    );
}
