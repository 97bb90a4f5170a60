//! Numbers as people read them.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Three digits that count, with the engineer's prefixes.
pub(crate) fn number(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let found = prefixes.into_iter().find(|(scale, _)| value.abs() >= *scale);
    let (scale, prefix) = found.unwrap_or((1.0, ""));
    let value = value / scale;
    let decimals = if value.abs() >= 100.0 || value.fract().abs() < 1e-9 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {prefix}").trim_end().to_owned()
}

/// A course as a row of bars, from nothing to its highest value.
pub(crate) fn sparkline(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let top = (BARS.len() - 1) as f64;
    values
        .iter()
        .map(|value| {
            // A share of the highest bar, which is in range.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let bar = if most > 0.0 {
                (value / most * top).round() as usize
            } else {
                0
            };
            BARS[bar.min(BARS.len() - 1)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.50"),
            (12.0, "12"),
            (12.34, "12.3"),
            (999.0, "999"),
            (1500.0, "1.50 k"),
            (50_000.0, "50 k"),
            (25_000_000_000.0, "25 G"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_course_is_drawn_from_nothing_to_its_highest() {
        assert_eq!(sparkline(&[0.0, 5.0, 10.0]), "▁▅█");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
    }
}
