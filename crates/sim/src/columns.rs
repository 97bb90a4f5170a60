//! Which counters a source of the simulated NIC has.
//!
//! The names come from the catalogue; the model knows signals alone.

use crate::nic::Nic;
use crate::optics::LANES;
use crate::rail::Rail;
use crate::setup::Setup;
use crate::value::{ERROR_LANES, in_unit, in_width, value};
use catalog::{Entry, Index, Meaning, Per, Signal, SourceKind};
use model::ABSENT;

/// One column of a source.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// The counter's name.
    pub(crate) name: String,
    meaning: Meaning,
    /// Another counter of the source already carries the signal: unicast and multicast, IPv4 and IPv6 are parts of a sum,
    /// and all that the model sends is unicast over IPv4.
    rest: bool,
}

impl Cell {
    /// What the counter reads on `rail`.
    pub(crate) fn read(&self, rail: &Rail) -> u64 {
        if self.rest {
            return 0;
        }
        let Meaning { entry, index } = self.meaning;
        value(rail, entry.source, entry.signal, index)
            .map_or(ABSENT, |value| in_width(in_unit(value, entry.unit), entry.width))
    }
}

/// The columns of a source of a NIC of this server; none if it does not have the source.
pub(crate) fn cells(setup: Setup, source: SourceKind) -> Vec<Cell> {
    // Nobody calls back, and nobody has switched counters of queue pairs on.
    if matches!(source, SourceKind::Verbs | SourceKind::QpCounters) {
        return Vec::new();
    }
    let mut cells: Vec<Cell> = Vec::new();
    for (name, meaning) in names(setup.nic, source).filter(|(_, meaning)| shown(setup, meaning)) {
        let same =
            |cell: &Cell| (cell.meaning.signal(), cell.meaning.index) == (meaning.signal(), meaning.index);
        let rest = cells.iter().any(same);
        // The driver's own entry comes before the kernel's of the same name. A second sensor of one signal is another
        // port's.
        let other_sensor = rest && source == SourceKind::Hwmon;
        if !other_sensor && cells.iter().all(|cell| cell.name != name) {
            cells.push(Cell { name, meaning, rest });
        }
    }
    cells
}

/// Every counter that the catalogue knows for the driver in `source`, patterns expanded.
fn names(nic: Nic, source: SourceKind) -> impl Iterator<Item = (String, Meaning)> {
    nic.files()
        .flat_map(|file| file.entries)
        .filter(move |entry| entry.source == source)
        .flat_map(expand)
}

fn expand(entry: &'static Entry) -> Vec<(String, Meaning)> {
    type Kind = (&'static str, u8, fn(u8) -> Index);
    const PLACEHOLDERS: [Kind; 5] = [
        ("{prio}", 8, Index::Priority),
        ("{tc}", 8, Index::TrafficClass),
        ("{q}", 8, Index::Queue),
        ("{lane}", 8, Index::Lane),
        ("{dscp}", 64, Index::Dscp),
    ];
    let Some((placeholder, count, index)) = PLACEHOLDERS.into_iter().find(|kind| entry.name.contains(kind.0))
    else {
        return vec![(entry.name.to_owned(), Meaning { entry, index: None })];
    };
    (0..count)
        .map(|i| {
            (
                entry.name.replace(placeholder, &i.to_string()),
                Meaning {
                    entry,
                    index: Some(index(i)),
                },
            )
        })
        .collect()
}

/// Whether a NIC in the simulated configuration has the counter: the server's kernel, no switchdev, no optional counter
/// switched on.
fn shown(setup: Setup, meaning: &Meaning) -> bool {
    let Meaning { entry, index } = *meaning;
    let of_no_lane =
        entry.source == SourceKind::Module && matches!(index, Some(Index::Lane(lane)) if lane >= LANES);
    !entry.optional
        && !of_no_lane
        && setup.nic.is_released(entry)
        && !setup.nic.lacks(entry.source, entry.signal)
        && (setup.nic != Nic::Mlx5 || shown_by_mlx5(setup.scenario.pfc(), meaning))
}

/// mlx5 names its counters by its configuration: PFC on the priorities of `pfc`, no global pause.
///
/// Frames of global pause are the exception: the catalogue has two entries alike for them, of which a NIC without global
/// pause shows one, and nothing tells which. Both are there, and stay 0.
fn shown_by_mlx5(pfc: u8, meaning: &Meaning) -> bool {
    let Meaning { entry, index } = *meaning;
    match (entry.source, entry.signal) {
        (
            SourceKind::Ethtool,
            Signal::PfcRxFrames
            | Signal::PfcTxFrames
            | Signal::PfcRxPauseDuration
            | Signal::PfcTxPauseDuration
            | Signal::PfcRxTransitions,
        ) => has_pfc(pfc, index),
        (
            SourceKind::Ethtool,
            Signal::PauseRxPauseDuration
            | Signal::PauseTxPauseDuration
            | Signal::PauseRxTransitions
            | Signal::LinkRxBitsTotal,
        ) => false,
        (SourceKind::Ethtool, Signal::LinkRxLaneErrors) => {
            matches!(index, Some(Index::Lane(lane)) if lane < ERROR_LANES)
        }
        (SourceKind::HwCounters, _) => entry.per != Per::Function,
        // Of these a host reads traffic alone: each costs a firmware command, and ethtool has the errors.
        (SourceKind::PortCounters, signal) => matches!(
            signal,
            Signal::BytesRxRdma | Signal::BytesTxRdma | Signal::PacketsRxRdma | Signal::PacketsTxRdma
        ),
        _ => true,
    }
}

/// Whether `index` is a priority with PFC.
pub(crate) fn has_pfc(pfc: u8, index: Option<Index>) -> bool {
    matches!(index, Some(Index::Priority(priority)) if pfc & (1 << priority) != 0)
}
