//! Blocks: many rows of one track, by column, compressed.

use crate::bytes::{Input, Malformed, put_count};
use crate::column;
use crate::row::{Unpacked, WITH_EXTREMES};
use crate::time::{Epoch, Offset, Span};
use crate::track::TrackId;
use std::io;

/// Columns before those of the track: when the read began, how long it took, how far the wall clock was off.
const TIMES: usize = 3;
/// Unpacked of a block at most, times not counted, unless one row has more.
pub(crate) const MOST_CELLS: usize = 2 << 20;
/// Rows of a block at most.
const MOST_ROWS: usize = 1 << 16;
/// Bytes of a block before compression at most.
const MOST_RAW: usize = 48 << 20;
/// The level that `docs/decisions/0005-archive-encoding.md` decided on.
const LEVEL: i32 = 3;

/// What can be known of a block without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The log whose rows these are; 0 in a pin.
    pub(crate) seal: u64,
    pub(crate) track: TrackId,
    /// Which of the blocks that the track has in the seal.
    pub(crate) part: u32,
    pub(crate) epoch: Epoch,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) extremes: bool,
    /// Bytes before compression.
    raw: u32,
    /// Midpoint of the first row on the monotonic clock, in microseconds.
    pub(crate) first: u64,
    /// Least and greatest wall time in microseconds.
    pub(crate) wall: (i64, i64),
}

impl Meta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96);
        out.extend_from_slice(&self.seal.to_le_bytes());
        out.extend_from_slice(&self.track.0.to_le_bytes());
        out.extend_from_slice(&self.part.to_le_bytes());
        out.extend_from_slice(&self.epoch.0);
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        out.push(self.extremes.into());
        out.extend_from_slice(&self.raw.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.wall.0.to_le_bytes());
        out.extend_from_slice(&self.wall.1.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let meta = Self {
            seal: input.u64()?,
            track: TrackId(input.u64()?),
            part: input.u32()?,
            epoch: Epoch(input.id()?),
            rows: input.u32()?,
            columns: input.u32()?,
            extremes: input.u8()? != 0,
            raw: input.u32()?,
            first: input.u64()?,
            wall: (input.i64()?, input.i64()?),
        };
        let rows = meta.rows as usize;
        let too_many = meta.cells().saturating_mul(rows) > MOST_CELLS;
        if rows == 0 || rows > MOST_ROWS || too_many || meta.raw as usize > MOST_RAW {
            return Err(Malformed("a block is larger than any"));
        }
        Ok(meta)
    }

    fn cells(&self) -> usize {
        self.columns as usize * if self.extremes { WITH_EXTREMES } else { 1 }
    }
}

/// Rows of one track, by column, on their way into a block.
#[derive(Default)]
pub(crate) struct Table {
    times: [Vec<u64>; TIMES],
    columns: usize,
    /// Values; then, if a row had extremes, all lows, then all highs.
    cells: Vec<Vec<u64>>,
    first: u64,
    wall: Option<(i64, i64)>,
    /// Rows that are to be expected; 0 if nobody knows.
    expected: usize,
}

impl Table {
    /// Rows that are to come, if that is known.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.expected = rows;
    }

    fn rows(&self) -> usize {
        self.times[0].len()
    }

    /// True if a row of so many cells should begin another block.
    pub(crate) fn is_full_for(&self, row: &Unpacked) -> bool {
        let rows = self.rows();
        let cells = self.cells.len().max(row.cells.len());
        rows > 0
            && (rows >= MOST_ROWS
                || (rows + 1).saturating_mul(cells) > MOST_CELLS
                || row.columns != self.columns)
    }

    pub(crate) fn push(&mut self, row: &Unpacked, offset: Offset) {
        let rows = self.rows();
        self.columns = row.columns;
        while self.cells.len() < row.cells.len() {
            let mut column = Vec::with_capacity(self.expected.clamp(rows + 1, MOST_ROWS));
            column.resize(rows, 0);
            self.cells.push(column);
        }
        let missing = std::iter::repeat(&0);
        for (column, cell) in self.cells.iter_mut().zip(row.cells.iter().chain(missing)) {
            column.push(*cell);
        }
        let times = [row.began, row.length, offset.0.cast_unsigned()];
        for (column, time) in self.times.iter_mut().zip(times) {
            column.push(time);
        }
        let midpoint = row.span().midpoint();
        if rows == 0 {
            self.first = midpoint;
        }
        let wall = offset.wall(midpoint);
        self.wall = Some(
            self.wall
                .map_or((wall, wall), |(low, high)| (low.min(wall), high.max(wall))),
        );
    }

    /// The block; `None` if there is no row.
    ///
    /// # Errors
    /// If the compressor fails, for want of memory.
    pub(crate) fn encode(
        &self,
        compressor: &mut Compressor,
        seal: u64,
        track: TrackId,
        part: u32,
        epoch: Epoch,
    ) -> io::Result<Option<(Meta, Vec<u8>)>> {
        let Some(wall) = self.wall else {
            return Ok(None);
        };
        let mut data = Vec::new();
        let mut lengths = Vec::new();
        for column in self.times.iter().chain(&self.cells) {
            let start = data.len();
            column::encode(column, &mut data);
            put_count(&mut lengths, data.len() - start);
        }
        lengths.extend_from_slice(&data);
        let count = |count: usize| u32::try_from(count).map_err(io::Error::other);
        let meta = Meta {
            seal,
            track,
            part,
            epoch,
            rows: count(self.rows())?,
            columns: count(self.columns)?,
            extremes: self.cells.len() > self.columns,
            raw: count(lengths.len())?,
            first: self.first,
            wall,
        };
        Ok(Some((meta, compressor.0.compress(&lengths)?)))
    }
}

/// The compressor, whose memory serves one block after the other.
pub(crate) struct Compressor(zstd::bulk::Compressor<'static>);

impl Compressor {
    pub(crate) fn new() -> io::Result<Self> {
        zstd::bulk::Compressor::new(LEVEL).map(Self)
    }

    pub(crate) fn compress(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.0.compress(bytes)
    }
}

/// Undoes [`Compressor::compress`]; nothing longer than `most` comes out.
pub(crate) fn decompress(bytes: &[u8], most: usize) -> Result<Vec<u8>, Malformed> {
    zstd::bulk::decompress(bytes, most).map_err(|_| Malformed("a body does not decompress"))
}

/// Columns of a block that were read back.
pub(crate) struct Decoded {
    pub(crate) spans: Vec<Span>,
    pub(crate) offsets: Vec<Offset>,
    /// Those that were asked for: values, and lows and highs as stored codes, empty if the block has none.
    pub(crate) columns: Vec<[Vec<u64>; WITH_EXTREMES]>,
}

/// Reads the times and the columns `wanted` of a block.
pub(crate) fn decode(meta: &Meta, body: &[u8], wanted: &[usize]) -> Result<Decoded, Malformed> {
    let raw = decompress(body, meta.raw as usize)?;
    let columns = Columns::locate(&raw, TIMES + meta.cells())?;
    let rows = meta.rows as usize;
    let read = |column| columns.read(column, rows);
    let [began, length, offset] = [read(0)?, read(1)?, read(2)?];
    let spans = began.into_iter().zip(length);
    let width = meta.columns as usize;
    let of_column = |column: usize| {
        if column >= width {
            return Err(Malformed("a block has fewer columns than its track"));
        }
        let value = read(TIMES + column)?;
        if !meta.extremes {
            return Ok([value, Vec::new(), Vec::new()]);
        }
        let low = read(TIMES + width + column)?;
        let high = read(TIMES + 2 * width + column)?;
        Ok([value, low, high])
    };
    Ok(Decoded {
        spans: spans.map(|(began, length)| Span { began, length }).collect(),
        offsets: offset
            .into_iter()
            .map(|offset| Offset(offset.cast_signed()))
            .collect(),
        columns: wanted
            .iter()
            .map(|column| of_column(*column))
            .collect::<Result<_, _>>()?,
    })
}

/// Where the columns of a block are.
struct Columns<'a> {
    data: &'a [u8],
    /// Where each ends.
    ends: Vec<usize>,
}

impl<'a> Columns<'a> {
    fn locate(raw: &'a [u8], count: usize) -> Result<Self, Malformed> {
        let mut input = Input::new(raw);
        if count > raw.len() {
            return Err(Malformed("a block has fewer columns than it says"));
        }
        let mut ends = Vec::with_capacity(count);
        let mut end = 0_usize;
        for _ in 0..count {
            end = end
                .checked_add(input.count()?)
                .ok_or(Malformed("a column is longer than any"))?;
            ends.push(end);
        }
        Ok(Self {
            data: input.take(end)?,
            ends,
        })
    }

    fn read(&self, column: usize, rows: usize) -> Result<Vec<u64>, Malformed> {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        column::decode(&self.data[start..self.ends[column]], rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const EPOCH: Epoch = Epoch([7; 16]);

    fn cells(began: u64, values: &[u64], with_extremes: bool) -> Unpacked {
        let mut cells = values.to_vec();
        if with_extremes {
            cells.extend(values.iter().map(|value| value % 5));
            cells.extend(values.iter().map(|value| value % 7));
        }
        Unpacked {
            began,
            length: 3,
            columns: values.len(),
            cells,
        }
    }

    fn block(rows: &[Unpacked]) -> (Meta, Vec<u8>) {
        let mut table = Table::default();
        for row in rows {
            table.push(row, Offset(100));
        }
        let mut compressor = Compressor::new().expect("memory");
        table
            .encode(&mut compressor, 1, TrackId(2), 0, EPOCH)
            .expect("memory")
            .expect("rows")
    }

    proptest! {
        #[test]
        fn a_block_comes_back(rows in vec((any::<u32>(), vec(any::<u64>(), 4), any::<bool>()), 1..50)) {
            let rows: Vec<Unpacked> = rows.iter().map(|(began, values, extremes)| cells((*began).into(), values, *extremes)).collect();
            let (meta, body) = block(&rows);
            prop_assert_eq!(Meta::decode(&meta.encode()), Ok(meta));
            let decoded = decode(&meta, &body, &[3, 0]).expect("it is whole");
            for (i, row) in rows.iter().enumerate() {
                prop_assert_eq!(decoded.spans[i], row.span());
                prop_assert_eq!(decoded.offsets[i], Offset(100));
                prop_assert_eq!(decoded.columns[0][0][i], row.cells[3]);
                prop_assert_eq!(decoded.columns[1][0][i], row.cells[0]);
                if meta.extremes {
                    prop_assert_eq!(decoded.columns[0][1][i], row.cells.get(4 + 3).copied().unwrap_or(0));
                    prop_assert_eq!(decoded.columns[1][2][i], row.cells.get(8).copied().unwrap_or(0));
                }
            }
        }

        #[test]
        fn any_bytes_are_a_block_or_refused(meta: [u8; 96], body: Vec<u8>, raw: Vec<u8>) {
            if let Ok(meta) = Meta::decode(&meta) {
                let _ = decode(&meta, &body, &[0]);
            }
            // A sound frame of zstd around anything.
            let (meta, _) = block(&[cells(1, &[2, 3], true)]);
            let packed = Compressor::new().and_then(|mut compressor| compressor.compress(&raw)).expect("memory");
            let meta = Meta { raw: u32::try_from(raw.len()).expect("small"), ..meta };
            let _ = decode(&meta, &packed, &[0, 1, 2]);
        }
    }

    #[test]
    fn a_column_that_is_not_there_is_refused() {
        let (meta, body) = block(&[cells(1, &[2, 3], false)]);
        assert!(decode(&meta, &body, &[2]).is_err());
    }

    #[test]
    fn a_block_has_a_bound() {
        let wide = cells(1, &vec![0; MOST_CELLS / 2], false);
        let mut table = Table::default();
        assert!(!table.is_full_for(&wide));
        table.push(&wide, Offset(0));
        assert!(!table.is_full_for(&wide));
        table.push(&wide, Offset(0));
        assert!(table.is_full_for(&wide));
    }
}
