//! Rows as a log has them: one after the other, each complete in itself.
//!
//! Most cells of a row are zero, so a row is a bitmap of those that are not, and their values as varints. Nothing
//! refers to an earlier row, so that a damaged frame costs the rows in it and no others.

use crate::block::MOST_CELLS;
use crate::bytes::{Input, Malformed, put_count, put_varint, unzigzag, zigzag};
use crate::rate::Code;
use crate::second::{Extremes, Second};
use crate::time::{Epoch, Offset, Span};
use crate::track::TrackId;

/// Unpacked that a column has in a row with extremes: value, low, high.
pub(crate) const WITH_EXTREMES: usize = 3;

/// What the rows of one frame share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) epoch: Epoch,
    pub(crate) offset: Offset,
    /// Midpoints of the first and the last row, in microseconds.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Meta {
    /// First and last wall time, in microseconds.
    pub(crate) fn wall(&self) -> (i64, i64) {
        (self.offset.wall(self.first), self.offset.wall(self.last))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.epoch.0.to_vec();
        out.extend_from_slice(&self.offset.0.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.last.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        Ok(Self {
            epoch: Epoch(input.id()?),
            offset: Offset(input.i64()?),
            first: input.u64()?,
            last: input.u64()?,
        })
    }
}

/// A row that was read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unpacked {
    pub(crate) began: u64,
    pub(crate) length: u64,
    pub(crate) columns: usize,
    /// Values; then, if the row has extremes, all lows, then all highs, as stored codes.
    pub(crate) cells: Vec<u64>,
}

impl Unpacked {
    pub(crate) fn span(&self) -> Span {
        Span {
            began: self.began,
            length: self.length,
        }
    }
}

/// Appends a row of `track`.
pub(crate) fn put(out: &mut Vec<u8>, track: TrackId, row: &Second<'_>) {
    let mut body = Vec::with_capacity(row.values.len() * 4);
    put_varint(&mut body, row.span.began);
    put_varint(&mut body, row.span.length);
    put_count(&mut body, row.values.len());
    body.push(row.extremes.is_some().into());
    let map = body.len();
    let cells = row.values.len() * if row.extremes.is_some() { WITH_EXTREMES } else { 1 };
    body.resize(map + cells.div_ceil(8), 0);
    let extreme = |pick: fn(&Extremes) -> Code| {
        let all = row.extremes.into_iter().flatten();
        all.map(move |extremes| Code::stored(extremes.as_ref().map(pick)))
    };
    let values = row.values.iter().map(|value| zigzag(*value));
    let lows = extreme(|extremes| Code::down(extremes.low));
    let highs = extreme(|extremes| Code::up(extremes.high));
    for (i, cell) in values.chain(lows).chain(highs).enumerate() {
        if cell != 0 {
            body[map + i / 8] |= 1 << (i % 8);
            put_varint(&mut body, cell);
        }
    }
    out.extend_from_slice(&track.0.to_le_bytes());
    put_count(out, body.len());
    out.extend_from_slice(&body);
}

/// The rows of a frame's body, not decoded yet.
pub(crate) fn each(body: &[u8]) -> impl Iterator<Item = Result<(TrackId, &[u8]), Malformed>> {
    let mut input = Some(Input::new(body));
    std::iter::from_fn(move || {
        let mut rest = input.take().filter(|input| !input.is_empty())?;
        let row = rest.u64().and_then(|track| Ok((TrackId(track), rest.bytes()?)));
        if row.is_ok() {
            input = Some(rest);
        }
        Some(row)
    })
}

/// Decodes a row into `row`.
pub(crate) fn decode(bytes: &[u8], row: &mut Unpacked) -> Result<(), Malformed> {
    let mut input = Input::new(bytes);
    row.began = input.varint()?;
    row.length = input.varint()?;
    let columns = usize::try_from(input.varint()?).map_err(|_| Malformed("a row is wider than any"))?;
    let with_extremes = input.u8()? != 0;
    let cells = columns
        .checked_mul(if with_extremes { WITH_EXTREMES } else { 1 })
        .filter(|cells| *cells <= MOST_CELLS)
        .ok_or(Malformed("a row is wider than any"))?;
    let map = input.take(cells.div_ceil(8))?;
    row.columns = columns;
    row.cells.clear();
    for i in 0..cells {
        let set = map[i / 8] & 1 << (i % 8) != 0;
        let cell = if set { input.varint()? } else { 0 };
        row.cells.push(if i < columns { unzigzag(cell) } else { cell });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn put_row(out: &mut Vec<u8>, track: u64, values: &[u64], extremes: Option<&[Option<Extremes>]>) {
        let span = Span { began: 5, length: 2 };
        put(
            out,
            TrackId(track),
            &Second {
                span,
                values,
                extremes,
            },
        );
    }

    proptest! {
        #[test]
        fn rows_come_back(rows in vec((any::<u64>(), vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0..40)), 0..10)) {
            let mut out = Vec::new();
            for (track, values) in &rows {
                put_row(&mut out, *track, values, None);
            }
            let mut row = Unpacked::default();
            let mut found = Vec::new();
            for one in each(&out) {
                let (track, bytes) = one.expect("it is whole");
                decode(bytes, &mut row).expect("it is whole");
                prop_assert_eq!(row.span(), Span { began: 5, length: 2 });
                found.push((track.0, row.cells.clone()));
            }
            prop_assert_eq!(found, rows);
        }

        #[test]
        fn any_bytes_are_rows_or_refused(bytes: Vec<u8>) {
            let mut row = Unpacked::default();
            let _ = decode(&bytes, &mut row);
            let _ = Meta::decode(&bytes);
            for one in each(&bytes).flatten() {
                let _ = decode(one.1, &mut row);
            }
        }
    }

    #[test]
    fn extremes_stand_behind_the_values() {
        let mut out = Vec::new();
        let extremes = [None, Some(Extremes { low: 0, high: 9 })];
        put_row(&mut out, 1, &[3, 4], Some(&extremes));
        let mut row = Unpacked::default();
        let (_, bytes) = each(&out).next().expect("a row").expect("whole");
        decode(bytes, &mut row).expect("it is whole");
        assert_eq!((row.columns, row.cells), (2, vec![3, 4, 0, 1, 0, 10]));
    }
}
