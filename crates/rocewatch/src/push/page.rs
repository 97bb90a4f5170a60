//! Takes a page of `/metrics` apart again: what is pushed is what a scrape would have found, by construction.

/// A line of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// Name and labels as they are written, which is what tells series apart.
    pub(super) series: &'a str,
    pub(super) value: f64,
}

/// The samples of a page in Prometheus' text format, as this agent writes it.
pub(super) fn lines(page: &str) -> impl Iterator<Item = Line<'_>> {
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            Some(Line {
                series,
                value: value.parse().ok()?,
            })
        })
}

/// Name and labels of a series.
pub(super) fn labels(series: &str) -> (&str, Vec<(&str, String)>) {
    let Some((name, rest)) = series.split_once('{') else {
        return (series, Vec::new());
    };
    let mut labels = Vec::new();
    let mut rest = rest.strip_suffix('}').unwrap_or(rest);
    while let Some((label, value)) = rest.split_once("=\"") {
        let (value, behind) = unescape(value);
        labels.push((label, value));
        rest = behind.strip_prefix(',').unwrap_or(behind);
    }
    (name, labels)
}

/// The text up to the closing quote, and what is behind it.
fn unescape(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => match letters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, other)) => value.push(other),
                None => {}
            },
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_it_was_written() {
        let page = "# HELP a b\n# TYPE a gauge\na 1\na_total{device=\"mlx5_0\",why=\"say \\\"hi\\\", \\\\ or {x=\\\"1\\\"}\\n\"} 18446744073709551615\nb{le=\"+Inf\"} NaN\n";
        let found: Vec<_> = lines(page).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(labels(found[0].series), ("a", Vec::new()));
        let (name, labels_of) = labels(found[1].series);
        assert_eq!(name, "a_total");
        assert_eq!(
            labels_of,
            [
                ("device", "mlx5_0".to_owned()),
                ("why", "say \"hi\", \\ or {x=\"1\"}\n".to_owned())
            ]
        );
        assert!((found[1].value - 18_446_744_073_709_551_615.0).abs() < 1.0);
        assert_eq!(labels(found[2].series).1, [("le", "+Inf".to_owned())]);
        assert!(found[2].value.is_nan());
    }
}
