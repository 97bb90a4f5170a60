//! What the catalogue knows of a driver and of each of its counters.

use crate::{Signal, SourceKind, Unit};

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
// The names are the field's own words.
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
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own, as the files of the catalogue have it
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
    /// Comes from memory that the NIC or the driver writes: it moves on when the firmware no longer answers.
    pub without_firmware: bool,
    /// The firmware keeps it for the port alone. Where queue pairs are counted apart the driver gives it for them all the same,
    /// as 0 whatever happens.
    pub port_alone: bool,
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

impl Entry {
    /// The first of the counters that a pattern stands for; `None` if the name is literal.
    #[must_use]
    pub fn first_index(&self) -> Option<Index> {
        let patterns = [
            ("{prio}", Index::Priority(0)),
            ("{tc}", Index::TrafficClass(0)),
            ("{q}", Index::Queue(0)),
            ("{lane}", Index::Lane(0)),
            ("{dscp}", Index::Dscp(0)),
        ];
        patterns
            .into_iter()
            .find(|(pattern, _)| self.name.contains(pattern))
            .map(|(_, index)| index)
    }
}

/// Something worth knowing of a driver that is not sampled as a counter.
#[derive(Debug)]
// The fields are those of an entry.
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
    /// The vocabulary's name: the driver's, with `_oot` where a driver has a second one, which its vendor's
    /// out-of-tree version began; `*` for the kernel's own.
    pub name: &'static str,
    /// The drivers, as the `device/driver` link names them, on whose devices these counters appear.
    pub bound_as: &'static [&'static str],
    /// Whose NICs these are, for people.
    pub title: &'static str,
    /// How often the driver itself refreshes its values, in milliseconds; 0 if at every read.
    pub refresh_ms: u32,
    /// What to beware of; may be empty.
    pub notes: &'static str,
    /// Its counters.
    pub entries: &'static [Entry],
    /// Its other facts.
    pub facts: &'static [Fact],
}
