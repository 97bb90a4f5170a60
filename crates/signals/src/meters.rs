//! The meters of one port. Detectors and scrapes ask for dozens of rates at a time, and each finds its meter without a search.

use crate::meter::Meter;
use crate::quantity::Quantity;
use model::SourceKind;
use std::ops::Range;

/// One column of a quantity, and how often it counts.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) column: usize,
    pub(crate) weight: u64,
}

/// What a quantity is to be measured by.
pub(crate) struct Wanted {
    pub(crate) quantity: Quantity,
    /// Where its columns are.
    pub(crate) source: SourceKind,
    /// What it is the sum of.
    pub(crate) parts: Vec<Part>,
    /// Its meter, if it had none from this source before.
    pub(crate) meter: Meter,
}

pub(crate) struct Meters {
    all: Vec<Followed>,
    /// Those of all meters, one behind the other.
    parts: Vec<Part>,
    /// Where in `all` the meter of each quantity is.
    places: [Option<u8>; Quantity::KINDS],
}

struct Followed {
    quantity: Quantity,
    source: SourceKind,
    parts: Range<usize>,
    meter: Meter,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            all: Vec::new(),
            parts: Vec::new(),
            places: [None; Quantity::KINDS],
        }
    }

    /// Follows these, and nothing else. Totals carry on by name, so that what was measured of the same source stays true
    /// even if the columns have moved.
    pub(crate) fn follow(&mut self, wanted: impl Iterator<Item = Wanted>) {
        let mut former = std::mem::replace(self, Self::new());
        for Wanted {
            quantity,
            source,
            parts,
            mut meter,
        } in wanted
        {
            let Some(place) = quantity.place() else { continue };
            if let Some(known) = former.at(place).filter(|known| known.source == source) {
                std::mem::swap(&mut known.meter, &mut meter);
            }
            let first = self.parts.len();
            self.parts.extend(parts);
            self.places[place] = u8::try_from(self.all.len()).ok();
            self.all.push(Followed {
                quantity,
                source,
                parts: first..self.parts.len(),
                meter,
            });
        }
    }

    fn at(&mut self, place: usize) -> Option<&mut Followed> {
        self.all.get_mut(usize::from(self.places[place]?))
    }

    /// The meter of a quantity, and the source that it follows.
    pub(crate) fn get(&self, quantity: Quantity) -> Option<(SourceKind, &Meter)> {
        let at = self.places[quantity.place()?]?;
        let followed = self.all.get(usize::from(at))?;
        Some((followed.source, &followed.meter))
    }

    /// All that follow a source.
    pub(crate) fn of(&mut self, source: SourceKind) -> impl Iterator<Item = (Quantity, &[Part], &mut Meter)> {
        let Self { all, parts, .. } = self;
        all.iter_mut()
            .filter(move |followed| followed.source == source)
            .map(|followed| {
                let parts = &parts[followed.parts.clone()];
                (followed.quantity, parts, &mut followed.meter)
            })
    }

    /// Forgets what was measured of a quantity.
    pub(crate) fn clear(&mut self, quantity: Quantity) {
        if let Some(followed) = quantity.place().and_then(|place| self.at(place)) {
            followed.meter.clear();
        }
    }
}
