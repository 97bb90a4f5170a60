//! Where SFF-8636 and CMIS keep what a module measures, and in what units.

use model::ABSENT;

/// A stretch of a module's memory. Bytes from 128 are of `page`; those below are the same on every page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) page: u8,
    pub(super) offset: u8,
    pub(super) length: u8,
}

impl Span {
    pub(super) const fn new(page: u8, offset: u8, length: u8) -> Self {
        Self { page, offset, length }
    }

    pub(super) fn len(self) -> usize {
        self.length.into()
    }

    /// The two bytes at `place` of the memory, the higher first; `None` if they are not in this stretch.
    pub(super) fn word(self, content: &[u8], place: u8) -> Option<[u8; 2]> {
        let at = usize::from(place.checked_sub(self.offset)?);
        content.get(at..)?.first_chunk().copied()
    }
}

/// The longest stretch that is read.
pub(super) const LONGEST: usize = 48;

/// Where a standard keeps its values, each of two bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Map {
    /// Of the module as a whole.
    pub(super) module: Span,
    temperature: u8,
    voltage: u8,
    /// Of its lanes, one behind the other.
    pub(super) lanes: Span,
    tx_bias: u8,
    tx_power: u8,
    rx_power: u8,
}

/// SFF-8636 revision 2.11: table 6-8 (free side monitoring values) and table 6-9 (channel monitoring values), page 00h. The
/// flags of bytes 3 to 21 clear when they are read.
pub(super) static SFF_8636: Map = Map {
    module: Span::new(0, 22, 6),
    temperature: 22,
    voltage: 26,
    lanes: Span::new(0, 34, 24),
    rx_power: 34,
    tx_bias: 42,
    tx_power: 50,
};

/// CMIS revision 5.2: table 8-10 (module-level monitor values), lower memory, and table 8-82 (media lane-specific
/// monitors), page 11h. The flags of bytes 8 to 13 and of bytes 134 to 153 of page 11h clear when they are read.
pub(super) static CMIS: Map = Map {
    module: Span::new(0, 14, 4),
    temperature: 14,
    voltage: 16,
    lanes: Span::new(0x11, 154, 48),
    tx_power: 154,
    tx_bias: 170,
    rx_power: 186,
};

impl Map {
    /// The first byte of a quantity.
    pub(super) fn place(&self, quantity: Quantity) -> u8 {
        match quantity {
            Quantity::Temperature => self.temperature,
            Quantity::Voltage => self.voltage,
            Quantity::TxBias(lane) => self.tx_bias + 2 * lane,
            Quantity::TxPower(lane) => self.tx_power + 2 * lane,
            Quantity::RxPower(lane) => self.rx_power + 2 * lane,
        }
    }
}

/// Something that a module measures; lanes count from 0, where the standards count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Temperature,
    Voltage,
    TxBias(u8),
    TxPower(u8),
    RxPower(u8),
}

impl Quantity {
    /// The column's name.
    pub(super) fn name(self) -> String {
        match self {
            Self::Temperature => "temperature".to_owned(),
            Self::Voltage => "voltage".to_owned(),
            Self::TxBias(lane) => format!("tx_bias_lane{lane}"),
            Self::TxPower(lane) => format!("tx_power_lane{lane}"),
            Self::RxPower(lane) => format!("rx_power_lane{lane}"),
        }
    }

    /// The value in the column's unit: thousandths of a degree Celsius, microvolts, microamperes, nanowatts. Both standards
    /// count in 1/256 degree, 100 µV, 2 µA (CMIS times `bias_scale`) and 0.1 µW.
    pub(super) fn value(self, raw: [u8; 2], bias_scale: u8) -> u64 {
        let number = u64::from(u16::from_be_bytes(raw));
        match self {
            Self::Temperature => millicelsius(i16::from_be_bytes(raw)),
            Self::TxBias(_) => number * 2 * u64::from(bias_scale),
            // 100 µV and 100 nW.
            Self::Voltage | Self::TxPower(_) | Self::RxPower(_) => number * 100,
        }
    }
}

/// Of 256ths of a degree, rounded; absent below freezing, for which a row has no place.
fn millicelsius(raw: i16) -> u64 {
    u64::try_from(raw).map_or(ABSENT, |raw| (raw * 1000 + 128) / 256)
}
