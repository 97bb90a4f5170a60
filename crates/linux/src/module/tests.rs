//! Modules as the standards lay them out.

use super::*;
use crate::netns::{self, ip};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A module whose pages are in memory, which notes what was read of it.
#[derive(Clone, Default)]
struct Fake {
    lower: BTreeMap<u8, u8>,
    upper: BTreeMap<(u8, u8), u8>,
    fails: Option<i32>,
    read: Vec<(u8, u8)>,
}

impl Fake {
    /// Bytes from `offset`, on a page if they are beyond 128.
    fn with(mut self, page: u8, offset: u8, bytes: &[u8]) -> Self {
        for (at, byte) in (offset..=255).zip(bytes) {
            if at < 128 {
                self.lower.insert(at, *byte);
            } else {
                self.upper.insert((page, at), *byte);
            }
        }
        self
    }
}

impl Memory for Fake {
    fn read(&mut self, span: Span, into: &mut [u8]) -> Result<(), Errno> {
        if let Some(errno) = self.fails {
            return Err(Errno::from_raw_os_error(errno));
        }
        // What the kernel refuses (eeprom_parse_request in net/ethtool/eeprom.c).
        assert!(span.page == 0 || span.offset >= 128, "{span:?}");
        let end = u16::from(span.offset) + u16::from(span.length);
        assert!(
            end <= if span.offset < 128 { 128 } else { 256 },
            "{span:?} crosses a page"
        );
        assert_eq!(into.len(), span.len());
        for (at, byte) in (span.offset..=255).zip(into) {
            self.read.push((span.page, at));
            let stored = if at < 128 {
                self.lower.get(&at)
            } else {
                self.upper.get(&(span.page, at))
            };
            *byte = stored.copied().unwrap_or(0);
        }
        Ok(())
    }
}

/// A 100GBASE-SR4 module, revision 2.8, with the values of each table's first lane different from the others.
fn qsfp28() -> Fake {
    Fake::default()
        .with(0, 0, &[0x11, 0x08, 0x00])
        .with(0, 3, &[0xff; 19]) // flags that clear when read
        .with(0, 22, &[0x2a, 0x80, 0, 0, 0x80, 0xe8]) // 42.5 °C; 33,000 × 100 µV
        .with(0, 34, &[0x27, 0x10, 0x13, 0x88, 0x13, 0x88, 0x13, 0x88]) // 10,000 × 0.1 µW = 1 mW; 0.5 mW
        .with(0, 42, &[0x0d, 0xac, 0x0d, 0xac, 0x0d, 0xac, 0x0d, 0xac]) // 3,500 × 2 µA = 7 mA
        .with(0, 50, &[0x1e, 0x61, 0, 0, 0x1e, 0x61, 0x1e, 0x61]) // 7,777 × 0.1 µW; lane 1 is dark
        .with(0, 147, &[0x00]) // 850 nm VCSEL
        .with(0, 220, &[0x3c]) // temperature, voltage, average power, power sent
}

/// A 400GBASE-DR4 module: four media lanes, lasers' bias times two.
fn qsfp_dd() -> Fake {
    let lanes = |value: u16| [value.to_be_bytes(); 8].concat();
    Fake::default()
        .with(0, 0, &[0x18, 0x50, 0x04])
        .with(0, 8, &[0xff; 6]) // flags that clear when read
        .with(0, 14, &[0x37, 0x40, 0x7f, 0xb4]) // 55.25 °C; 32,692 × 100 µV
        .with(0, 210, &[0xf0, 0, 0x06]) // lanes 5 to 8 are not there; 1310 nm EML
        .with(1, 159, &[0x03, 0x0f])
        .with(0x11, 134, &[0xff; 20]) // flags that clear when read
        .with(0x11, 154, &lanes(12_000)) // 1.2 mW
        .with(0x11, 170, &lanes(15_000)) // 15,000 × 2 µA × 2 = 60 mA
        .with(0x11, 186, &lanes(9_000)) // 0.9 mW
}

fn open(memory: Fake) -> Result<Module<Fake>, &'static str> {
    Module::open(memory, &netns::any_port("rail0"), "rail0").map_err(|why| why.reason)
}

fn values(module: &mut Module<Fake>) -> Vec<(String, u64)> {
    let names: Vec<_> = module
        .schema()
        .columns
        .iter()
        .map(|column| column.name.to_string())
        .collect();
    let mut row = vec![7; names.len()];
    assert_eq!(module.read(&mut row), Read::Row);
    names.into_iter().zip(row).collect()
}

fn of<'a>(values: &'a [(String, u64)], beginning: &str) -> Vec<(&'a str, u64)> {
    let matching = values.iter().filter(|(name, _)| name.starts_with(beginning));
    matching.map(|(name, value)| (name.as_str(), *value)).collect()
}

#[test]
fn a_qsfp28_module() {
    let mut module = open(qsfp28()).unwrap();
    let values = values(&mut module);
    assert_eq!(values.len(), 2 + 3 * 4);
    assert_eq!(of(&values, "temperature"), [("temperature", 42_500)]);
    assert_eq!(of(&values, "voltage"), [("voltage", 3_300_000)]);
    assert_eq!(of(&values, "rx_power_lane0"), [("rx_power_lane0", 1_000_000)]);
    assert_eq!(of(&values, "rx_power_lane3"), [("rx_power_lane3", 500_000)]);
    assert_eq!(of(&values, "tx_bias_lane2"), [("tx_bias_lane2", 7_000)]);
    let tx = of(&values, "tx_power");
    assert_eq!((tx[0].1, tx[1].1, tx[2].1), (777_700, 0, 777_700));
}

#[test]
fn a_qsfp_dd_module_has_the_lanes_that_it_says() {
    let mut module = open(qsfp_dd()).unwrap();
    let values = values(&mut module);
    assert_eq!(values.len(), 2 + 3 * 4);
    assert_eq!(of(&values, "temperature"), [("temperature", 55_250)]);
    assert_eq!(of(&values, "voltage"), [("voltage", 3_269_200)]);
    let expected = |name: &str, value| (0..4).map(|lane| (format!("{name}{lane}"), value)).collect();
    for (name, value) in [
        ("tx_bias_lane", 60_000),
        ("tx_power_lane", 1_200_000),
        ("rx_power_lane", 900_000),
    ] {
        let expected: Vec<_> = expected(name, value);
        let found: Vec<_> = of(&values, name)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn flags_that_clear_when_they_are_read_are_left_alone() {
    let cleared = |page: u8, at: u8, cmis: bool| {
        if cmis {
            (at < 128 && (8..=13).contains(&at)) || (page == 0x11 && (134..=153).contains(&at))
        } else {
            (3..=21).contains(&at)
        }
    };
    for (memory, cmis) in [(qsfp28(), false), (qsfp_dd(), true)] {
        let mut module = open(memory).unwrap();
        values(&mut module);
        let touched: Vec<_> = module
            .memory
            .read
            .iter()
            .filter(|(page, at)| cleared(*page, *at, cmis))
            .collect();
        assert!(touched.is_empty(), "{touched:?}");
    }
}

#[test]
fn a_module_that_cannot_tell_has_no_column_instead_of_a_zero() {
    let without_power_sent = qsfp28().with(0, 220, &[0x38]);
    let values = values(&mut open(without_power_sent).unwrap());
    assert!(of(&values, "tx_power").is_empty());
    assert_eq!(of(&values, "rx_power").len(), 4);

    // A cable of an older revision, which does not say what it measures.
    let passive_copper = qsfp28()
        .with(0, 1, &[0x07])
        .with(0, 22, &[0; 6])
        .with(0, 147, &[0xa0]);
    assert_eq!(open(passive_copper).err(), Some("no_monitors"));
    let active_copper = qsfp28().with(0, 147, &[0xd0]);
    assert_eq!(
        self::values(&mut open(active_copper).unwrap()).len(),
        2,
        "no light in it"
    );
    let flat = qsfp_dd().with(0, 2, &[0x80]);
    assert_eq!(open(flat).err(), Some("no_monitors"));
    let copper = qsfp_dd().with(0, 212, &[0x0b]);
    assert_eq!(self::values(&mut open(copper).unwrap()).len(), 2);
    assert_eq!(
        open(qsfp28().with(0, 0, &[0x03])).err(),
        Some("unknown_module"),
        "an SFP"
    );
}

#[test]
fn another_module_in_the_cage_is_another_schema() {
    let mut module = open(qsfp28()).unwrap();
    module.memory = qsfp_dd().with(0, 210, &[0x00]);
    let mut row = vec![0; module.schema().columns.len()];
    assert_eq!(module.read(&mut row), Read::SchemaChanged);
    assert_eq!(values(&mut module).len(), 2 + 3 * 8);
    module.memory.fails = Some(5);
    assert!(matches!(module.read(&mut row), Read::Missing(why) if why.reason == "EIO"));
    module.memory.fails = Some(1);
    assert!(matches!(module.read(&mut row), Read::Missing(why) if why.detail.contains("CAP_NET_ADMIN")));
}

#[test]
fn a_warm_read_allocates_nothing() {
    let mut module = open(qsfp_dd()).unwrap();
    let mut row = vec![0; module.schema().columns.len()];
    module.memory.read.reserve(10_000);
    let allocated = crate::allocations::during(|| {
        for _ in 0..10 {
            assert_eq!(module.read(&mut row), Read::Row);
        }
    });
    assert_eq!(allocated, 0);
}

#[test]
fn every_column_is_known_to_the_catalogue() {
    let module = open(qsfp_dd().with(0, 210, &[0x00])).unwrap();
    for column in &module.schema().columns {
        assert!(column.meaning.is_some(), "{}", column.name);
    }
}

#[test]
fn a_netdev_without_a_module_says_so() {
    netns::within(|| {
        ip("link add a0 type veth peer name a1");
        let ctx = netns::context("/sys".as_ref(), true);
        match super::open(&ctx, &netns::port("a0")) {
            Opened::NotApplicable(why) => assert_eq!(why.reason, "EOPNOTSUPP", "{why}"),
            Opened::Failed(why) => panic!("{why}"),
            Opened::Active(_) => panic!("a veth has no module"),
        }
    });
}

proptest! {
    #[test]
    fn a_temperature_is_right_to_a_thousandth(raw: i16) {
        let value = Quantity::Temperature.value(raw.to_be_bytes(), 1);
        if raw < 0 {
            prop_assert_eq!(value, ABSENT);
        } else {
            let exact = f64::from(raw) * 1000.0 / 256.0;
            prop_assert!((value as f64 - exact).abs() <= 0.5, "{value} is not {exact}");
        }
    }

    #[test]
    fn powers_bias_and_voltage_are_in_their_units(raw: u16, lane in 0u8..8, scale in 0u32..3) {
        let bytes = raw.to_be_bytes();
        let raw = u64::from(raw);
        prop_assert_eq!(Quantity::Voltage.value(bytes, 1), raw * 100);
        prop_assert_eq!(Quantity::TxPower(lane).value(bytes, 1), raw * 100);
        prop_assert_eq!(Quantity::RxPower(lane).value(bytes, 1), raw * 100);
        prop_assert_eq!(Quantity::TxBias(lane).value(bytes, 1 << scale), (raw * 2) << scale);
    }

    #[test]
    fn any_memory_gives_a_plan_whose_values_can_be_read(
        identifier: u8,
        lower in proptest::collection::vec(any::<u8>(), 127),
        page0 in proptest::collection::vec(any::<u8>(), 128),
        page1 in proptest::collection::vec(any::<u8>(), 128),
        page11 in proptest::collection::vec(any::<u8>(), 128),
    ) {
        let memory = Fake::default()
            .with(0, 0, &[identifier])
            .with(0, 1, &lower)
            .with(0, 128, &page0)
            .with(1, 128, &page1)
            .with(0x11, 128, &page11);
        if let Ok(mut module) = open(memory) {
            let values = values(&mut module);
            prop_assert!(!values.is_empty() && values.len() <= 2 + 3 * 8);
        }
    }
}
