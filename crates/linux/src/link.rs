//! Carrier of a netdev, and how often it came and went. Never under rtnl.
//!
//! The file `carrier` is not read: since 6.8 it takes rtnl (`carrier_show` in net/core/net-sysfs.c, commit
//! facd15dfd691), and would wait for a driver that hangs in there. `flags` and `operstate` tell the same without.

use crate::Context;
use crate::number::{NotANumber, hexadecimal};
use crate::tree::{Fault, File, Tree};
use model::{ABSENT, Opened, Port, Read, Schema, Source, SourceKind, Why};
use rustix::io::Errno;
use std::sync::Arc;

/// `IFF_UP`: the administrator wants the netdev up.
const UP: u64 = 0x1;

/// Counts that the kernel keeps beside the carrier; 4.16 and later.
const COUNTS: [&str; 2] = ["carrier_up_count", "carrier_down_count"];

/// Opens the source of a port.
pub(crate) fn open(ctx: &Context, port: &Port) -> Opened {
    let Some(netdev) = &port.netdev else {
        return Opened::NotApplicable(Why::new("no_netdev", format!("{} has no netdev", port.device)));
    };
    match Link::open(&ctx.tree, port, netdev) {
        Ok(link) => Opened::Active(Box::new(link)),
        Err(why) => Opened::Failed(why),
    }
}

/// Whether a netdev has carrier.
#[derive(Debug)]
pub(crate) struct Carrier {
    flags: File,
    operstate: File,
}

impl Carrier {
    /// Opens what tells of the carrier of `netdev`.
    ///
    /// # Errors
    /// The errno of opening its files.
    pub(crate) fn open(tree: &Tree, netdev: &str) -> Result<Self, Why> {
        let file = |name| tree.file(&format!("class/net/{netdev}/{name}"));
        Ok(Self {
            flags: file("flags")?,
            operstate: file("operstate")?,
        })
    }

    /// `None` while the netdev is administratively down, when nobody knows.
    ///
    /// # Errors
    /// Why it could not be read.
    pub(crate) fn is_up(&self) -> Result<Option<bool>, Why> {
        let flags = self
            .flags
            .parse(hexadecimal)
            .map_err(|fault| self.flags.why(fault))?;
        if flags & UP == 0 {
            return Ok(None);
        }
        self.operstate
            .parse(has_carrier)
            .map(Some)
            .map_err(|fault| self.operstate.why(fault))
    }
}

/// Carrier by the words of `operstate` (RFC 2863; `operstates` in net/core/net-sysfs.c).
fn has_carrier(content: &[u8]) -> Result<bool, NotANumber> {
    match content.trim_ascii_end() {
        // A driver that does not tell counts as up (`netif_oper_up`). A dormant one waits for 802.1X, with carrier.
        b"up" | b"unknown" | b"dormant" => Ok(true),
        b"down" | b"lowerlayerdown" | b"notpresent" | b"testing" => Ok(false),
        _ => Err(NotANumber::Text),
    }
}

struct Link {
    schema: Arc<Schema>,
    carrier: Carrier,
    counts: Vec<File>,
}

impl Link {
    fn open(tree: &Tree, port: &Port, netdev: &str) -> Result<Self, Why> {
        let carrier = Carrier::open(tree, netdev)?;
        let count = |name| Some((name, tree.file(&format!("class/net/{netdev}/{name}")).ok()?));
        let (names, counts): (Vec<_>, Vec<_>) = COUNTS.into_iter().filter_map(count).unzip();
        let names = ["carrier"].into_iter().chain(names);
        let schema = Schema::new(port.id.clone(), &port.driver, SourceKind::Link, names);
        Ok(Self {
            schema: Arc::new(schema),
            carrier,
            counts,
        })
    }
}

impl Source for Link {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        let (carrier, counts) = row
            .split_first_mut()
            .expect("a row has a cell for each column of the schema");
        *carrier = match self.carrier.is_up() {
            Ok(up) => up.map_or(ABSENT, u64::from),
            Err(why) => return Read::Missing(why),
        };
        for (cell, file) in counts.iter_mut().zip(&self.counts) {
            *cell = match file.number() {
                Ok(count) => count,
                Err(fault @ Fault::Errno(Errno::NODEV)) => return Read::Missing(file.why(fault)),
                Err(_) => ABSENT,
            };
        }
        Read::Row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_operstate_is_known() {
        for (word, carrier) in [
            ("up\n", true),
            ("unknown\n", true),
            ("dormant\n", true),
            ("down\n", false),
            ("lowerlayerdown\n", false),
            ("notpresent\n", false),
            ("testing\n", false),
        ] {
            assert_eq!(has_carrier(word.as_bytes()), Ok(carrier), "{word}");
        }
        assert_eq!(has_carrier(b""), Err(NotANumber::Text));
        assert_eq!(has_carrier(b"sideways\n"), Err(NotANumber::Text));
    }
}
