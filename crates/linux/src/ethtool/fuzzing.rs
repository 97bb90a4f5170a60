//! Statistics of a driver that answers as a fuzz target says.

use super::nic::Nic;
use super::watch::Notice;
use super::{About, Columns, NAMES_AGE, Statistics, ioctl};
use model::{DeviceId, PortId, Source};
use rustix::io::Errno;

/// Bytes of one name.
pub const NAME: usize = ioctl::NAME;

/// The kernel's answers about one interface; an error is an errno.
#[allow(clippy::missing_errors_doc)] // the errors are the target's invention
pub trait Driver: Send {
    /// How many statistics there are.
    fn count(&mut self) -> Result<usize, i32>;
    /// Their names, when asked for `count` of them.
    fn names(&mut self, count: usize) -> Result<&[u8], i32>;
    /// Their values, when asked for `count` of them.
    fn values(&mut self, count: usize) -> Result<&[u64], i32>;
    /// True if somebody changed the settings that the names follow since this was last asked.
    fn is_disturbed(&mut self) -> bool;
}

struct Answering<D>(D);

const IFINDEX: u32 = 7;

impl<D: Driver> Nic for Answering<D> {
    fn ifindex(&mut self) -> Result<u32, Errno> {
        Ok(IFINDEX)
    }

    fn count(&mut self) -> Result<usize, Errno> {
        self.0.count().map_err(Errno::from_raw_os_error)
    }

    fn names(&mut self, count: usize) -> Result<&[u8], Errno> {
        self.0.names(count).map_err(Errno::from_raw_os_error)
    }

    fn values(&mut self, count: usize) -> Result<&[u64], Errno> {
        self.0.values(count).map_err(Errno::from_raw_os_error)
    }

    fn notice(&mut self) -> Notice {
        if self.0.is_disturbed() {
            Notice::Disturbed
        } else {
            Notice::Same
        }
    }
}

/// The source of every statistic of this driver, if it can be opened.
pub fn open(driver: impl Driver) -> Option<impl Source> {
    let about = About {
        port: PortId {
            device: DeviceId::pci("0000:1a:00.0"),
            number: 1,
        },
        driver: "mlx5_core".into(),
        netdev: "rail0".into(),
        ifindex: IFINDEX,
        columns: Columns::All,
        names_age: NAMES_AGE,
    };
    Statistics::open(Answering(driver), about).ok()
}
