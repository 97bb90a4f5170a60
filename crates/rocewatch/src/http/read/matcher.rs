//! Which series a query wants.

use super::messages::{LabelMatcher, MatcherType};
use crate::past::families::Labels;
use regex::{Regex, RegexBuilder};

/// Bytes of an expression once compiled, and of what it remembers while it is used.
const MOST_COMPILED: usize = 256 * 1024;
/// Groups within groups.
const DEEPEST: u32 = 50;

/// A condition on one label; one that a series lacks is empty, as in Prometheus.
#[derive(Debug)]
pub(crate) struct Matcher {
    label: String,
    test: Test,
    /// What the test has to come to.
    expected: bool,
}

#[derive(Debug)]
enum Test {
    Equal(String),
    Fits(Regex),
}

impl Matcher {
    /// Understands a matcher.
    ///
    /// # Errors
    /// The kind is unknown, or the expression is none.
    pub(crate) fn new(matcher: &LabelMatcher) -> Result<Self, String> {
        let kind = MatcherType::try_from(matcher.kind).map_err(|_| {
            format!(
                "the matcher of {:?} is of unknown type {}",
                matcher.name, matcher.kind
            )
        })?;
        let test = match kind {
            MatcherType::Equal | MatcherType::NotEqual => Test::Equal(matcher.value.clone()),
            MatcherType::Regex | MatcherType::NotRegex => Test::Fits(anchored(&matcher.value)?),
        };
        Ok(Self {
            label: matcher.name.clone(),
            test,
            expected: matches!(kind, MatcherType::Equal | MatcherType::Regex),
        })
    }

    /// True if the series is wanted as far as this goes.
    pub(crate) fn takes(&self, labels: &Labels) -> bool {
        let label = labels.iter().find(|(name, _)| *name == self.label);
        let value = label.map_or("", |(_, value)| value);
        let passes = match &self.test {
            Test::Equal(wanted) => value == wanted,
            Test::Fits(expression) => expression.is_match(value),
        };
        passes == self.expected
    }
}

/// An expression that fits a whole value, as Prometheus' do.
fn anchored(expression: &str) -> Result<Regex, String> {
    // By itself first: `a)(b` would close the group.
    let compile = |text: &str| {
        RegexBuilder::new(text)
            .size_limit(MOST_COMPILED)
            .dfa_size_limit(MOST_COMPILED)
            .nest_limit(DEEPEST)
            .build()
            .map_err(|error| {
                format!("{expression:?} is no regular expression that can be used here: {error}")
            })
    };
    compile(expression)?;
    compile(&format!("^(?s:{expression})$"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn takes(kind: MatcherType, name: &str, value: &str) -> bool {
        let labels = vec![
            (
                Cow::Borrowed("__name__"),
                Cow::Borrowed("rocewatch_cnp_sent_total"),
            ),
            (Cow::Borrowed("device"), Cow::Borrowed("mlx5_1")),
        ];
        let matcher = LabelMatcher {
            kind: kind.into(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        Matcher::new(&matcher).expect("it is a matcher").takes(&labels)
    }

    #[test]
    fn labels_are_compared_whole() {
        use MatcherType::{Equal, NotEqual, NotRegex, Regex};
        for (kind, name, value, right) in [
            (Equal, "device", "mlx5_1", true),
            (Equal, "device", "mlx5", false),
            (NotEqual, "device", "mlx5_0", true),
            (NotEqual, "device", "mlx5_1", false),
            (Regex, "__name__", "rocewatch_.*_total", true),
            (Regex, "device", "mlx5", false),
            (Regex, "device", "mlx5_0|mlx5_1", true),
            (Regex, "device", "x|mlx5_1|", true),
            (NotRegex, "device", "mlx5_[0-3]", false),
            (NotRegex, "device", "lx5", true),
            // Case counts, unless the expression says otherwise.
            (Regex, "device", "MLX5_1", false),
            (Regex, "device", "(?i)MLX5_1", true),
        ] {
            assert_eq!(takes(kind, name, value), right, "{name} {kind:?} {value}");
        }
    }

    #[test]
    fn a_label_that_is_not_there_is_empty() {
        use MatcherType::{Equal, NotEqual, NotRegex, Regex};
        assert!(takes(Equal, "priority", ""));
        assert!(!takes(NotEqual, "priority", ""));
        assert!(takes(NotEqual, "priority", "3"));
        assert!(takes(Regex, "priority", "|3"));
        assert!(takes(Regex, "priority", ".*"));
        assert!(!takes(Regex, "priority", ".+"));
        assert!(takes(NotRegex, "priority", ".+"));
    }

    #[test]
    fn what_is_no_expression_or_too_costly_is_refused() {
        for value in ["(", "a)(b", "(?P<", r"(\pL{500}){500}", &"(".repeat(200), r"\x"] {
            assert!(anchored(value).is_err(), "{value}");
        }
        let unknown = LabelMatcher {
            kind: 7,
            ..LabelMatcher::default()
        };
        assert!(Matcher::new(&unknown).is_err());
    }
}
