//! The two text formats: Prometheus 0.0.4 and `OpenMetrics` 1.0.

use catalog::{Family, FamilyKind};

/// Every metric's name begins with this, except those that every exporter has under `process_`.
pub(super) const PREFIX: &str = "rocewatch_";

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus text format 0.0.4.
    Text,
    /// `OpenMetrics` text format 1.0.0.
    OpenMetrics,
}

/// How the body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Not at all.
    Identity,
    /// RFC 1952.
    Gzip,
}

impl Format {
    /// The format that an `Accept` header prefers; Prometheus text where it says nothing of `OpenMetrics`.
    pub(crate) fn negotiate(accept: &str) -> Self {
        let open = quality(accept, "application/openmetrics-text").unwrap_or(0.0);
        // The most specific range that fits counts (RFC 9110, 12.5.1).
        let text = ["text/plain", "text/*", "*/*"]
            .into_iter()
            .find_map(|range| quality(accept, range))
            .unwrap_or(0.0);
        if open > 0.0 && open >= text {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// The `Content-Type` of an exposition.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Encoding {
    /// Gzip if an `Accept-Encoding` header allows it.
    pub(crate) fn negotiate(accept_encoding: &str) -> Self {
        if quality(accept_encoding, "gzip").is_some_and(|quality| quality > 0.0) {
            Self::Gzip
        } else {
            Self::Identity
        }
    }
}

/// The quality (RFC 9110, 12.4.2) that a header gives to `name`: 1 if nothing else is said, `None` if it is not there.
fn quality(header: &str, name: &str) -> Option<f32> {
    header
        .split(',')
        .filter_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            parts.next().filter(|what| what.eq_ignore_ascii_case(name))?;
            let weight = parts
                .filter_map(|part| part.split_once('='))
                .find(|(key, _)| key.eq_ignore_ascii_case("q"));
            Some(weight.map_or(1.0, |(_, q)| q.parse().unwrap_or(0.0)))
        })
        .reduce(f32::max)
}

/// `# HELP`, `# TYPE` and `# UNIT` of a family of the catalogue.
pub(crate) fn family_header(format: Format, family: &Family) -> String {
    let name = format!("{PREFIX}{}", family.name);
    let mut out = String::new();
    header(format, &name, family.kind, family.unit, family.help, &mut out);
    out
}

/// Both headers of a family, written in advance.
pub(super) struct Headers {
    text: String,
    open_metrics: String,
}

impl Headers {
    pub(super) fn of(family: &Family) -> Self {
        let name = format!("{PREFIX}{}", family.name);
        Self::new(&name, family.kind, family.unit, family.help)
    }

    /// As [`header`].
    pub(super) fn new(name: &str, kind: FamilyKind, unit: &str, help: &str) -> Self {
        let of_format = |format| {
            let mut out = String::new();
            header(format, name, kind, unit, help, &mut out);
            out
        };
        Self {
            text: of_format(Format::Text),
            open_metrics: of_format(Format::OpenMetrics),
        }
    }

    pub(super) fn of_format(&self, format: Format) -> &str {
        match format {
            Format::Text => &self.text,
            Format::OpenMetrics => &self.open_metrics,
        }
    }
}

/// `# HELP`, `# TYPE` and `# UNIT` of a family; `name` is whole but for a counter's `_total`.
pub(super) fn header(format: Format, name: &str, kind: FamilyKind, unit: &str, help: &str, out: &mut String) {
    // OpenMetrics names the family without the suffix that its samples have.
    let suffix = if format == Format::Text { suffix(kind) } else { "" };
    let kind = match kind {
        FamilyKind::Counter => "counter",
        FamilyKind::Gauge => "gauge",
        FamilyKind::Histogram => "histogram",
    };
    out.extend(["# HELP ", name, suffix, " "]);
    escape(help, format == Format::OpenMetrics, out);
    out.extend(["\n# TYPE ", name, suffix, " ", kind, "\n"]);
    if format == Format::OpenMetrics && !unit.is_empty() {
        out.extend(["# UNIT ", name, " ", unit, "\n"]);
    }
}

/// What a name has behind it where it stands before a value, but in a histogram.
pub(super) fn suffix(kind: FamilyKind) -> &'static str {
    if kind == FamilyKind::Counter { "_total" } else { "" }
}

/// A series' name and labels, up to the value.
pub(crate) fn prefix<'a>(
    name: &str,
    suffix: &str,
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    out: &mut String,
) {
    out.extend([name, suffix]);
    let mut separator = '{';
    for (label, value) in labels {
        out.push(separator);
        out.extend([label, "=\""]);
        escape(value, true, out);
        out.push('"');
        separator = ',';
    }
    out.push_str(if separator == '{' { " " } else { "} " });
}

/// Escapes backslash and line feed, and the quote where it would end the text.
fn escape(text: &str, quote: bool, out: &mut String) {
    if !text.bytes().any(|byte| matches!(byte, b'\\' | b'\n' | b'"')) {
        out.push_str(text);
        return;
    }
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quote => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_negotiated_as_prometheus_asks() {
        // What Prometheus 2.42 sends.
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::negotiate(prometheus), Format::OpenMetrics);
        assert_eq!(
            Format::negotiate("text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            Format::Text
        );
        assert_eq!(Format::negotiate("text/html,*/*;q=0.8"), Format::Text);
        assert_eq!(Format::negotiate(""), Format::Text);
        assert_eq!(
            Format::negotiate("application/openmetrics-text;q=0.2,text/plain"),
            Format::Text
        );
        assert_eq!(
            Format::negotiate("application/openmetrics-text;q=0"),
            Format::Text
        );
    }

    #[test]
    fn a_range_counts_only_for_what_no_narrower_one_names() {
        let accept = "application/openmetrics-text;q=0.5,text/plain;q=0.4,*/*";
        assert_eq!(Format::negotiate(accept), Format::OpenMetrics);
        let accept = "application/openmetrics-text;q=0.5,text/*;q=0.6,*/*;q=0.1";
        assert_eq!(Format::negotiate(accept), Format::Text);
    }

    #[test]
    fn the_letter_of_a_weight_has_no_case() {
        assert_eq!(Encoding::negotiate("gzip;Q=0"), Encoding::Identity);
        assert_eq!(
            Format::negotiate("application/openmetrics-text;Q=0.1,text/plain"),
            Format::Text
        );
    }

    #[test]
    fn gzip_is_used_only_where_it_is_accepted() {
        assert_eq!(Encoding::negotiate("gzip, deflate"), Encoding::Gzip);
        assert_eq!(
            Encoding::negotiate("deflate, gzip;q=1.0, *;q=0.5"),
            Encoding::Gzip
        );
        assert_eq!(Encoding::negotiate("gzip;q=0"), Encoding::Identity);
        assert_eq!(Encoding::negotiate("br"), Encoding::Identity);
        assert_eq!(Encoding::negotiate(""), Encoding::Identity);
    }

    #[test]
    fn label_values_are_escaped() {
        let mut out = String::new();
        prefix(
            "rocewatch_x",
            "_total",
            [("a", "1"), ("b", "say \"hi\"\\\n")],
            &mut out,
        );
        assert_eq!(out, "rocewatch_x_total{a=\"1\",b=\"say \\\"hi\\\"\\\\\\n\"} ");
        out.clear();
        prefix("rocewatch_x", "", [], &mut out);
        assert_eq!(out, "rocewatch_x ");
    }

    #[test]
    fn headers_differ_by_format() {
        let mut out = String::new();
        header(
            Format::Text,
            "rocewatch_a_bytes",
            FamilyKind::Counter,
            "bytes",
            "A \"b\"\\.",
            &mut out,
        );
        assert_eq!(
            out,
            "# HELP rocewatch_a_bytes_total A \"b\"\\\\.\n# TYPE rocewatch_a_bytes_total counter\n"
        );
        out.clear();
        header(
            Format::OpenMetrics,
            "rocewatch_a_bytes",
            FamilyKind::Counter,
            "bytes",
            "A \"b\".",
            &mut out,
        );
        assert_eq!(
            out,
            "# HELP rocewatch_a_bytes A \\\"b\\\".\n# TYPE rocewatch_a_bytes counter\n# UNIT rocewatch_a_bytes bytes\n"
        );
    }
}
