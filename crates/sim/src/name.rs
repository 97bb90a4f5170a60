//! Names that the command line takes.

use std::fmt;

/// There is nothing of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What it should have been, in a word.
    kind: &'static str,
    given: String,
    nearest: &'static str,
    known: Vec<&'static str>,
}

/// Which of `known` is called `given`.
pub(crate) fn find<T: Copy>(
    kind: &'static str,
    known: &[T],
    name: impl Fn(T) -> &'static str,
    given: &str,
) -> Result<T, UnknownName> {
    if let Some(found) = known.iter().find(|known| name(**known) == given) {
        return Ok(*found);
    }
    let known: Vec<&str> = known.iter().map(|known| name(*known)).collect();
    let nearest = known.iter().min_by_key(|name| distance(given, name));
    Err(UnknownName {
        kind,
        given: given.to_owned(),
        nearest: nearest.expect("something has a name"),
        known,
    })
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            given,
            nearest,
            known,
        } = self;
        write!(
            f,
            "no {kind} {given:?}; did you mean {nearest:?}? There are: {}",
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownName {}

/// How far `given` is from a name: nothing if it is a part of it.
fn distance(given: &str, name: &str) -> usize {
    let part = !given.is_empty() && name.contains(given);
    if part { 0 } else { edits(given, name) }
}

/// Insertions, removals and replacements that turn one word into the other (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_those_of_levenshtein() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("same", "same"), 0);
    }
}
