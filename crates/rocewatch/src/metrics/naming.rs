//! What a counter's series is called: one rule for what is scraped and for what the archive gives.

use catalog::{Family, FamilyKind, Index, Signal};
use model::{Column, QpColumn, Schema, SourceKind};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A label and its value.
pub(crate) type Label = (&'static str, Cow<'static, str>);

/// The labels, beside those of its port, with which a signal at this index goes out under a family; `None` if it does not.
pub(crate) fn signal_labels(family: &Family, signal: Signal, index: Option<Index>) -> Option<Vec<Label>> {
    let from = family.takes(signal, index)?;
    let fixed = from
        .labels
        .iter()
        .map(|(label, value)| (*label, Cow::Borrowed(*value)));
    let indexed = family.index_label().map(|label| {
        let value = match index {
            Some(Index::Priority(number) | Index::Lane(number)) => number.to_string(),
            _ => String::new(),
        };
        (label, Cow::Owned(value))
    });
    Some(fixed.chain(indexed).collect())
}

/// The columns that a family shows under the driver's own names, of those that are `wanted`; none for a family of signals.
/// Of a name that two sources have the first one's counts: no series may stand twice.
pub(crate) fn raw_columns<'a>(
    family: &Family,
    schema_of: impl Fn(SourceKind) -> Option<&'a Schema>,
    wanted: impl Fn(&Column) -> bool,
) -> Vec<(SourceKind, usize, &'a Column)> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for kind in raw_sources(family) {
        let columns = schema_of(*kind).map_or(&[][..], |schema| &schema.columns);
        for (at, column) in columns.iter().enumerate() {
            if wanted(column) && is_raw_of(family, column) && names.insert(&column.name) {
                found.push((*kind, at, column));
            }
        }
    }
    found
}

/// The labels, beside those of its port, with which a counter of `source` goes out under the driver's own name.
pub(crate) fn raw_labels(source: SourceKind, name: &str) -> Vec<Label> {
    let owned = |label, value: &str| (label, Cow::Owned(value.to_owned()));
    if source != SourceKind::QpCounters {
        return vec![owned("counter", name)];
    }
    let column = QpColumn::parse(name);
    let whose = [
        ("comm", column.comm),
        ("pid", column.pid),
        ("qp_type", column.qp_type),
        ("cntn", column.cntn),
        ("counter", Some(column.counter)),
    ];
    whose
        .into_iter()
        .filter_map(|(label, value)| Some(owned(label, value?)))
        .collect()
}

/// The sources whose counters a family shows under the driver's own names, the one that counts first; none for any other.
pub(crate) fn raw_sources(family: &Family) -> &'static [SourceKind] {
    match family.name {
        "hw_counter" | "hw_gauge" => &[SourceKind::HwCounters, SourceKind::DeviceCounters],
        "ethtool_counter" | "ethtool_gauge" => &[SourceKind::Ethtool],
        "port_counter" => &[SourceKind::PortCounters],
        "qp_counter" | "qp_gauge" => &[SourceKind::QpCounters],
        _ => &[],
    }
}

/// Counters stand in a family of counters, all else in one of gauges.
fn is_raw_of(family: &Family, column: &Column) -> bool {
    column.counts == (family.kind == FamilyKind::Counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_queue_pairs_goes_out_with_what_they_have_in_common() {
        let labels = |source, name| {
            let labels = raw_labels(source, name).into_iter();
            labels
                .map(|(label, value)| format!("{label}={value}"))
                .collect::<Vec<_>>()
        };
        let of_process = "pid=7 qp_type=RC comm=a b x";
        assert_eq!(
            labels(SourceKind::QpCounters, of_process),
            ["comm=a b", "pid=7", "qp_type=RC", "counter=x"]
        );
        assert_eq!(
            labels(SourceKind::QpCounters, "cntn=8 x"),
            ["cntn=8", "counter=x"]
        );
        assert_eq!(
            labels(SourceKind::HwCounters, of_process),
            [format!("counter={of_process}")]
        );
    }
}
