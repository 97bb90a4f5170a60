//! RDMA netlink: the messages and attributes of `include/uapi/rdma/rdma_netlink.h` that are used here.

use crate::netlink::{Attributes, DUMP, Request, Socket};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CStr;

/// `RDMA_NL_NLDEV` as client, in the upper six bits of a message's type.
const NLDEV: u16 = 5 << 10;
const GET: u16 = NLDEV + 1;
const STAT_GET: u16 = NLDEV + 17;

const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const HWCOUNTERS: u16 = 80;
const HWCOUNTER: u16 = 81;
const HWCOUNTER_NAME: u16 = 82;
const HWCOUNTER_VALUE: u16 = 83;

/// Index of each RDMA device, by name.
///
/// # Errors
/// The kernel has no RDMA netlink (`EPROTONOSUPPORT`) or refuses.
pub(crate) fn indexes() -> Result<HashMap<String, u32>, Errno> {
    let mut socket = Socket::open(NlFamily::Rdma, &[], DUMP)?;
    let mut indexes = HashMap::new();
    socket.dump(&mut Request::dump(GET, &[]), |message| {
        indexes.extend(device(message.payload));
    })?;
    Ok(indexes)
}

/// Name and index of a device of the dump.
pub(super) fn device(payload: &[u8]) -> Option<(String, u32)> {
    let attributes = Attributes::new(payload);
    let index = attributes.find_kind(DEV_INDEX)?.u32()?;
    let name = attributes.find_kind(DEV_NAME)?;
    Some((name.text()?.to_owned(), index))
}

/// The request for all counters of a port, at one instant. The kernel asks the driver anew: `lifespan` is for sysfs alone.
pub(super) fn counters_of(device: u32, port: u32) -> Request {
    Request::new(STAT_GET, &[])
        .with(DEV_INDEX, &device.to_ne_bytes())
        .with(PORT_INDEX, &port.to_ne_bytes())
}

/// Names and values of an answer to [`counters_of`], in the driver's order; `None` if it holds none. Optional counters
/// that are not switched on are not in it.
pub(super) fn counters(payload: &[u8]) -> Option<impl Iterator<Item = (&str, u64)>> {
    let all = Attributes::new(payload).find_kind(HWCOUNTERS)?;
    let entries = Attributes::new(all.value).filter(|attribute| attribute.kind == HWCOUNTER);
    Some(entries.filter_map(|entry| {
        let mut name = None;
        let mut value = None;
        for attribute in Attributes::new(entry.value) {
            match attribute.kind {
                HWCOUNTER_NAME => name = Some(attribute),
                HWCOUNTER_VALUE => value = attribute.u64(),
                _ => {}
            }
        }
        let name = CStr::from_bytes_until_nul(name?.value).ok()?;
        Some((name.to_str().ok()?, value?))
    }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An attribute with its padding.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn entry(name: &str, value: u64) -> Vec<u8> {
        let name = attribute(HWCOUNTER_NAME, format!("{name}\0").as_bytes());
        attribute(
            HWCOUNTER,
            &[name, attribute(HWCOUNTER_VALUE, &value.to_ne_bytes())].concat(),
        )
    }

    pub(in crate::rdma) fn answer(counters: &[(&str, u64)]) -> Vec<u8> {
        let entries: Vec<u8> = counters
            .iter()
            .flat_map(|(name, value)| entry(name, *value))
            .collect();
        let mut payload = attribute(DEV_INDEX, &0u32.to_ne_bytes());
        payload.extend(attribute(DEV_NAME, b"mlx5_0\0"));
        payload.extend(attribute(PORT_INDEX, &1u32.to_ne_bytes()));
        payload.extend(attribute(HWCOUNTERS, &entries));
        payload
    }

    #[test]
    fn an_answer_gives_names_and_values_in_its_order() {
        let payload = answer(&[("np_cnp_sent", u64::MAX - 1), ("a", 0)]);
        let found: Vec<_> = counters(&payload).unwrap().collect();
        assert_eq!(found, [("np_cnp_sent", u64::MAX - 1), ("a", 0)]);
    }

    #[test]
    fn padding_attributes_and_unknown_ones_are_passed_over() {
        let mut inner = attribute(84, b"");
        inner.extend(attribute(HWCOUNTER_NAME, b"a\0"));
        inner.extend(attribute(0, b""));
        inner.extend(attribute(HWCOUNTER_VALUE, &7u64.to_ne_bytes()));
        let entries = [attribute(99, b"new"), attribute(HWCOUNTER, &inner)].concat();
        let payload = attribute(HWCOUNTERS, &entries);
        assert_eq!(counters(&payload).unwrap().collect::<Vec<_>>(), [("a", 7)]);
    }

    #[test]
    fn an_entry_without_its_name_or_its_64_bits_is_left_out() {
        let without_value = attribute(HWCOUNTER, &attribute(HWCOUNTER_NAME, b"a\0"));
        let short = [
            attribute(HWCOUNTER_NAME, b"b\0"),
            attribute(HWCOUNTER_VALUE, &1u32.to_ne_bytes()),
        ]
        .concat();
        let unterminated = [
            attribute(HWCOUNTER_NAME, b"c"),
            attribute(HWCOUNTER_VALUE, &1u64.to_ne_bytes()),
        ]
        .concat();
        let entries = [
            without_value,
            attribute(HWCOUNTER, &short),
            attribute(HWCOUNTER, &unterminated),
        ]
        .concat();
        assert_eq!(counters(&attribute(HWCOUNTERS, &entries)).unwrap().count(), 0);
    }

    #[test]
    fn an_answer_without_counters_is_none() {
        assert!(counters(&[]).is_none());
        assert!(counters(&attribute(DEV_INDEX, &0u32.to_ne_bytes())).is_none());
    }

    #[test]
    fn a_device_has_name_and_index() {
        let payload = [
            attribute(DEV_INDEX, &5u32.to_ne_bytes()),
            attribute(DEV_NAME, b"mlx5_4\0"),
        ]
        .concat();
        assert_eq!(device(&payload), Some(("mlx5_4".to_owned(), 5)));
        assert_eq!(device(&[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_leaving_them(bytes: Vec<u8>) {
            let nested = attribute(HWCOUNTERS, &attribute(HWCOUNTER, &bytes));
            for payload in [&bytes[..], &attribute(HWCOUNTERS, &bytes), &nested] {
                if let Some(counters) = counters(payload) {
                    prop_assert!(counters.map(|(name, _)| name.len()).sum::<usize>() <= payload.len());
                }
            }
        }

        #[test]
        fn a_cut_answer_gives_a_beginning_of_the_counters(
            values in proptest::collection::vec(any::<u64>(), 1..40),
            cut in 0usize..4000,
        ) {
            let names: Vec<String> = (0..values.len()).map(|i| format!("counter_{i}")).collect();
            let all: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(values.iter().copied()).collect();
            let entries: Vec<u8> = all.iter().flat_map(|(name, value)| entry(name, *value)).collect();
            let nest = attribute(HWCOUNTERS, &entries[..cut.min(entries.len())]);
            let found: Vec<_> = counters(&nest).unwrap().collect();
            prop_assert_eq!(&found[..], &all[..found.len()]);
        }
    }
}
