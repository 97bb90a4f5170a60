//! `docs/checks.md` is what the table of checks makes. `UPDATE_DOCS=1 cargo test -p rocewatch-doctor` writes it anew.

// A test reads and writes the document of its own repository; the ban is for the daemon.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

#[test]
fn checks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks.md");
    let wanted = doctor::docs();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).expect("docs/ is writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/checks.md is not what the table says: run with UPDATE_DOCS=1"
    );
}

#[test]
fn every_check_can_be_explained() {
    for check in doctor::CHECKS {
        let text = doctor::explain(check.id).expect("it is in the table");
        assert!(text.starts_with(check.id) && text.contains(check.why), "{text}");
    }
    assert_eq!(doctor::explain("pfc"), None);
}
