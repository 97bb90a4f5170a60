//! PCI Express errors of a NIC and of the port that it is plugged into: the totals of Advanced Error Reporting that the kernel
//! keeps (`Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats`, since 4.19). Anybody may read them.
//!
//! An error is counted by the end that notices it: of what the NIC sends the slot tells, of what it receives the NIC. Reading
//! copies the kernel's memory (`aer_stats_dev_attr` in drivers/pci/pcie/aer.c); the device is not asked. The files are not there
//! where the firmware keeps error reporting to itself, or the device has none.

use crate::Context;
use crate::number::{NotANumber, decimal};
use crate::pci::{above, device};
use crate::tree::{File, Tree, read_row};
use model::{Opened, Port, Read, Schema, Source, SourceKind, Why};
use std::sync::Arc;

const FILES: [&str; 3] = ["aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"];
/// Before a file's name if it is the slot's.
const SLOT: &str = "slot_";
/// How the line begins that has the sum of the others.
const TOTAL: &str = "TOTAL_ERR_";

/// Opens the source of a port.
pub(crate) fn open(ctx: &Context, port: &Port) -> Opened {
    let tree = &*ctx.tree;
    let Some(function) = device(tree, port) else {
        let detail = format!("{} is no device of a PCI bus", port.device);
        return Opened::NotApplicable(Why::new("no_pci", detail));
    };
    let mut counters = files(tree, "", &function);
    counters.extend(
        above(&function)
            .map(|slot| files(tree, SLOT, slot))
            .unwrap_or_default(),
    );
    if counters.is_empty() {
        let detail = format!(
            "the kernel keeps no PCIe error counts of {}: the firmware reports errors, or the device does not",
            port.device
        );
        return Opened::NotApplicable(Why::new("no_aer", detail));
    }
    let (names, files): (Vec<_>, Vec<_>) = counters.into_iter().unzip();
    let schema = Schema::new(port.id.clone(), &port.driver, SourceKind::Aer, names);
    Opened::Active(Box::new(Aer {
        schema: Arc::new(schema),
        files: files.into(),
    }))
}

fn files(tree: &Tree, prefix: &str, function: &str) -> Vec<(String, File)> {
    let open = |name| {
        Some((
            format!("{prefix}{name}"),
            tree.file(&format!("{function}/{name}")).ok()?,
        ))
    };
    FILES.into_iter().filter_map(open).collect()
}

struct Aer {
    schema: Arc<Schema>,
    files: Box<[File]>,
}

impl Source for Aer {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        read_row(row, &self.files, |file| file.parse_table(total))
    }
}

/// The total: a line for each kind of error, its name and its count, and at the end the sum.
pub(crate) fn total(table: &[u8]) -> Result<u64, NotANumber> {
    if table.is_empty() {
        return Err(NotANumber::Empty);
    }
    let of_total = |line: &[u8]| {
        let (name, count) = line.split_at(line.iter().position(|byte| *byte == b' ')?);
        name.starts_with(TOTAL.as_bytes()).then(|| decimal(&count[1..]))
    };
    table
        .split(|byte| *byte == b'\n')
        .find_map(of_total)
        .unwrap_or(Err(NotANumber::Text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_total_is_what_its_line_says() {
        let table = b"RxErr 2\nBadTLP 40\nBadDLLP 0\nRollover 0\nTimeout 1\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 43\n";
        assert_eq!(total(table), Ok(43));
        assert_eq!(total(b"Undefined 0\nTOTAL_ERR_NONFATAL 7\n"), Ok(7));
        assert_eq!(total(b"TOTAL_ERR_FATAL 18446744073709551615"), Ok(u64::MAX));
        for (table, why) in [
            (&b""[..], NotANumber::Empty),
            (b"RxErr 2\nBadTLP 40\n", NotANumber::Text),
            (b"TOTAL_ERR_COR \n", NotANumber::Empty),
            (b"TOTAL_ERR_COR\n", NotANumber::Text),
            (b"TOTAL_ERR_COR -1\n", NotANumber::Negative),
            (b"TOTAL_ERR_COR 18446744073709551616\n", NotANumber::Overflow),
        ] {
            assert_eq!(total(table), Err(why), "{}", String::from_utf8_lossy(table));
        }
    }

    proptest! {
        #[test]
        fn any_table_is_survived(table in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = total(&table);
        }
    }
}
