//! Names with `*` for any run of characters.

use serde::{Deserialize, Serialize};

/// A name, or several by `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Pattern(String);

impl Pattern {
    /// True if `name` as a whole fits.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else {
            return false;
        };
        let Some(last) = pieces.next_back() else {
            return rest.is_empty();
        };
        for piece in pieces {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn stars_stand_for_any_run_and_the_rest_for_itself() {
        let fits = |pattern: &str, name: &str| Pattern(pattern.to_owned()).matches(name);
        assert!(fits("mlx5_0", "mlx5_0") && !fits("mlx5_0", "mlx5_01") && !fits("mlx5_0", "mlx5_"));
        assert!(fits("mlx5_*", "mlx5_") && fits("mlx5_*", "mlx5_17") && !fits("mlx5_*", "mlx4_0"));
        assert!(fits("*", "") && fits("*np0", "enp1s0np0") && !fits("*np0", "enp1s0np1"));
        assert!(fits("0000:*:00.*", "0000:1a:00.1") && !fits("0000:*:00.*", "0000:1a:01.1"));
        assert!(!fits("aa*aa", "aaa") && fits("aa*aa", "aaaa"));
    }
}
