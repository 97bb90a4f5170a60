//! A driver's statistics while their set changes under the reader.

use linux::fuzzing::ethtool::{Driver, NAME, open};
use model::{Read, Source};

/// Reads that are tried of one source.
const READS: usize = 6;
const ENODEV: i32 = 19;
const EIO: i32 = 5;

/// However the set changes between the questions: if the change is noticed, no value stands under another's name.
///
/// The input is a line of script and then sets of names, one a line, with a line `|` between sets. The script's letters
/// are taken one at each question: a digit makes the set of that number the current one before the answer, `e` and `d`
/// make it fail, `o` has the kernel be an old one from now on, and anything else lets it answer.
pub fn check(input: &[u8]) {
    let mut lines = input.split(|&byte| byte == b'\n');
    let script = lines.next().unwrap_or_default();
    let names: Vec<&[u8]> = lines.collect();
    let sets: Vec<Vec<&[u8]>> = names.split(|name| *name == b"|").map(<[_]>::to_vec).collect();
    let driver = Scripted {
        script: script.to_vec().into_iter(),
        sets: sets
            .iter()
            .map(|names| names.iter().map(|name| padded(name)).collect())
            .collect(),
        current: 0,
        old: false,
        disturbed: false,
        names: Vec::new(),
        values: Vec::new(),
    };
    let Some(mut source) = open(driver) else { return };
    for _ in 0..READS {
        read(&mut source);
    }
}

fn read(source: &mut impl Source) {
    let mut row = vec![0; source.schema().columns.len()];
    if source.read(&mut row) == Read::Row {
        for (column, value) in source.schema().columns.iter().zip(row) {
            assert_eq!(value, value_of(&column.name), "{}", column.name);
        }
    }
}

/// The value that every statistic of this name has: FNV-1a (Fowler, Noll, Vo).
fn value_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn padded(name: &[u8]) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    let length = name.len().min(NAME);
    bytes[..length].copy_from_slice(&name[..length]);
    bytes
}

/// The name as people read it: up to its NUL.
fn text(name: &[u8; NAME]) -> String {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME);
    String::from_utf8_lossy(&name[..end]).into_owned()
}

struct Scripted {
    script: std::vec::IntoIter<u8>,
    sets: Vec<Vec<[u8; NAME]>>,
    current: usize,
    /// Before January 2026: writes all there is, whatever was asked for.
    old: bool,
    disturbed: bool,
    names: Vec<u8>,
    values: Vec<u64>,
}

impl Scripted {
    fn play(&mut self) -> Result<&[[u8; NAME]], i32> {
        match self.script.next() {
            Some(digit @ b'0'..=b'9') => {
                self.current = usize::from(digit - b'0') % self.sets.len();
                self.disturbed = true;
            }
            Some(b'e') => return Err(EIO),
            Some(b'd') => return Err(ENODEV),
            Some(b'o') => self.old = true,
            _ => {}
        }
        Ok(&self.sets[self.current])
    }

    fn answered(&mut self, asked: usize) -> Result<Vec<[u8; NAME]>, i32> {
        let there = self.play()?.to_vec();
        Ok(if self.old || asked == there.len() {
            there
        } else {
            Vec::new()
        })
    }
}

impl Driver for Scripted {
    fn count(&mut self) -> Result<usize, i32> {
        self.play().map(<[_]>::len)
    }

    fn names(&mut self, count: usize) -> Result<&[u8], i32> {
        self.names = self.answered(count)?.concat();
        Ok(&self.names)
    }

    fn values(&mut self, count: usize) -> Result<&[u64], i32> {
        self.values = self
            .answered(count)?
            .iter()
            .map(|name| value_of(&text(name)))
            .collect();
        Ok(&self.values)
    }

    fn is_disturbed(&mut self) -> bool {
        std::mem::take(&mut self.disturbed)
    }
}
