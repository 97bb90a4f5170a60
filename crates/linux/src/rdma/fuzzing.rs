//! Answers of RDMA netlink for the fuzz targets.

use super::{nldev, stat};
use model::{DeviceId, PortId, Schema, SourceKind};

/// The columns that an answer makes.
#[must_use]
pub fn schema(answer: &[u8]) -> Option<Schema> {
    let port = PortId {
        device: DeviceId::guid("0"),
        number: 1,
    };
    let names = stat::names(answer)?;
    Some(Schema::new(port, "mlx5_core", SourceKind::HwCounters, names))
}

/// Fills `row` from an answer; false if its counters are not those of the schema.
pub fn fill(answer: &[u8], schema: &Schema, row: &mut [u64]) -> bool {
    stat::fill(answer, schema, row)
}

/// Names and values of an answer.
#[must_use]
pub fn counters(answer: &[u8]) -> Vec<(&str, u64)> {
    nldev::counters(answer).into_iter().flatten().collect()
}

/// Name and index of a device.
#[must_use]
pub fn device(payload: &[u8]) -> Option<(String, u32)> {
    nldev::device(payload)
}

/// The numbers of the queue pairs of an answer, and of those whose connections lead somewhere.
#[must_use]
pub fn queue_pairs(answer: &[u8]) -> Vec<u32> {
    let tracked = nldev::queue_pairs(answer).into_iter().map(|entry| entry.number);
    tracked
        .chain(nldev::connections(answer).map(|led| led.number))
        .collect()
}

/// The numbers of the groups of queue pairs that are counted together, and how much each has counted.
#[must_use]
pub fn bound(answer: &[u8]) -> Vec<(u32, u64)> {
    let sum = |one: &nldev::Bound<'_>| {
        one.counters()
            .fold(one.queue_pairs, |sum, (_, value)| sum.wrapping_add(value))
    };
    nldev::bound(answer).map(|one| (one.id, sum(&one))).collect()
}

/// What a process runs in, by the text of its control group.
#[must_use]
pub fn place(cgroup: &str) -> model::Place {
    crate::place::of_cgroup(cgroup)
}
