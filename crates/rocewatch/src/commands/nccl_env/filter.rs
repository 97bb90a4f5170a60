//! Lists of names as NCCL writes them: `mlx5_0,mlx5_1`, `=mlx5_0:1`, `^docker`.
//!
//! From the NCCL user guide, environment variables `NCCL_IB_HCA` and `NCCL_SOCKET_IFNAME`: `^` in front turns the list into what
//! is left out, `=` behind it makes the names exact; without it each is a prefix. An RDMA device may have a port behind `:`, and
//! since 2.30 a rail and a plane behind that, which choose nothing.

/// A list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    excludes: bool,
    exact: bool,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    port: Option<u32>,
}

impl Filter {
    pub(super) fn parse(text: &str) -> Self {
        let (excludes, text) = strip(text, '^');
        let (exact, text) = strip(text, '=');
        let entries = text.split(',').filter(|entry| !entry.is_empty()).map(|entry| {
            let mut fields = entry.split(':');
            Entry {
                name: fields.next().unwrap_or_default().to_owned(),
                port: fields.next().and_then(|port| port.parse().ok()),
            }
        });
        Self {
            excludes,
            exact,
            entries: entries.collect(),
        }
    }

    /// True if the list chooses this port of a device; an empty list chooses everything.
    pub(super) fn chooses(&self, name: &str, port: u32) -> bool {
        let named = self.entries.iter().any(|entry| self.matches(entry, name, port));
        self.entries.is_empty() || named != self.excludes
    }

    /// The names of the list that nothing of `all` matches.
    pub(super) fn missing<'a>(&'a self, all: &[(&str, u32)]) -> Vec<&'a str> {
        let is_missing = |entry: &&Entry| !all.iter().any(|(name, port)| self.matches(entry, name, *port));
        let missing = self.entries.iter().filter(is_missing);
        missing.map(|entry| entry.name.as_str()).collect()
    }

    /// True if the list says what is wanted, and not what is not.
    pub(super) fn names_what_is_wanted(&self) -> bool {
        !self.excludes && !self.entries.is_empty()
    }

    fn matches(&self, entry: &Entry, name: &str, port: u32) -> bool {
        let named = if self.exact {
            name == entry.name
        } else {
            name.starts_with(&entry.name)
        };
        named && entry.port.is_none_or(|wanted| wanted == port)
    }
}

fn strip(text: &str, sign: char) -> (bool, &str) {
    text.strip_prefix(sign).map_or((false, text), |rest| (true, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chosen(list: &str) -> Vec<&'static str> {
        let filter = Filter::parse(list);
        let all = ["mlx5_0", "mlx5_1", "mlx5_10", "bnxt_re0"];
        all.into_iter().filter(|name| filter.chooses(name, 1)).collect()
    }

    #[test]
    fn lists_choose_as_the_user_guide_says() {
        assert_eq!(chosen("mlx5"), ["mlx5_0", "mlx5_1", "mlx5_10"]);
        // The trap: a name is a prefix.
        assert_eq!(chosen("mlx5_1"), ["mlx5_1", "mlx5_10"]);
        assert_eq!(chosen("=mlx5_1"), ["mlx5_1"]);
        assert_eq!(chosen("=mlx5_0:1,mlx5_1:2"), ["mlx5_0"]);
        assert_eq!(chosen("=mlx5_0:1:0:0,mlx5_1::0:1"), ["mlx5_0", "mlx5_1"]);
        assert_eq!(chosen("^=mlx5_1,mlx5_10"), ["mlx5_0", "bnxt_re0"]);
        assert_eq!(chosen("^mlx5"), ["bnxt_re0"]);
        assert_eq!(chosen("").len(), 4);
    }

    #[test]
    fn names_that_nothing_has_are_told() {
        let filter = Filter::parse("=mlx5_0:1,mlx5_7:1,mlx5_0:2");
        assert_eq!(
            filter.missing(&[("mlx5_0", 1), ("mlx5_1", 1)]),
            ["mlx5_7", "mlx5_0"]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_exactly_is_chosen_exactly(
            names in prop::collection::btree_set("[a-z][a-z0-9_]{0,8}", 1..9),
            other in "[A-Z]{1,4}",
            excludes: bool,
        ) {
            let list: Vec<_> = names.iter().map(|name| format!("{name}:1")).collect();
            let sign = if excludes { "^=" } else { "=" };
            let filter = Filter::parse(&format!("{sign}{}", list.join(",")));
            for name in &names {
                prop_assert_eq!(filter.chooses(name, 1), !excludes);
                prop_assert_eq!(filter.chooses(name, 2), excludes);
            }
            prop_assert_eq!(filter.chooses(&other, 1), excludes);
        }

        #[test]
        fn any_text_is_a_list(text in ".{0,40}", name in ".{0,9}") {
            let _ = Filter::parse(&text).chooses(&name, 1);
        }
    }
}
