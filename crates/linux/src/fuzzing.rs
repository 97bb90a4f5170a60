//! The parsers, one plain function each, for the fuzz targets: each module opens its own from within.

pub use crate::dcb::fuzzing as dcb;
pub use crate::ethtool::fuzzing as ethtool;
pub use crate::netlink::fuzzing as netlink;
pub use crate::rdma::fuzzing as rdma;
pub use crate::settings::fuzzing as settings;

/// Numbers in files; an error is the label's word.
pub mod number {
    use crate::number;

    /// See [`number::decimal`].
    ///
    /// # Errors
    /// As there.
    pub fn decimal(content: &[u8]) -> Result<u64, &'static str> {
        number::decimal(content).map_err(number::NotANumber::reason)
    }

    /// See [`crate::aer::total`].
    ///
    /// # Errors
    /// As there.
    pub fn total(table: &[u8]) -> Result<u64, &'static str> {
        crate::aer::total(table).map_err(number::NotANumber::reason)
    }

    /// See [`number::hexadecimal`].
    ///
    /// # Errors
    /// As there.
    pub fn hexadecimal(content: &[u8]) -> Result<u64, &'static str> {
        number::hexadecimal(content).map_err(number::NotANumber::reason)
    }
}
