//! Takes values out of the tree by the keys that are known, and collects what is wrong.

use super::yaml::{Node, Problem, Value};
use crate::config::suggestion;

/// Collects every mistake, so that one look shows all of them.
#[derive(Default)]
pub(super) struct Reader {
    problems: Vec<Problem>,
}

/// The values of a mapping by their keys.
pub(super) struct Fields<'a> {
    /// Of the mapping as a whole.
    pub(super) line: usize,
    pairs: Vec<(&'a str, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// The value of this key, if it is there and not nothing.
    pub(super) fn get(&self, key: &str) -> Option<&'a Node> {
        let found = self.pairs.iter().find(|(name, _)| *name == key);
        found
            .map(|(_, node)| *node)
            .filter(|node| !matches!(node.value, Value::Null))
    }
}

impl Reader {
    pub(super) fn problem(&mut self, line: usize, what: impl Into<String>) {
        self.problems.push(Problem::new(line, what));
    }

    /// Every mistake in the order of the lines.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }

    /// A mapping with any keys.
    pub(super) fn pairs<'a>(&mut self, node: &'a Node, name: &str) -> Vec<(usize, &'a str, &'a Node)> {
        match &node.value {
            Value::Map(pairs) => pairs
                .iter()
                .map(|(key, value)| (key.line, key.name.as_str(), value))
                .collect(),
            Value::Null => Vec::new(),
            _ => {
                self.problem(
                    node.line,
                    format!("{name} has to be keys with values, one a line, as in `key: value`"),
                );
                Vec::new()
            }
        }
    }

    /// A mapping with these keys and no other.
    pub(super) fn fields<'a>(&mut self, node: &'a Node, name: &str, known: &[&str]) -> Fields<'a> {
        let mut pairs = Vec::new();
        for (line, key, value) in self.pairs(node, name) {
            if known.contains(&key) {
                pairs.push((key, value));
            } else {
                let what = format!("unknown key `{}`; {}", key.escape_debug(), suggestion(key, known));
                self.problem(line, what);
            }
        }
        Fields {
            line: node.line,
            pairs,
        }
    }

    /// A single value.
    pub(super) fn text<'a>(&mut self, node: &'a Node, name: &str) -> Option<&'a str> {
        if let Value::Text(text) = &node.value {
            return Some(text);
        }
        self.problem(
            node.line,
            format!("{name} has to be one value, not a list or a mapping"),
        );
        None
    }

    /// `true` or `false`, by any of the names that YAML 1.1 has for them.
    pub(super) fn flag(&mut self, node: &Node, name: &str) -> Option<bool> {
        let text = self.text(node, name)?;
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => {
                self.problem(node.line, format!("{name} has to be true or false"));
                None
            }
        }
    }

    /// Single values, each with its line.
    pub(super) fn texts<'a>(&mut self, node: &'a Node, name: &str) -> Vec<(usize, &'a str)> {
        let Value::List(items) = &node.value else {
            self.problem(
                node.line,
                format!("{name} has to be a list, each value on a line of its own behind a `-`"),
            );
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| Some((item.line, self.text(item, name)?)))
            .collect()
    }
}
