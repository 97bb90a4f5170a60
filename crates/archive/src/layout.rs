//! Which files there are, and what they are called.

use crate::files::Disk;
use std::io;

/// What a numbered file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbered {
    /// Rows as they came.
    Log,
    /// Sealed blocks.
    Segment,
    /// Versions of records.
    Records,
}

pub(crate) const PINS: &str = "pins";
const PIN: &str = "pin";

impl Numbered {
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Log | Self::Segment => "rows",
            Self::Records => "records",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Segment => "segment",
            Self::Records => "records",
        }
    }

    pub(crate) fn path(self, number: u64) -> String {
        format!("{}/{number:020}.{}", self.folder(), self.extension())
    }

    /// The numbers that there are, in order.
    pub(crate) fn list(self, disk: &dyn Disk) -> io::Result<Vec<u64>> {
        let names = disk.list(self.folder())?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| self.number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The number of the file that is called `name`, if it is one of these.
    fn number(self, name: &str) -> Option<u64> {
        let number = name
            .strip_suffix(self.extension())?
            .strip_suffix('.')?
            .parse()
            .ok()?;
        let ours = number < u64::MAX && self.path(number) == format!("{}/{name}", self.folder());
        ours.then_some(number)
    }
}

/// The file of a pin.
pub(crate) fn pin(id: &str) -> String {
    format!("{PINS}/{id}.{PIN}")
}

/// The file of a pin that is being written.
pub(crate) fn new_pin() -> String {
    format!("{PINS}/new")
}

/// The pins that there are.
pub(crate) fn pins(disk: &dyn Disk) -> io::Result<Vec<String>> {
    let mut ids: Vec<String> = disk
        .list(PINS)?
        .iter()
        .filter_map(|name| Some(name.strip_suffix(PIN)?.strip_suffix('.')?.to_owned()))
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

/// True of what can be the name of a file anywhere: letters, digits, `-`, `_` and `.`, not at the beginning.
pub(crate) fn is_name(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=128).contains(&id.len()) && id.chars().all(plain) && !id.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[test]
    fn files_of_other_names_are_left_alone() {
        let disk = Memory::new();
        let numbers = [
            "00000000000000000007",
            "7",
            "+0000000000000000007",
            "18446744073709551615",
            "a",
        ];
        for name in numbers {
            disk.put(&format!("rows/{name}.log"), Vec::new());
            disk.put(&format!("rows/{name}.logs"), Vec::new());
        }
        assert_eq!(Numbered::Log.list(&disk).expect("it lists"), [7]);
        assert_eq!(Numbered::Segment.list(&disk).expect("it lists"), [0; 0]);
    }
}
