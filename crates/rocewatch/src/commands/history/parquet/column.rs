//! One column of a row group on its way to the file.

use super::encoding::{Runs, bits};
use super::thrift::Struct;
use std::collections::HashMap;
use std::io;

/// Repetition, encodings, codec and page types by number, as in `parquet.thrift` of Apache Parquet.
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const ZSTD: i32 = 6;
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const LEVEL: i32 = 3;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Microseconds since 1970, UTC.
    Time,
    /// A number below 2³².
    Small,
    /// A number below 2⁶⁴.
    Large,
    /// Text that comes again and again.
    Text,
}

impl Kind {
    /// Physical type, converted type (for readers of before 2017) and logical type.
    fn types(self) -> (i32, i32, Struct) {
        let whole = |bits| Struct::new().i8(1, bits).bool(2, false);
        match self {
            Self::Time => {
                let microseconds = Struct::new().record(2, Struct::new());
                let time = Struct::new().bool(1, true).record(2, microseconds);
                (2, 10, Struct::new().record(8, time))
            }
            Self::Small => (1, 13, Struct::new().record(10, whole(32))),
            Self::Large => (2, 14, Struct::new().record(10, whole(64))),
            Self::Text => (6, 0, Struct::new().record(1, Struct::new())),
        }
    }
}

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) optional: bool,
}

impl Definition {
    /// Its `SchemaElement`.
    pub(super) fn schema(&self) -> Struct {
        let (physical, converted, logical) = self.kind.types();
        Struct::new()
            .i32(1, physical)
            .i32(3, if self.optional { OPTIONAL } else { REQUIRED })
            .binary(4, self.name.as_bytes())
            .i32(6, converted)
            .record(10, logical)
    }
}

/// The values of a column in a row group.
pub(super) struct Column {
    definition: Definition,
    rows: u64,
    /// Numbers as they are written: the lowest byte first.
    plain: Vec<u8>,
    /// Texts, each once, and which of them stand in the rows.
    dictionary: Vec<u8>,
    places: HashMap<String, u32>,
    indices: Runs,
    /// 1 for a row that has a value.
    levels: Runs,
    range: Option<(i64, i64)>,
}

impl Column {
    pub(super) fn new(definition: Definition) -> Self {
        Self {
            definition,
            rows: 0,
            plain: Vec::new(),
            dictionary: Vec::new(),
            places: HashMap::new(),
            indices: Runs::default(),
            levels: Runs::default(),
            range: None,
        }
    }

    pub(super) fn time(&mut self, microseconds: i64) {
        let (least, most) = self.range.unwrap_or((microseconds, microseconds));
        self.range = Some((least.min(microseconds), most.max(microseconds)));
        self.there(1);
        self.plain.extend_from_slice(&microseconds.to_le_bytes());
    }

    pub(super) fn small(&mut self, value: u32, times: u64) {
        self.there(times);
        for _ in 0..times {
            self.plain.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub(super) fn large(&mut self, value: Option<u64>) {
        match value {
            Some(value) => {
                self.there(1);
                self.plain.extend_from_slice(&value.to_le_bytes());
            }
            None => self.absent(1),
        }
    }

    pub(super) fn text(&mut self, text: Option<&str>, times: u64) {
        let Some(text) = text else {
            return self.absent(times);
        };
        self.there(times);
        let known = self.places.get(text).copied();
        let place = known.unwrap_or_else(|| self.define(text));
        self.indices.push(place, times);
    }

    fn define(&mut self, text: &str) -> u32 {
        // Neither a text nor a number of them reaches 2³²: a row group has 2¹⁷ rows.
        let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let place = size(self.places.len());
        self.places.insert(text.to_owned(), place);
        self.dictionary.extend_from_slice(&size(text.len()).to_le_bytes());
        self.dictionary.extend_from_slice(text.as_bytes());
        place
    }

    fn there(&mut self, times: u64) {
        self.rows += times;
        self.levels.push(1, times);
    }

    fn absent(&mut self, times: u64) {
        self.rows += times;
        self.levels.push(0, times);
    }

    /// Writes its pages to `out`, which begins at `at` in the file. Gives its `ColumnChunk` and its size uncompressed.
    pub(super) fn write(self, at: u64, out: &mut Vec<u8>) -> io::Result<(Struct, u64)> {
        let start = out.len();
        let is_text = self.definition.kind == Kind::Text;
        let mut uncompressed = 0;
        if is_text {
            let head = Struct::new()
                .i32(1, count(self.places.len() as u64))
                .i32(2, PLAIN);
            uncompressed += page(DICTIONARY_PAGE, 7, head, &self.dictionary, out)?;
        }
        let data = at + (out.len() - start) as u64;
        let (encoding, body) = self.body();
        let head = Struct::new()
            .i32(1, count(self.rows))
            .i32(2, encoding)
            .i32(3, LEVEL)
            .i32(4, LEVEL);
        uncompressed += page(DATA_PAGE, 5, head, &body, out)?;
        let (physical, _, _) = self.definition.kind.types();
        let mut meta = Struct::new()
            .i32(1, physical)
            .i32s(2, &[PLAIN, RLE, encoding])
            .text_list(3, self.definition.name)
            .i32(4, ZSTD)
            .size(5, self.rows)
            .size(6, uncompressed)
            .size(7, (out.len() - start) as u64)
            .size(9, data);
        if is_text {
            meta = meta.size(11, at);
        }
        if let Some((least, most)) = self.range {
            let range = Struct::new()
                .i64(3, 0)
                .binary(5, &most.to_le_bytes())
                .binary(6, &least.to_le_bytes());
            meta = meta.record(12, range);
        }
        Ok((Struct::new().size(2, at).record(3, meta), uncompressed))
    }

    /// The encoding of the values, and what is in the data page.
    fn body(&self) -> (i32, Vec<u8>) {
        let mut body = Vec::new();
        if self.definition.optional {
            self.levels.encode(1, &mut body);
            let length = count(body.len() as u64);
            body.splice(0..0, length.to_le_bytes());
        }
        if self.definition.kind == Kind::Text {
            let bits = bits(self.places.len());
            body.push(bits.to_le_bytes()[0]);
            self.indices.encode(bits, &mut body);
            return (RLE_DICTIONARY, body);
        }
        body.extend_from_slice(&self.plain);
        (PLAIN, body)
    }
}

/// Writes a page; gives its size uncompressed, head included.
fn page(kind: i32, field: u8, head: Struct, body: &[u8], out: &mut Vec<u8>) -> io::Result<u64> {
    let packed = zstd::bulk::compress(body, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    let head = Struct::new()
        .i32(1, kind)
        .i32(2, count(body.len() as u64))
        .i32(3, count(packed.len() as u64))
        .record(field, head)
        .finish();
    out.extend_from_slice(&head);
    out.extend_from_slice(&packed);
    Ok((head.len() + body.len()) as u64)
}

/// A number of rows or bytes of a page: far below 2³¹ in a row group of 2¹⁷ rows.
fn count(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
