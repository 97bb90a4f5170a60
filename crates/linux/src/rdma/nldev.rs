//! RDMA netlink: the messages and attributes of `include/uapi/rdma/rdma_netlink.h` that are used here.

use crate::netlink::{ANSWER, Attributes, DUMP, Request, Socket};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CStr;

/// `RDMA_NL_NLDEV` as client, in the upper six bits of a message's type.
const NLDEV: u16 = 5 << 10;
const GET: u16 = NLDEV + 1;
const SYS_GET: u16 = NLDEV + 6;
const STAT_SET: u16 = NLDEV + 16;
const STAT_GET: u16 = NLDEV + 17;
const STAT_GET_STATUS: u16 = NLDEV + 24;
const MONITOR: u16 = NLDEV + 28;

const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const RES_QP: u32 = 19;
const STAT_MODE: u16 = 74;
const STAT_RES: u16 = 75;
const HWCOUNTERS: u16 = 80;
const HWCOUNTER: u16 = 81;
const HWCOUNTER_NAME: u16 = 82;
const HWCOUNTER_VALUE: u16 = 83;
const HWCOUNTER_INDEX: u16 = 94;
const HWCOUNTER_DYNAMIC: u16 = 95;
const MONITOR_MODE: u16 = 103;
/// `RDMA_NL_GROUP_NOTIFY`.
const GROUP_NOTIFY: u32 = 4;

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

/// A socket that hears of RDMA devices that come, go, are renamed or get another netdev; `None` on a kernel that does
/// not tell (before 6.12).
///
/// # Errors
/// As for [`indexes`].
pub(crate) fn monitor() -> Result<Option<Socket>, Errno> {
    let mut socket = Socket::open(NlFamily::Rdma, &[], ANSWER)?;
    let system = socket.ask(&mut Request::new(SYS_GET, &[]))?;
    if Attributes::new(system).find_kind(MONITOR_MODE).is_none() {
        return Ok(None);
    }
    socket.join(GROUP_NOTIFY)?;
    Ok(Some(socket))
}

/// True for a message of [`monitor`]. Which device it is about does not matter: the ports are listed again.
pub(crate) fn is_notice(kind: u16) -> bool {
    kind == MONITOR
}

/// A request about a port.
fn about(kind: u16, device: u32, port: u32) -> Request {
    Request::new(kind, &[])
        .with(DEV_INDEX, &device.to_ne_bytes())
        .with(PORT_INDEX, &port.to_ne_bytes())
}

/// The request for all counters of a port, at one instant. The kernel asks the driver anew: `lifespan` is for sysfs alone.
pub(super) fn counters_of(device: u32, port: u32) -> Request {
    about(STAT_GET, device, port)
}

/// The request for how counters are bound to queue pairs. It costs no firmware command (`rdma_counter_get_mode`).
pub(super) fn queue_pair_mode_of(device: u32, port: u32) -> Request {
    about(STAT_GET, device, port)
        .with(STAT_RES, &RES_QP.to_ne_bytes())
        .with(STAT_MODE, &0u32.to_ne_bytes())
}

/// The answer to [`queue_pair_mode_of`].
pub(super) fn queue_pair_mode(payload: &[u8]) -> Option<QueuePairMode> {
    match Attributes::new(payload).find_kind(STAT_MODE)?.u32()? {
        0 => Some(QueuePairMode::Off),
        1 => Some(QueuePairMode::Auto),
        2 => Some(QueuePairMode::Manual),
        _ => None,
    }
}

/// How counters of their own are bound to queue pairs: `enum rdma_nl_counter_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueuePairMode {
    /// Not at all.
    Off,
    /// To each new queue pair of a user, by type or process.
    Auto,
    /// To those that an administrator named.
    Manual,
}

/// The request for which counters of a port are optional, and which of them are switched on.
pub(super) fn status_of(device: u32, port: u32) -> Request {
    about(STAT_GET_STATUS, device, port)
}

/// An optional counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Optional {
    /// Its place among the driver's counters.
    pub index: u32,
    /// It is switched on.
    pub on: bool,
}

/// The optional counters of an answer to [`status_of`]. Counters that are always there have no switch.
pub(super) fn optional(payload: &[u8]) -> Vec<Optional> {
    let all = Attributes::new(payload).find_kind(HWCOUNTERS);
    let entries = Attributes::new(all.map_or(&[], |all| all.value));
    let read = |entry: Attributes<'_>| {
        Some(Optional {
            index: entry.find_kind(HWCOUNTER_INDEX)?.u32()?,
            on: entry.find_kind(HWCOUNTER_DYNAMIC)?.u8()? != 0,
        })
    };
    entries
        .filter(|attribute| attribute.kind == HWCOUNTER)
        .filter_map(|entry| read(Attributes::new(entry.value)))
        .collect()
}

/// The request that switches exactly these optional counters on, and all others off. Needs `CAP_NET_ADMIN` in the first
/// user namespace.
pub(super) fn switch_on(device: u32, port: u32, indexes: &[u32]) -> Request {
    let indexes: Vec<_> = indexes.iter().map(|index| index.to_ne_bytes()).collect();
    let nest: Vec<(u16, &[u8])> = indexes
        .iter()
        .map(|index| (HWCOUNTER_INDEX, &index[..]))
        .collect();
    about(STAT_SET, device, port).with_nest(HWCOUNTERS, &nest)
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

    /// An entry of an answer to [`status_of`].
    fn switch(name: &str, index: u32, on: Option<u8>) -> Vec<u8> {
        let mut inner = attribute(HWCOUNTER_NAME, format!("{name}\0").as_bytes());
        inner.extend(attribute(HWCOUNTER_INDEX, &index.to_ne_bytes()));
        inner.extend(
            on.map(|on| attribute(HWCOUNTER_DYNAMIC, &[on]))
                .unwrap_or_default(),
        );
        attribute(HWCOUNTER, &inner)
    }

    #[test]
    fn optional_counters_are_those_with_a_switch() {
        let entries = [
            switch("out_of_sequence", 0, None),
            switch("cc_rx_ce_pkts", 31, Some(0)),
            switch("cc_rx_cnp_pkts", 32, Some(1)),
        ];
        let found = optional(&attribute(HWCOUNTERS, &entries.concat()));
        assert_eq!(
            found,
            [
                Optional { index: 31, on: false },
                Optional { index: 32, on: true }
            ]
        );
        assert_eq!(optional(&[]), []);
    }

    #[test]
    fn the_request_to_switch_on_names_the_whole_set() {
        let request = switch_on(7, 1, &[31, 33]);
        let all = Attributes::new(request.payload()).find_kind(HWCOUNTERS).unwrap();
        let indexes: Vec<_> = Attributes::new(all.value)
            .map(|index| (index.kind, index.u32()))
            .collect();
        assert_eq!(
            indexes,
            [(HWCOUNTER_INDEX, Some(31)), (HWCOUNTER_INDEX, Some(33))]
        );
        let none = switch_on(7, 1, &[]);
        let all = Attributes::new(none.payload()).find_kind(HWCOUNTERS).unwrap();
        assert_eq!(all.value, b"", "an empty set switches all off");
    }

    #[test]
    fn the_mode_of_queue_pair_counters_has_a_word() {
        let answer = |mode: u32| attribute(STAT_MODE, &mode.to_ne_bytes());
        assert_eq!(queue_pair_mode(&answer(0)), Some(QueuePairMode::Off));
        assert_eq!(queue_pair_mode(&answer(1)), Some(QueuePairMode::Auto));
        assert_eq!(queue_pair_mode(&answer(2)), Some(QueuePairMode::Manual));
        assert_eq!(queue_pair_mode(&answer(3)), None);
        assert_eq!(queue_pair_mode(&[]), None);
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
                prop_assert!(optional(payload).len() <= payload.len());
                let _ = queue_pair_mode(payload);
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
