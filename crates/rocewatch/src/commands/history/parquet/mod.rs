//! History as a Parquet file: a line a value, as `DuckDB`, pandas and their like expect it.
//!
//! A small part of the format suffices, and is written here (`docs/decisions/0006-parquet-writer.md` says why): one page a column
//! and row group, numbers plain, text by dictionary, all in zstd.

mod column;
mod encoding;
mod thrift;

use super::points::{Point, Series};
use column::{Column, Definition, Kind};
use std::io::{self, Write};
use thrift::Struct;

const MAGIC: &[u8] = b"PAR1";
/// Rows of a row group, about: what readers share among threads, and what has to be in memory.
const GROUP: usize = 1 << 17;

const fn column(name: &'static str, kind: Kind) -> Definition {
    Definition {
        name,
        kind,
        optional: false,
    }
}

const fn optional(name: &'static str, kind: Kind) -> Definition {
    Definition {
        name,
        kind,
        optional: true,
    }
}

/// The columns, those of CSV.
const COLUMNS: [Definition; 11] = [
    column("time", Kind::Time),
    column("device", Kind::Text),
    column("port", Kind::Small),
    optional("netdev", Kind::Text),
    column("source", Kind::Text),
    column("counter", Kind::Text),
    optional("signal", Kind::Text),
    optional("unit", Kind::Text),
    column("value", Kind::Large),
    optional("low", Kind::Large),
    optional("high", Kind::Large),
];

/// A file that is being written. Without [`File::finish`] it cannot be read.
pub(super) struct File<W> {
    out: W,
    /// Bytes written.
    at: u64,
    columns: [Column; COLUMNS.len()],
    /// Rows in `columns`.
    waiting: usize,
    groups: Vec<Struct>,
    rows: u64,
}

impl<W: Write> File<W> {
    /// Begins a file.
    pub(super) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Self {
            out,
            at: MAGIC.len() as u64,
            columns: COLUMNS.map(Column::new),
            waiting: 0,
            groups: Vec::new(),
            rows: 0,
        })
    }

    /// Adds the values of a counter.
    pub(super) fn push(&mut self, series: &Series) -> io::Result<()> {
        let mut rest = &series.points[..];
        while !rest.is_empty() {
            let (fit, more) = rest.split_at(rest.len().min(GROUP - self.waiting));
            self.take(series, fit);
            if self.waiting == GROUP {
                self.write_group()?;
            }
            rest = more;
        }
        Ok(())
    }

    fn take(&mut self, series: &Series, points: &[Point]) {
        let rows = points.len() as u64;
        let [
            time,
            device,
            port,
            netdev,
            source,
            counter,
            signal,
            unit,
            value,
            low,
            high,
        ] = &mut self.columns;
        device.text(Some(&series.device), rows);
        port.small(series.port, rows);
        netdev.text(series.netdev.as_deref(), rows);
        source.text(Some(series.source), rows);
        counter.text(Some(&series.counter), rows);
        signal.text(series.signal, rows);
        unit.text(Some(&*series.unit).filter(|unit| !unit.is_empty()), rows);
        for point in points {
            // What the archive keeps has no finer times.
            time.time(point.time.div_euclid(1_000));
            value.large(Some(point.value));
            low.large(point.low);
            high.large(point.high);
        }
        self.waiting += points.len();
    }

    fn write_group(&mut self) -> io::Result<()> {
        let columns = std::mem::replace(&mut self.columns, COLUMNS.map(Column::new));
        let mut bytes = Vec::new();
        let mut chunks = Vec::new();
        let mut uncompressed = 0;
        for column in columns {
            let (chunk, size) = column.write(self.at + bytes.len() as u64, &mut bytes)?;
            chunks.push(chunk);
            uncompressed += size;
        }
        self.put(&bytes)?;
        let rows = std::mem::take(&mut self.waiting) as u64;
        self.rows += rows;
        let group = Struct::new()
            .records(1, chunks.into_iter())
            .size(2, uncompressed)
            .size(3, rows);
        self.groups.push(group);
        Ok(())
    }

    /// Writes the rest, and where everything is.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.waiting > 0 {
            self.write_group()?;
        }
        let children = i32::try_from(COLUMNS.len()).unwrap_or(i32::MAX);
        let root = Struct::new().binary(4, b"history").i32(5, children);
        let elements: Vec<_> = std::iter::once(root)
            .chain(COLUMNS.iter().map(Definition::schema))
            .collect();
        // Without an order of its values readers must not use a column's range.
        let by_type = COLUMNS.map(|_| Struct::new().record(1, Struct::new()));
        let by = concat!("rocewatch version ", env!("CARGO_PKG_VERSION"));
        let footer = Struct::new()
            .i32(1, 2)
            .records(2, elements.into_iter())
            .size(3, self.rows)
            .records(4, std::mem::take(&mut self.groups).into_iter())
            .binary(6, by.as_bytes())
            .records(7, by_type.into_iter())
            .finish();
        let length = u32::try_from(footer.len()).map_err(io::Error::other)?;
        self.put(&footer)?;
        self.put(&length.to_le_bytes())?;
        self.put(MAGIC)?;
        self.out.flush()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
