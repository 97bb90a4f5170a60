//! The answer to `DCB_CMD_IEEE_GET`.

use super::{DCBX, HEADER};
use crate::netlink::{Attribute, Attributes};

/// `DCB_ATTR_IEEE`, and within it `DCB_ATTR_IEEE_*`.
pub(crate) const IEEE: u16 = 13;
const IEEE_ETS: u16 = 1;
const IEEE_PFC: u16 = 2;
const IEEE_APP_TABLE: u16 = 3;
/// `DCB_ATTR_IEEE_APP`.
const IEEE_APP: u16 = 1;
/// `IEEE_8021QAZ_APP_SEL_DGRAM`, `IEEE_8021QAZ_APP_SEL_DSCP`.
const BY_UDP_PORT: u8 = 3;
const BY_DSCP: u8 = 5;
/// UDP port of `RoCEv2` (IANA, InfiniBand annex A17).
const ROCE_V2: u16 = 4791;

type Eight = [u8; 8];

/// What `struct ieee_ets` (59 bytes) has of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ets {
    bandwidth: Eight,
    algorithm: Eight,
    class_of_priority: Eight,
}

/// What `struct ieee_pfc` (136 bytes) has of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pfc {
    capable: u8,
    enabled: u8,
    requests: [u64; 8],
    indications: [u64; 8],
}

/// The DCB configuration of an interface, as far as the driver tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dcb {
    ets: Option<Ets>,
    pfc: Option<Pfc>,
    dcbx: Option<u8>,
    roce: Option<u8>,
    dscp: [Option<u8>; 64],
}

/// Which parts of a [`Dcb`] are there, and so which columns a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // the parts are there or not independently of each other
pub(super) struct Shape {
    ets: bool,
    pfc: bool,
    dcbx: bool,
    roce: bool,
    /// Bit d: there is an entry for DSCP d.
    dscp: u64,
}

impl Ets {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 59] = bytes.try_into().ok()?;
        let eight = |at: usize| std::array::from_fn(|i| bytes[at + i]);
        Some(Self {
            bandwidth: eight(3),
            algorithm: eight(19),
            class_of_priority: eight(27),
        })
    }
}

impl Pfc {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 136] = bytes.try_into().ok()?;
        let count = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        Some(Self {
            capable: bytes[0],
            enabled: bytes[1],
            requests: std::array::from_fn(|priority| count(8 + 8 * priority)),
            indications: std::array::from_fn(|priority| count(72 + 8 * priority)),
        })
    }
}

impl Dcb {
    /// Reads an answer. A structure of another length than the kernel's is taken for one that is not there.
    pub(super) fn parse(payload: &[u8]) -> Self {
        let answer = Attributes::behind(payload, HEADER);
        let ieee = Attributes::new(answer.find_kind(IEEE).map_or(&[], |nest| nest.value));
        let mut dcb = Self {
            ets: ieee.find_kind(IEEE_ETS).and_then(|ets| Ets::parse(ets.value)),
            pfc: ieee.find_kind(IEEE_PFC).and_then(|pfc| Pfc::parse(pfc.value)),
            dcbx: answer.find_kind(DCBX).and_then(|dcbx| dcbx.u8()),
            roce: None,
            dscp: [None; 64],
        };
        let table = ieee
            .find_kind(IEEE_APP_TABLE)
            .map_or(&[][..], |table| table.value);
        Attributes::new(table)
            .filter(|entry| entry.kind == IEEE_APP)
            .for_each(|entry| dcb.add_app(entry));
        dcb
    }

    /// `struct dcb_app`: selector, priority, protocol. Of several entries for one thing the highest priority counts, as
    /// it does in the kernel (net/dcb/dcbnl.c, `dcb_ieee_getapp_dscp_prio_mask_map`; drivers take the highest bit).
    fn add_app(&mut self, entry: Attribute<'_>) {
        let Ok([selector, priority @ 0..8, a, b]) = <[u8; 4]>::try_from(entry.value) else {
            return;
        };
        let protocol = u16::from_ne_bytes([a, b]);
        let place = match selector {
            BY_DSCP => self.dscp.get_mut(usize::from(protocol)),
            BY_UDP_PORT if protocol == ROCE_V2 => Some(&mut self.roce),
            _ => None,
        };
        if let Some(place) = place {
            *place = (*place).max(Some(priority));
        }
    }

    pub(super) fn shape(&self) -> Shape {
        let dscp = self
            .dscp
            .iter()
            .rev()
            .fold(0, |bits, entry| bits << 1 | u64::from(entry.is_some()));
        Shape {
            ets: self.ets.is_some(),
            pfc: self.pfc.is_some(),
            dcbx: self.dcbx.is_some(),
            roce: self.roce.is_some(),
            dscp,
        }
    }

    /// Writes the values in the order of [`Shape::columns`].
    pub(super) fn fill(&self, row: &mut [u64]) {
        row.iter_mut()
            .zip(self.values())
            .for_each(|(cell, value)| *cell = value);
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        let pfc = self.pfc.iter().flat_map(|pfc| {
            let masks = [pfc.enabled.into(), pfc.capable.into()];
            masks.into_iter().chain(pfc.requests).chain(pfc.indications)
        });
        let ets = self.ets.iter().flat_map(|ets| {
            let bytes = ets
                .class_of_priority
                .into_iter()
                .chain(ets.bandwidth)
                .chain(ets.algorithm);
            bytes.map(u64::from)
        });
        let single = [self.dcbx, self.roce].into_iter().flatten().map(u64::from);
        pfc.chain(ets)
            .chain(single)
            .chain(self.dscp.iter().flatten().copied().map(u64::from))
    }
}

impl Shape {
    /// The names of the columns.
    pub(super) fn columns(self) -> impl Iterator<Item = String> {
        let eight = |name: fn(u8) -> String| (0..8).map(name);
        let pfc = self.pfc.then(|| {
            let masks = ["pfc_enabled", "pfc_capable"].map(str::to_owned);
            let requests = eight(|priority| format!("pfc_requests_prio{priority}"));
            masks
                .into_iter()
                .chain(requests)
                .chain(eight(|priority| format!("pfc_indications_prio{priority}")))
        });
        let ets = self.ets.then(|| {
            let classes = eight(|priority| format!("prio{priority}_tc"));
            let shares = eight(|class| format!("tc{class}_bandwidth"));
            classes
                .chain(shares)
                .chain(eight(|class| format!("tc{class}_algorithm")))
        });
        let dcbx = self.dcbx.then(|| "dcbx".to_owned());
        let roce = self.roce.then(|| "roce_udp_prio".to_owned());
        let entries = (0..64).filter(move |dscp| self.dscp >> dscp & 1 == 1);
        let dscp = entries.map(|dscp| format!("dscp{dscp}_prio"));
        pfc.into_iter()
            .flatten()
            .chain(ets.into_iter().flatten())
            .chain(dcbx)
            .chain(roce)
            .chain(dscp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Request;
    use proptest::prelude::*;

    fn ets() -> Vec<u8> {
        (0..59).collect()
    }

    fn pfc() -> Vec<u8> {
        let mut bytes = vec![8, 0b0001_1000, 0, 0, 7, 0, 0, 0];
        bytes.extend((0..16u64).flat_map(|i| (1000 + i).to_ne_bytes()));
        bytes
    }

    fn app(selector: u8, priority: u8, protocol: u16) -> Vec<u8> {
        let mut entry = vec![selector, priority];
        entry.extend(protocol.to_ne_bytes());
        let attribute = Request::new(0, &[]).with(IEEE_APP, &entry);
        attribute.payload().to_vec()
    }

    fn answer(ieee: &[(u16, &[u8])]) -> Request {
        Request::new(78, &[0, 21, 0, 0])
            .with(1, b"rail0\0")
            .with_nest(IEEE, ieee)
            .with(DCBX, &[5])
    }

    fn cells(dcb: &Dcb) -> Vec<(String, u64)> {
        let names: Vec<_> = dcb.shape().columns().collect();
        let mut row = vec![u64::MAX; names.len()];
        dcb.fill(&mut row);
        assert_eq!(dcb.values().count(), names.len());
        names.into_iter().zip(row).collect()
    }

    #[test]
    fn a_full_answer_gives_every_column_its_value() {
        let table = [
            app(5, 3, 26),
            app(5, 6, 48),
            app(3, 3, 4791),
            app(3, 1, 80),
            app(1, 2, 0x8915),
        ]
        .concat();
        let (ets, pfc) = (ets(), pfc());
        let request = answer(&[(IEEE_ETS, &ets), (IEEE_PFC, &pfc), (IEEE_APP_TABLE, &table)]);
        let dcb = Dcb::parse(request.payload());
        let cells = cells(&dcb);
        let value = |name: &str| {
            cells
                .iter()
                .find(|(n, _)| n == name)
                .unwrap_or_else(|| panic!("{name}"))
                .1
        };
        assert_eq!((value("pfc_enabled"), value("pfc_capable")), (0b0001_1000, 8));
        assert_eq!(
            (value("pfc_requests_prio3"), value("pfc_indications_prio0")),
            (1003, 1008)
        );
        assert_eq!(
            (value("tc0_bandwidth"), value("tc7_algorithm"), value("prio1_tc")),
            (3, 26, 28)
        );
        assert_eq!((value("dcbx"), value("roce_udp_prio")), (5, 3));
        assert_eq!((value("dscp26_prio"), value("dscp48_prio")), (3, 6));
        assert_eq!(cells.len(), 18 + 24 + 2 + 2);
    }

    #[test]
    fn every_column_is_in_the_catalogue() {
        let all = Shape {
            ets: true,
            pfc: true,
            dcbx: true,
            roce: true,
            dscp: u64::MAX,
        };
        for name in all.columns() {
            assert!(
                catalog::meaning("any", model::SourceKind::Dcb, &name).is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_structure_of_another_length_is_not_there() {
        let (ets, pfc) = (vec![0; 60], vec![0; 135]);
        let dcb = Dcb::parse(answer(&[(IEEE_ETS, &ets), (IEEE_PFC, &pfc)]).payload());
        assert_eq!(cells(&dcb), [("dcbx".to_owned(), 5)]);
    }

    #[test]
    fn entries_that_make_no_sense_are_left_out_and_the_highest_priority_counts() {
        let table = [app(5, 9, 26), app(5, 3, 64), app(5, 5, 10), app(5, 2, 10)].concat();
        let dcb = Dcb::parse(answer(&[(IEEE_APP_TABLE, &table)]).payload());
        assert_eq!(
            cells(&dcb),
            [("dcbx".to_owned(), 5), ("dscp10_prio".to_owned(), 5)]
        );
    }

    proptest! {
        #[test]
        fn any_answer_gives_as_many_values_as_columns(bytes: Vec<u8>) {
            let dcb = Dcb::parse(&bytes);
            prop_assert_eq!(dcb.values().count(), dcb.shape().columns().count());
        }

        #[test]
        fn any_ieee_nest_gives_as_many_values_as_columns(ets: Vec<u8>, pfc in proptest::collection::vec(any::<u8>(), 130..140), table: Vec<u8>) {
            let dcb = Dcb::parse(answer(&[(IEEE_ETS, &ets), (IEEE_PFC, &pfc), (IEEE_APP_TABLE, &table)]).payload());
            prop_assert_eq!(dcb.values().count(), dcb.shape().columns().count());
        }
    }
}
