//! Names with `*`, against the textbook's way to match them.

use crate::config::Pattern;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};

/// The input is a pattern and, behind the first newline, a name.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, ""));
    let deserializer: StrDeserializer<'_, Error> = pattern.into_deserializer();
    let found = Pattern::deserialize(deserializer)
        .expect("every text is a pattern")
        .matches(name);
    assert_eq!(found, fits(pattern.as_bytes(), name.as_bytes()));
}

/// `fitting[n]`: the pattern so far fits the first `n` bytes.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let mut fitting = vec![false; name.len() + 1];
    fitting[0] = true;
    for &letter in pattern {
        if letter == b'*' {
            let first = fitting.iter().position(|&fits| fits).unwrap_or(fitting.len());
            fitting[first..].fill(true);
        } else {
            for n in (1..fitting.len()).rev() {
                fitting[n] = fitting[n - 1] && name[n - 1] == letter;
            }
            fitting[0] = false;
        }
    }
    fitting[name.len()]
}
