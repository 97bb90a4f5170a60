//! From a counter of a driver to what it means.

use crate::{DRIVERS, Driver, Entry, Index, Signal, SourceKind, tables::NAMES};

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
/// `driver` is the name that the `device/driver` link has. What the kernel itself answers is the same for every driver
/// unless the driver's own file says otherwise. Counters of a port that a driver moves to the device, as mlx5 does in
/// switchdev mode, keep their meaning.
#[must_use]
pub fn meaning(driver: &str, source: SourceKind, counter: &str) -> Option<Meaning> {
    let own = |source| find(driver, source, counter);
    let moved = || {
        (source == SourceKind::DeviceCounters)
            .then(|| own(SourceKind::HwCounters))
            .flatten()
    };
    own(source).or_else(moved).or_else(|| find("*", source, counter))
}

fn find(bound_as: &str, source: SourceKind, counter: &str) -> Option<Meaning> {
    let files = DRIVERS
        .iter()
        .enumerate()
        .filter(|(_, file)| file.bound_as.contains(&bound_as));
    files
        .into_iter()
        .find_map(|(number, file)| find_in(number, file, source, counter))
}

fn find_in(number: usize, file: &'static Driver, source: SourceKind, counter: &str) -> Option<Meaning> {
    let row = NAMES
        .binary_search_by(|row| (row.0, row.1, row.2).cmp(&(number, source, counter)))
        .ok()?;
    let (_, _, _, entry, index) = NAMES[row];
    Some(Meaning {
        entry: &file.entries[entry],
        index,
    })
}
