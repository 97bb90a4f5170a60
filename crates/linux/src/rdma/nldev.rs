//! RDMA netlink: the messages and attributes of `include/uapi/rdma/rdma_netlink.h` that are used here.

use crate::netlink::{ANSWER, Attributes, DUMP, Request, Socket};
use model::{QueuePairKind, QueuePairState};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CStr;
use std::net::SocketAddr;

/// `RDMA_NL_NLDEV` as client, in the upper six bits of a message's type.
const NLDEV: u16 = 5 << 10;
const GET: u16 = NLDEV + 1;
const SYS_GET: u16 = NLDEV + 6;
const RES_GET: u16 = NLDEV + 9;
const RES_QP_GET: u16 = NLDEV + 10;
const RES_CM_ID_GET: u16 = NLDEV + 11;
const STAT_SET: u16 = NLDEV + 16;
const STAT_GET: u16 = NLDEV + 17;
const STAT_GET_STATUS: u16 = NLDEV + 24;
const MONITOR: u16 = NLDEV + 28;

const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const RES_SUMMARY: u16 = 15;
const RES_SUMMARY_ENTRY: u16 = 16;
const RES_SUMMARY_NAME: u16 = 17;
const RES_SUMMARY_CURRENT: u16 = 18;
const RES_QP: u16 = 19;
const RES_QP_ENTRY: u16 = 20;
const RES_LQPN: u16 = 21;
const RES_RQPN: u16 = 22;
const RES_TYPE: u16 = 26;
const RES_STATE: u16 = 27;
const RES_PID: u16 = 28;
const RES_KERN_NAME: u16 = 29;
const RES_CM_ID: u16 = 30;
const RES_CM_ID_ENTRY: u16 = 31;
const RES_DST_ADDR: u16 = 34;
const STAT_MODE: u16 = 74;
const STAT_RES: u16 = 75;
const STAT_COUNTER: u16 = 77;
const STAT_COUNTER_ENTRY: u16 = 78;
const STAT_COUNTER_ID: u16 = 79;
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
        .with(STAT_RES, &u32::from(RES_QP).to_ne_bytes())
        .with(STAT_MODE, &0u32.to_ne_bytes())
}

/// The answer to [`queue_pair_mode_of`].
pub(super) fn queue_pair_mode(payload: &[u8]) -> Option<QueuePairMode> {
    mode_of(Attributes::new(payload).find_kind(STAT_MODE)?.u32()?)
}

fn mode_of(number: u32) -> Option<QueuePairMode> {
    match number {
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

/// The request for every counter of a port that queue pairs are bound to. The kernel asks the driver once for each of them,
/// and tells its former values where the driver refuses (`fill_res_counter_entry`). No right is needed.
pub(super) fn bound_of(device: u32, port: u32) -> Request {
    Request::dump(STAT_GET, &[])
        .with(DEV_INDEX, &device.to_ne_bytes())
        .with(PORT_INDEX, &port.to_ne_bytes())
        .with(STAT_RES, &u32::from(RES_QP).to_ne_bytes())
}

/// What queue pairs that are counted together have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bond {
    /// The kernel's number of the group, where an administrator made it and nothing else is in common.
    pub cntn: Option<u32>,
    /// The thread that made them, where they are counted by that and the kernel names it (`rdma_restrack_attach_task`).
    pub process: Option<u32>,
    /// Their type, where they are counted by type.
    pub kind: Option<QueuePairKind>,
}

/// A counter of an answer to [`bound_of`].
#[derive(Clone, Debug)]
pub(super) struct Bound<'a> {
    /// Its number: that of the driver's set of counters, which is given again once it is free.
    pub id: u32,
    pub port: u32,
    pub bond: Bond,
    /// How many queue pairs are bound to it.
    pub queue_pairs: u64,
    entry: Attributes<'a>,
}

impl<'a> Bound<'a> {
    /// Names and values of what it counts, in the driver's order.
    pub(super) fn counters(&self) -> impl Iterator<Item = (&'a str, u64)> + use<'a> {
        counters_in(&self.entry).into_iter().flatten()
    }
}

/// The counters of an answer to [`bound_of`].
pub(super) fn bound(payload: &[u8]) -> impl Iterator<Item = Bound<'_>> {
    nested(payload, STAT_COUNTER, STAT_COUNTER_ENTRY).filter_map(one_bound)
}

fn one_bound(entry: Attributes<'_>) -> Option<Bound<'_>> {
    let number = |kind| entry.find_kind(kind)?.u32();
    let id = number(STAT_COUNTER_ID)?;
    let by_hand = mode_of(number(STAT_MODE)?) == Some(QueuePairMode::Manual);
    let numbers = entry.find_kind(RES_QP).map_or(&[][..], |numbers| numbers.value);
    let queue_pairs = Attributes::new(numbers).filter(|one| one.kind == RES_QP_ENTRY);
    Some(Bound {
        id,
        port: number(PORT_INDEX)?,
        bond: Bond {
            cntn: by_hand.then_some(id),
            process: number(RES_PID),
            kind: entry
                .find_kind(RES_TYPE)
                .and_then(|kind| kind.u8())
                .map(QueuePairKind),
        },
        queue_pairs: queue_pairs.count() as u64,
        entry,
    })
}

/// The request for every queue pair of a device, as the kernel tracks them.
pub(super) fn queue_pairs_of(device: u32) -> Request {
    Request::dump(RES_QP_GET, &[]).with(DEV_INDEX, &device.to_ne_bytes())
}

/// A queue pair of an answer to [`queue_pairs_of`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub number: u32,
    pub port: Option<u32>,
    pub kind: QueuePairKind,
    pub state: QueuePairState,
    pub remote: Option<u32>,
    /// The part of the kernel that holds it.
    pub kernel: Option<String>,
    /// The process that holds it, if the kernel names it.
    pub process: Option<u32>,
}

/// The queue pairs of an answer to [`queue_pairs_of`].
pub(super) fn queue_pairs(payload: &[u8]) -> Vec<Entry> {
    nested(payload, RES_QP, RES_QP_ENTRY)
        .filter_map(|entry| queue_pair(&entry))
        .collect()
}

fn queue_pair(entry: &Attributes<'_>) -> Option<Entry> {
    let number = |kind| entry.find_kind(kind)?.u32();
    let byte = |kind| entry.find_kind(kind)?.u8();
    let kernel = entry.find_kind(RES_KERN_NAME).and_then(|name| name.text());
    Some(Entry {
        number: number(RES_LQPN)?,
        port: number(PORT_INDEX),
        kind: QueuePairKind(byte(RES_TYPE)?),
        state: QueuePairState(byte(RES_STATE)?),
        // Of one that is not connected yet it is zero.
        remote: number(RES_RQPN).filter(|remote| *remote != 0),
        kernel: kernel.map(str::to_owned),
        process: number(RES_PID),
    })
}

/// The request for every connection of a device that the RDMA connection manager knows.
pub(super) fn connections_of(device: u32) -> Request {
    Request::dump(RES_CM_ID_GET, &[]).with(DEV_INDEX, &device.to_ne_bytes())
}

/// A connection of an answer to [`connections_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    /// Its queue pair.
    pub number: u32,
    /// Where that leads.
    pub remote: SocketAddr,
}

/// The connections of an answer to [`connections_of`] that have a queue pair and lead somewhere.
pub(super) fn connections(payload: &[u8]) -> impl Iterator<Item = Connection> {
    nested(payload, RES_CM_ID, RES_CM_ID_ENTRY).filter_map(|entry| {
        Some(Connection {
            number: entry.find_kind(RES_LQPN)?.u32().filter(|number| *number != 0)?,
            remote: socket_address(entry.find_kind(RES_DST_ADDR)?.value)?,
        })
    })
}

/// `struct sockaddr_in` or `struct sockaddr_in6`, in the room of a `struct __kernel_sockaddr_storage`.
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET => {
            let address: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
            Some((address, port).into())
        }
        libc::AF_INET6 => {
            let address: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
            Some((address, port).into())
        }
        _ => None,
    }
}

/// The request for how many resources of each kind a device has.
pub(super) fn summary_of(device: u32) -> Request {
    Request::new(RES_GET, &[]).with(DEV_INDEX, &device.to_ne_bytes())
}

/// The number of queue pairs in an answer to [`summary_of`].
pub(super) fn queue_pair_count(payload: &[u8]) -> Option<u64> {
    let mut entries = nested(payload, RES_SUMMARY, RES_SUMMARY_ENTRY);
    entries.find_map(|entry| {
        let name = entry.find_kind(RES_SUMMARY_NAME)?.text()?;
        (name == "qp").then(|| entry.find_kind(RES_SUMMARY_CURRENT)?.u64())?
    })
}

/// The entries of a nest of nests.
fn nested(payload: &[u8], table: u16, entry: u16) -> impl Iterator<Item = Attributes<'_>> {
    let table = Attributes::new(payload).find_kind(table);
    let entries = Attributes::new(table.map_or(&[], |table| table.value));
    entries
        .filter(move |attribute| attribute.kind == entry)
        .map(|attribute| Attributes::new(attribute.value))
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
    counters_in(&Attributes::new(payload))
}

fn counters_in<'a>(attributes: &Attributes<'a>) -> Option<impl Iterator<Item = (&'a str, u64)> + use<'a>> {
    let all = attributes.find_kind(HWCOUNTERS)?;
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

    fn nest(table: u16, entry: u16, entries: &[Vec<u8>]) -> Vec<u8> {
        let entries: Vec<u8> = entries
            .iter()
            .flat_map(|content| attribute(entry | 0x8000, content))
            .collect();
        attribute(table | 0x8000, &entries)
    }

    #[test]
    fn queue_pairs_are_read_with_their_owners() {
        let number = |kind, number: u32| attribute(kind, &number.to_ne_bytes());
        let byte = |kind, byte: u8| attribute(kind, &[byte]);
        let of_process = [
            number(PORT_INDEX, 1),
            number(RES_LQPN, 17),
            number(RES_PID, 4711),
            number(RES_RQPN, 18),
            byte(RES_TYPE, 2),
            byte(RES_STATE, 3),
        ];
        let of_kernel = [
            number(RES_LQPN, 1),
            attribute(RES_KERN_NAME, b"ib_core\0"),
            byte(RES_TYPE, 1),
            byte(RES_STATE, 3),
        ];
        // A process of another PID namespace has no number; a queue pair without a type is none.
        let of_other = [
            number(RES_LQPN, 19),
            number(RES_RQPN, 0),
            byte(RES_TYPE, 4),
            byte(RES_STATE, 0),
        ];
        let cut = [number(RES_LQPN, 20)];
        let entries = [&of_process[..], &of_kernel, &of_other, &cut].map(<[Vec<u8>]>::concat);
        let found = queue_pairs(&nest(RES_QP, RES_QP_ENTRY, &entries));
        let told: Vec<_> = found
            .iter()
            .map(|entry| {
                (
                    entry.number,
                    entry.port,
                    entry.remote,
                    entry.kernel.as_deref(),
                    entry.process,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (17, Some(1), Some(18), None, Some(4711)),
                (1, None, None, Some("ib_core"), None),
                (19, None, None, None, None),
            ]
        );
        assert_eq!((found[0].kind.as_str(), found[0].state.as_str()), ("RC", "RTS"));
        assert_eq!(queue_pairs(&[]), []);
    }

    #[test]
    fn connections_lead_to_their_remote_addresses() {
        let mut ipv4 = vec![0; 128];
        ipv4[..2].copy_from_slice(&2u16.to_ne_bytes());
        ipv4[2..8].copy_from_slice(&[0x12, 0xb7, 10, 8, 0, 2]);
        let led = [
            attribute(RES_LQPN, &17u32.to_ne_bytes()),
            attribute(RES_DST_ADDR, &ipv4),
        ]
        .concat();
        let listening = attribute(RES_DST_ADDR, &ipv4);
        let found: Vec<_> = connections(&nest(RES_CM_ID, RES_CM_ID_ENTRY, &[led, listening])).collect();
        let remote = "10.8.0.2:4791".parse().unwrap();
        assert_eq!(found, [Connection { number: 17, remote }]);
        assert_eq!(socket_address(&[1, 0, 0, 0]), None);
        assert_eq!(socket_address(&[2, 0, 0]), None);
    }

    #[test]
    fn the_kernels_own_count_is_found_by_name() {
        let entry = |name: &[u8], count: u64| {
            [
                attribute(RES_SUMMARY_NAME, name),
                attribute(RES_SUMMARY_CURRENT, &count.to_ne_bytes()),
            ]
            .concat()
        };
        let answer = nest(
            RES_SUMMARY,
            RES_SUMMARY_ENTRY,
            &[entry(b"cq\0", 5), entry(b"qp\0", 7)],
        );
        assert_eq!(queue_pair_count(&answer), Some(7));
        assert_eq!(queue_pair_count(&[]), None);
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

    /// An entry of an answer to [`bound_of`].
    fn bound_entry(
        id: u32,
        mode: u32,
        by: &[Vec<u8>],
        queue_pairs: &[u32],
        values: &[(&str, u64)],
    ) -> Vec<u8> {
        let number = |kind, number: u32| attribute(kind, &number.to_ne_bytes());
        let bound: Vec<_> = queue_pairs.iter().map(|one| number(RES_LQPN, *one)).collect();
        let counted: Vec<u8> = values
            .iter()
            .flat_map(|(name, value)| entry(name, *value))
            .collect();
        let mut bytes = [
            number(PORT_INDEX, 1),
            number(STAT_COUNTER_ID, id),
            number(STAT_MODE, mode),
        ]
        .concat();
        bytes.extend(by.concat());
        bytes.extend(nest(RES_QP, RES_QP_ENTRY, &bound));
        bytes.extend(attribute(HWCOUNTERS, &counted));
        bytes
    }

    /// Number of the counter, thread, queue pairs, and what it counts.
    pub(in crate::rdma) type Told<'a> = (u32, u32, u32, &'a [(&'a str, u64)]);

    /// An answer to [`bound_of`] with groups of type RC of a thread each.
    pub(in crate::rdma) fn bound_answer(groups: &[Told<'_>]) -> Vec<u8> {
        let entries: Vec<_> = groups
            .iter()
            .map(|(id, thread, queue_pairs, counted)| {
                let numbers: Vec<u32> = (0..*queue_pairs).collect();
                let by = [
                    attribute(RES_TYPE, &[2]),
                    attribute(RES_PID, &thread.to_ne_bytes()),
                ];
                bound_entry(*id, 1, &by, &numbers, counted)
            })
            .collect();
        nest(STAT_COUNTER, STAT_COUNTER_ENTRY, &entries)
    }

    #[test]
    fn bound_counters_are_told_with_what_binds_them() {
        let of_process = [
            attribute(RES_TYPE, &[2]),
            attribute(RES_PID, &4711u32.to_ne_bytes()),
        ];
        let entries = [
            bound_entry(3, 1, &of_process, &[17, 18], &[("a", 5), ("b", u64::MAX - 1)]),
            bound_entry(4, 1, &of_process[..1], &[19], &[("a", 6)]),
            bound_entry(5, 2, &[], &[20], &[]),
            // Without a mode or a number it is none; of the other port it is told as such.
            attribute(STAT_COUNTER_ID, &6u32.to_ne_bytes()),
            attribute(STAT_MODE, &1u32.to_ne_bytes()),
        ];
        let answer = nest(STAT_COUNTER, STAT_COUNTER_ENTRY, &entries);
        let found: Vec<_> = bound(&answer).collect();
        let told: Vec<_> = found
            .iter()
            .map(|one| {
                let kind = one.bond.kind.map(QueuePairKind::as_str);
                (
                    one.id,
                    one.port,
                    one.bond.cntn,
                    one.bond.process,
                    kind,
                    one.queue_pairs,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (3, 1, None, Some(4711), Some("RC"), 2),
                (4, 1, None, None, Some("RC"), 1),
                (5, 1, Some(5), None, None, 1),
            ]
        );
        let counted: Vec<_> = found[0].counters().collect();
        assert_eq!(counted, [("a", 5), ("b", u64::MAX - 1)]);
        assert_eq!(found[2].counters().count(), 0);
        assert_eq!(bound(&[]).count(), 0);
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
                let _ = queue_pair_count(payload);
                if let Some(counters) = counters(payload) {
                    prop_assert!(counters.map(|(name, _)| name.len()).sum::<usize>() <= payload.len());
                }
            }
        }

        #[test]
        fn any_bytes_in_place_of_queue_pairs_do_no_harm(bytes: Vec<u8>) {
            let nested = nest(RES_QP, RES_QP_ENTRY, std::slice::from_ref(&bytes));
            let connected = nest(RES_CM_ID, RES_CM_ID_ENTRY, &[attribute(RES_DST_ADDR, &bytes)]);
            for payload in [&bytes[..], &attribute(RES_QP, &bytes), &nested, &connected] {
                prop_assert!(queue_pairs(payload).len() <= payload.len());
                prop_assert_eq!(connections(payload).count(), 0);
            }
            let _ = socket_address(&bytes);
        }

        #[test]
        fn any_bytes_in_place_of_bound_counters_do_no_harm(bytes: Vec<u8>, at in 0usize..200, byte: u8) {
            let mut broken = bound_answer(&[(3, 4711, 2, &[("a", 5), ("b", 6)]), (4, 4712, 1, &[("a", 7)])]);
            let at = at % broken.len();
            broken[at] = byte;
            let nested = nest(STAT_COUNTER, STAT_COUNTER_ENTRY, std::slice::from_ref(&bytes));
            for payload in [&bytes[..], &attribute(STAT_COUNTER, &bytes), &nested, &broken] {
                for one in bound(payload) {
                    prop_assert!(one.queue_pairs <= payload.len() as u64);
                    prop_assert!(one.counters().count() <= payload.len());
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
