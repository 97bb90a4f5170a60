//! The two traits between the agent and what it watches.

use crate::{Port, QueuePairs, Schema, Setup, SourceKind};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What is watched: the kernel, the simulated server, a capture.
pub trait Host: Send + Sync {
    /// Every port there is now, RDMA or Ethernet alone, in a stable order. Never waits for firmware or rtnl.
    ///
    /// # Errors
    /// A sentence that tells the operator what could not be listed and what to do.
    fn ports(&self) -> Result<Vec<Port>, String>;

    /// The same without the devices of which one of the names that are known without opening anything (RDMA device,
    /// netdev, PCI address) is excluded: nothing of theirs is opened. Others of that kind may be left for the caller.
    ///
    /// # Errors
    /// As for [`Host::ports`].
    fn ports_but(&self, excluded: &dyn Fn(&str) -> bool) -> Result<Vec<Port>, String> {
        let mut ports = self.ports()?;
        ports.retain(|port| !excluded(&port.device));
        Ok(ports)
    }

    /// Opens a source of a port. May block for as long as the firmware likes, so it is called on the source's lane.
    fn open(&self, port: &Port, source: SourceKind) -> Opened;

    /// How the node and these ports are set up, as far as rows do not tell it. May wait for rtnl, and changes nothing.
    fn setup(&self, ports: &[Port]) -> Setup {
        let _ = ports;
        Setup::default()
    }

    /// Who holds queue pairs of the device of this port. Asks the driver once for each of them, so it may block for as long as
    /// the firmware likes.
    ///
    /// # Errors
    /// Why nobody can tell.
    fn queue_pairs(&self, port: &Port) -> Result<QueuePairs, Why> {
        let detail = format!(
            "who holds the queue pairs of {} is known of a running kernel only",
            port.device
        );
        Err(Why::new("not_on_this_host", detail))
    }

    /// How many queue pairs the device of this port has, used or not, of all its ports and of every owner; `None` if nobody can
    /// tell. Never asks the driver, so that it may be asked every second.
    fn queue_pair_count(&self, port: &Port) -> Option<u64> {
        let _ = port;
        None
    }

    /// What changes on the host from now on.
    ///
    /// # Errors
    /// Why changes cannot be followed; the agent then looks by interval alone.
    fn changes(&self) -> Result<Box<dyn Changes>, Why>;
}

/// The three states of a source.
pub enum Opened {
    /// It can be read.
    Active(Box<dyn Source>),
    /// This device, driver, kernel or tree does not have it.
    NotApplicable(Why),
    /// It should be there but does not work; worth another try later.
    Failed(Why),
}

/// One port × one way of asking.
pub trait Source: Send {
    /// The columns of its rows.
    fn schema(&self) -> &Arc<Schema>;

    /// Reads all columns into `row`, which has as many cells as the schema has columns. May block for as long as the
    /// firmware likes. Allocates nothing when it returns [`Read::Row`].
    fn read(&mut self, row: &mut [u64]) -> Read;
}

/// What a read gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Every cell is a value or [`crate::ABSENT`].
    Row,
    /// The counters are no longer those of the schema; `schema()` has the new ones. The row must be discarded.
    SchemaChanged,
    /// Nothing could be read this time.
    Missing(Why),
}

/// Why something is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// A short word for labels: an errno's name (`EIO`), or `short_read`, `not_a_number`, `not_on_this_tree` ….
    pub reason: &'static str,
    /// A sentence for people, with the file or request that it happened at.
    pub detail: String,
}

impl Why {
    /// Puts the two together.
    pub fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.reason)
    }
}

/// A stream of changes.
pub trait Changes: Send {
    /// Waits until something changes or `timeout` has passed, and adds what changed to `found`.
    ///
    /// # Errors
    /// Why the stream ended for good.
    fn wait(&mut self, timeout: Duration, found: &mut Vec<Change>) -> Result<(), Why>;
}

/// Something on the host is no longer what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A device or netdev came, went, was renamed or moved: list the ports again.
    Devices,
    /// A netdev's link changed: read its `link` and `settings`.
    Link {
        /// The netdev.
        ifindex: u32,
    },
    /// A netdev's DCB configuration changed: read its `dcb`, and its counters' names.
    Dcb {
        /// The netdev.
        ifindex: u32,
    },
    /// The kernel had more to say than its buffer holds: look at everything again.
    Overflow,
}
