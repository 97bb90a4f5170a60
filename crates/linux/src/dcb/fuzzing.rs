//! Answers of DCB netlink for the fuzz targets.

use super::answer::Dcb;

/// Columns of an answer, and the row that it fills: cells that it leaves alone keep `unset`.
#[must_use]
pub fn row(payload: &[u8], unset: u64) -> (Vec<String>, Vec<u64>) {
    let dcb = Dcb::parse(payload);
    let columns: Vec<_> = dcb.shape().columns().collect();
    let mut row = vec![unset; columns.len()];
    dcb.fill(&mut row);
    (columns, row)
}
