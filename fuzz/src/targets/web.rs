//! What a `web.yml` says, and the certificate that a stranger shows.

use super::config::check_problem;
use crate::web::{der, settings};
use std::path::Path;

/// The file is taken, or refused with a line and a reason for each mistake; a certificate has names that are text, or none.
pub fn check(input: &[u8]) {
    let _ = der::not_after(input);
    for name in der::alt_names(input) {
        assert!(name.is_ascii(), "{name:?}");
    }
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Err(problems) = settings::read_text(text, Path::new("")) {
        assert!(!problems.is_empty());
        // A reader that misses something at the end says so of the line behind it.
        // To YAML a carriage return alone ends a line as well (YAML 1.2, 5.4).
        let lines = text.matches(['\n', '\r']).count() + 2;
        problems.lines().for_each(|problem| check_problem(problem, lines));
    }
}
