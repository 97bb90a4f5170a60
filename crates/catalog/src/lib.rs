//! What the counters of each RoCE NIC driver mean.
//!
//! The knowledge is data: one file per driver under `data/`, and `data/metrics.toml` for the metric families that
//! the signals go out under. `build.rs` turns them into static tables. A new NIC is a new data file.

use std::fmt;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// One way of asking the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceKind {
    /// The driver's own statistics, `ethtool -S`. Under rtnl.
    Ethtool,
    /// RDMA counters of a port: `ports/N/hw_counters`, RDMA netlink `STAT_GET`.
    HwCounters,
    /// RDMA counters of a whole device: `/sys/class/infiniband/DEVICE/hw_counters`.
    DeviceCounters,
    /// InfiniBand performance-management counters: `ports/N/counters`. One firmware command a file on mlx5.
    PortCounters,
    /// Carrier and its up and down counts. Never under rtnl.
    Link,
    /// Speed, lanes, pause, FEC by ethtool netlink. Under rtnl.
    Settings,
    /// PFC, ETS and the APP table by DCB netlink. Under rtnl.
    Dcb,
}

impl SourceKind {
    /// Every source, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Ethtool,
        Self::HwCounters,
        Self::DeviceCounters,
        Self::PortCounters,
        Self::Link,
        Self::Settings,
        Self::Dcb,
    ];

    /// The name that labels, the API and the configuration use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ethtool => "ethtool",
            Self::HwCounters => "hw_counters",
            Self::DeviceCounters => "device_counters",
            Self::PortCounters => "port_counters",
            Self::Link => "link",
            Self::Settings => "settings",
            Self::Dcb => "dcb",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Signal {
    /// Every signal of the catalogue, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        SIGNALS.iter().map(|(_, signal)| *signal)
    }

    /// The dotted name, as in `pfc.rx_pause_duration`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        SIGNALS[self as usize].0
    }

    /// The signal of this dotted name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        SIGNALS
            .binary_search_by_key(&name, |(name, _)| name)
            .ok()
            .map(|i| SIGNALS[i].1)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which of several like things a counter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Index {
    /// 802.1p priority, 0..=7.
    Priority(u8),
    /// ETS traffic class, 0..=7.
    TrafficClass(u8),
    /// The driver's `CoS` queue, 0..=7.
    Queue(u8),
    /// Lane of the link.
    Lane(u8),
    /// DSCP value, 0..=63.
    Dscp(u8),
}

/// What one value of a counter covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Per {
    Port,
    Priority,
    TrafficClass,
    Queue,
    Lane,
    Dscp,
    /// A PCI function: one PF, VF or SF of the port.
    Function,
    Device,
    Netdev,
}

/// As seen from this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Received; of pause: the peer stops us.
    Rx,
    /// Sent; of pause: we stop the peer.
    Tx,
}

impl Direction {
    /// `rx` or `tx`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
        }
    }
}

/// How a value behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Only grows, until it wraps or is reset.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A setting, changed by people and agents.
    Config,
}

/// The unit that a driver counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    Events,
    Errors,
    Codewords,
    Requests,
    Qps,
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
            Self::Events => "events",
            Self::Errors => "errors",
            Self::Codewords => "code words",
            Self::Requests => "requests",
            Self::Qps => "queue pairs",
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

/// The bits behind a counter, which decide what a decrease means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Width {
    /// Bits of the value in hardware or firmware, 1..=64.
    pub bits: u8,
    /// The driver already extends it to 64 bits: it never wraps for us.
    pub extended: bool,
    /// It stays at all ones instead of wrapping (InfiniBand error counters).
    pub saturates: bool,
    /// The driver answers all ones where the firmware has no such counter.
    pub all_ones_is_missing: bool,
}

impl Width {
    /// A plain 64-bit counter.
    pub const FULL: Self = Self {
        bits: 64,
        extended: false,
        saturates: false,
        all_ones_is_missing: false,
    };

    /// The largest value of the counter.
    #[must_use]
    pub fn max(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// What the catalogue knows of one counter, or of one pattern of counters.
#[derive(Debug)]
pub struct Entry {
    /// Literal name, or a pattern with `{prio}`, `{tc}`, `{q}`, `{lane}` or `{dscp}`.
    pub name: &'static str,
    /// Where it is read.
    pub source: SourceKind,
    /// What it means, whatever the driver.
    pub signal: Signal,
    /// What one value covers.
    pub per: Per,
    /// As the driver names it, seen from this node.
    pub direction: Option<Direction>,
    /// The driver's unit.
    pub unit: Unit,
    /// How it behaves.
    pub kind: Kind,
    /// How it wraps.
    pub width: Width,
    /// Has to be switched on by a privileged user.
    pub optional: bool,
    /// Of several ways to one signal of a port the lowest rank present is used.
    pub rank: u8,
    /// Counters of one rank that are parts of the signal and are added up.
    pub summed: bool,
    /// In a sentence, for HELP and documents.
    pub meaning: &'static str,
    /// What to beware of; may be empty.
    pub notes: &'static str,
    /// When it restarts; may be empty.
    pub reset: &'static str,
    /// First kernel that has it; may be empty.
    pub since: &'static str,
    /// What reading it needs; empty for nothing.
    pub privilege: &'static str,
    /// Where the facts come from: kernel file, standard, vendor page.
    pub cite: &'static str,
}

/// Something worth knowing of a driver that is not sampled as a counter.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Fact {
    pub name: &'static str,
    pub source: &'static str,
    pub meaning: &'static str,
    pub notes: &'static str,
    pub cite: &'static str,
}

/// One data file.
#[derive(Debug)]
pub struct Driver {
    /// Name of the file under `data/`.
    pub file: &'static str,
    /// The vocabulary's name: the driver's, with `_oot` for a vendor's out-of-tree names; `*` for the kernel's own.
    pub name: &'static str,
    /// The drivers, as the `device/driver` link names them, on whose devices these counters appear.
    pub bound_as: &'static [&'static str],
    /// How often the driver itself refreshes its values, in milliseconds; 0 if at every read.
    pub refresh_ms: u32,
    /// What to beware of; may be empty.
    pub notes: &'static str,
    /// Its counters.
    pub entries: &'static [Entry],
    /// Its other facts.
    pub facts: &'static [Fact],
}

/// What a counter of a driver means: the entry, with the pattern's index filled in.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// The catalogue's entry.
    pub entry: &'static Entry,
    /// Which priority, class, queue or lane, if it is one of several.
    pub index: Option<Index>,
}

impl Meaning {
    /// The signal it carries.
    #[must_use]
    pub fn signal(&self) -> Signal {
        self.entry.signal
    }
}

/// What `counter`, read from `source` of a device bound to `driver`, means; `None` if the catalogue does not know.
///
/// `driver` is the name that the `device/driver` link has. What the kernel itself answers is the same for every driver.
#[must_use]
pub fn meaning(driver: &str, source: SourceKind, counter: &str) -> Option<Meaning> {
    DRIVERS
        .iter()
        .enumerate()
        .filter(|(_, file)| file.bound_as.iter().any(|name| *name == driver || *name == "*"))
        .find_map(|(d, file)| {
            let row = NAMES
                .binary_search_by(|row| (row.0, row.1, row.2).cmp(&(d, source, counter)))
                .ok()?;
            let (_, _, _, entry, index) = NAMES[row];
            Some(Meaning {
                entry: &file.entries[entry],
                index,
            })
        })
}

/// How a metric family is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FamilyKind {
    /// Cumulative; the exposed name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative histogram.
    Histogram,
}

/// Where the values of a family come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The signals of `from`, in base units.
    Counters,
    /// The counters of one source as the driver names and scales them.
    Raw,
    /// Calculated from counters or from facts of the port.
    Derived,
    /// What the agent tells of itself.
    Agent,
}

/// Whether a family is exposed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Exposed.
    Live,
    /// Named so that nothing else takes the name; not exposed yet.
    Planned,
}

/// One metric family of the contract.
#[derive(Debug)]
pub struct Family {
    /// Name without the `rocewatch_` prefix and without `_total`.
    pub name: &'static str,
    /// Its type.
    pub kind: FamilyKind,
    /// The unit that the name ends in, for OpenMetrics `# UNIT`; may be empty.
    pub unit: &'static str,
    /// Where its values come from.
    pub origin: Origin,
    /// Whether it is exposed yet.
    pub status: Status,
    /// HELP, in a sentence.
    pub help: &'static str,
    /// Label names, in the order in which they are exposed.
    pub labels: &'static [&'static str],
    /// The signals that go out under this name, with the label values that tell them apart.
    pub from: &'static [From],
}

/// A signal that feeds a family.
#[derive(Debug)]
pub struct From {
    /// The signal.
    pub signal: Signal,
    /// Labels that the signal fixes, such as `direction` or `error`.
    pub labels: &'static [(&'static str, &'static str)],
}

impl Family {
    /// The label that an index fills, and with it the rule of which counters the family takes: with the label
    /// `priority` those of one priority, with `lane` those of one lane, with neither those without an index.
    #[must_use]
    pub fn index_label(&self) -> Option<&'static str> {
        self.labels
            .iter()
            .copied()
            .find(|label| matches!(*label, "priority" | "lane"))
    }

    /// How `meaning` goes out under this family; `None` if it does not.
    #[must_use]
    pub fn takes(&self, meaning: &Meaning) -> Option<&'static From> {
        let index_label = match meaning.index {
            None => None,
            Some(Index::Priority(_)) => Some("priority"),
            Some(Index::Lane(_)) => Some("lane"),
            Some(Index::TrafficClass(_) | Index::Queue(_) | Index::Dscp(_)) => return None,
        };
        if index_label != self.index_label() {
            return None;
        }
        self.from.iter().find(|from| from.signal == meaning.signal())
    }
}

/// The family of this name.
#[must_use]
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}
