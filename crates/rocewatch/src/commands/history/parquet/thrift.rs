//! The compact protocol of Apache Thrift, as far as Parquet's metadata needs it: writing alone.
//!
//! Source: `doc/specs/thrift-compact-protocol.md` of Apache Thrift.

const I8: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct that is being written, its fields in ascending order.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn bool(self, field: u8, value: bool) -> Self {
        // The value is in the type.
        self.field(field, if value { 1 } else { 2 })
    }

    pub(super) fn i8(self, field: u8, value: i8) -> Self {
        self.field(field, I8).raw(&value.to_le_bytes())
    }

    pub(super) fn i32(self, field: u8, value: i32) -> Self {
        self.field(field, I32).zigzag(value.into())
    }

    pub(super) fn i64(self, field: u8, value: i64) -> Self {
        self.field(field, I64).zigzag(value)
    }

    /// A length or a place in the file.
    pub(super) fn size(self, field: u8, value: u64) -> Self {
        self.i64(field, i64::try_from(value).unwrap_or(i64::MAX))
    }

    pub(super) fn binary(self, field: u8, value: &[u8]) -> Self {
        self.field(field, BINARY).length(value.len()).raw(value)
    }

    pub(super) fn record(self, field: u8, value: Self) -> Self {
        self.field(field, STRUCT).raw(&value.finish())
    }

    pub(super) fn records(self, field: u8, values: impl ExactSizeIterator<Item = Self>) -> Self {
        let list = self.list(field, STRUCT, values.len());
        values.fold(list, |list, value| list.raw(&value.finish()))
    }

    pub(super) fn i32s(self, field: u8, values: &[i32]) -> Self {
        let list = self.list(field, I32, values.len());
        values
            .iter()
            .fold(list, |list, value| list.zigzag((*value).into()))
    }

    pub(super) fn text_list(self, field: u8, value: &str) -> Self {
        self.list(field, BINARY, 1)
            .length(value.len())
            .raw(value.as_bytes())
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn field(mut self, field: u8, kind: u8) -> Self {
        debug_assert!(
            field > self.last && field - self.last < 16,
            "fields ascend by less than 16"
        );
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
        self
    }

    fn list(mut self, field: u8, kind: u8, length: usize) -> Self {
        self = self.field(field, LIST);
        if let Ok(length @ 0..15) = u8::try_from(length) {
            self.bytes.push(length << 4 | kind);
            return self;
        }
        self.bytes.push(0xf0 | kind);
        self.length(length)
    }

    fn zigzag(self, value: i64) -> Self {
        self.varint((value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned())
    }

    fn length(self, value: usize) -> Self {
        self.varint(value as u64)
    }

    fn varint(mut self, value: u64) -> Self {
        super::encoding::varint(value, &mut self.bytes);
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of the specification.
    #[test]
    fn fields_lists_and_numbers_are_as_specified() {
        let inner = Struct::new().bool(1, true).bool(2, false);
        let bytes = Struct::new()
            .i32(1, -1)
            .i64(3, 150)
            .binary(4, b"PAR")
            .record(8, inner)
            .i32s(9, &[0, 8])
            .i8(10, -2)
            .finish();
        let right = [
            0x15, 0x01, // field 1, i32, zigzag of -1
            0x26, 0xac, 0x02, // two further, i64, zigzag of 150 = 300
            0x18, 0x03, b'P', b'A', b'R', // one further, binary
            0x4c, 0x11, 0x12, 0x00, // four further, a struct of two flags and its end
            0x19, 0x25, 0x00, 0x10, // a list of two i32
            0x13, 0xfe, // a byte as it is
            0x00,
        ];
        assert_eq!(bytes, right);
    }

    #[test]
    fn a_list_of_fifteen_and_more_has_its_length_behind() {
        let bytes = Struct::new().i32s(1, &[0; 15]).finish();
        assert_eq!(bytes[..3], [0x19, 0xf5, 15]);
        let bytes = Struct::new().i32s(1, &[0; 14]).finish();
        assert_eq!(bytes[..2], [0x19, 0xe5]);
    }
}
