//! Units of counters, and the way to base units.

/// The unit that a driver counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
// `as_str` says what the names say.
#[allow(missing_docs)]
pub enum Unit {
    Packets,
    Frames,
    Bytes,
    /// Four bytes each, as the InfiniBand data counters count.
    Words,
    Bits,
    Microseconds,
    Milliseconds,
    Seconds,
    Percent,
    MegabitsPerSecond,
    /// Thousandths of a degree Celsius, as hwmon counts.
    Millicelsius,
    Microvolts,
    Microamperes,
    Nanowatts,
    Events,
    Errors,
    Codewords,
    Requests,
    Qps,
    Objects,
    Lanes,
    Flag,
    Bitmap,
    Priority,
    Class,
    Classes,
    Enum,
    /// 4-byte words that waited for credit; the tick is the vendor's.
    Ticks,
    /// Undocumented by the vendor: shown as it is, never derived from.
    Raw,
}

/// The factor from a driver's unit to the base unit: `value * multiply / 10^decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scale {
    /// Multiplier, applied first.
    pub multiply: u32,
    /// Digits behind the decimal point.
    pub decimals: u8,
}

impl Scale {
    /// The base unit itself.
    pub const ONE: Self = Self {
        multiply: 1,
        decimals: 0,
    };

    /// The value in base units.
    #[must_use]
    pub fn apply(self, value: f64) -> f64 {
        value * f64::from(self.multiply) / 10f64.powi(i32::from(self.decimals))
    }
}

impl Unit {
    /// The base unit (bytes, seconds, ratio, …) and how to get there.
    #[must_use]
    pub fn base(self) -> (&'static str, Scale) {
        let scaled = |multiply, decimals| Scale { multiply, decimals };
        match self {
            Self::Words => ("bytes", scaled(4, 0)),
            Self::Microseconds => ("seconds", scaled(1, 6)),
            Self::Milliseconds => ("seconds", scaled(1, 3)),
            Self::Percent => ("ratio", scaled(1, 2)),
            Self::MegabitsPerSecond => ("bytes_per_second", scaled(125_000, 0)),
            Self::Millicelsius => ("celsius", scaled(1, 3)),
            Self::Microvolts => ("volts", scaled(1, 6)),
            Self::Microamperes => ("amperes", scaled(1, 6)),
            Self::Nanowatts => ("watts", scaled(1, 9)),
            other => (other.as_str(), Scale::ONE),
        }
    }

    /// The unit in words, as documents show it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Frames => "frames",
            Self::Bytes => "bytes",
            Self::Words => "4-byte words",
            Self::Bits => "bits",
            Self::Microseconds => "microseconds",
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
            Self::Percent => "percent",
            Self::MegabitsPerSecond => "megabits per second",
            Self::Millicelsius => "thousandths of a degree Celsius",
            Self::Microvolts => "microvolts",
            Self::Microamperes => "microamperes",
            Self::Nanowatts => "nanowatts",
            Self::Events => "events",
            Self::Errors => "errors",
            Self::Codewords => "code words",
            Self::Requests => "requests",
            Self::Qps => "queue pairs",
            Self::Objects => "objects",
            Self::Lanes => "lanes",
            Self::Flag => "0 or 1",
            Self::Bitmap => "bitmap",
            Self::Priority => "priority",
            Self::Class => "traffic class",
            Self::Classes => "traffic classes",
            Self::Enum => "enumeration",
            Self::Ticks => "ticks",
            Self::Raw => "undocumented",
        }
    }
}
