//! A source that is read ten times a second on every port allocates nothing.
#![allow(clippy::disallowed_methods)] // the tests write the files that are read

#[path = "../src/allocations.rs"]
mod allocations;
mod support;

use model::{Read, SourceKind};
use support::Sysfs;

#[test]
fn reading_a_row_allocates_nothing() {
    let sysfs = Sysfs::new();
    sysfs.nic(0);
    // A counter that fails costs nothing either.
    sysfs.break_file("class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent");
    for kind in [SourceKind::HwCounters, SourceKind::PortCounters, SourceKind::Link] {
        let mut source = sysfs.active("mlx5_0", kind);
        let mut row = vec![0; source.schema().columns.len()];
        let count = allocations::during(|| assert_eq!(source.read(&mut row), Read::Row));
        assert_eq!(count, 0, "{kind}");
    }
}
