//! Answers of DCB netlink.

use linux::fuzzing::dcb::row;
use model::SourceKind;
use std::collections::HashSet;

/// Each column has a name of its own that the catalogue knows, and a value.
pub fn check(answer: &[u8]) {
    let (columns, values) = row(answer, 0);
    assert_eq!(
        row(answer, u64::MAX),
        (columns.clone(), values.clone()),
        "a cell was left unset"
    );
    let different: HashSet<_> = columns.iter().collect();
    assert_eq!(different.len(), columns.len());
    for (column, value) in columns.iter().zip(values) {
        assert!(
            catalog::meaning("any", SourceKind::Dcb, column).is_some(),
            "{column}"
        );
        let is_priority = column.starts_with("dscp") || column == "roce_udp_prio";
        assert!(!is_priority || value < 8, "{column} {value}");
    }
}
