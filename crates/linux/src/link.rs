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
        let up = self
            .operstate
            .parse(has_carrier)
            .map_err(|fault| self.operstate.why(fault))?;
        // A netdev that the administrator has taken down is never told to be up (`operstate_show` in net/core/net-sysfs.c).
        if up {
            return Ok(Some(true));
        }
        let flags = self
            .flags
            .parse(hexadecimal)
            .map_err(|fault| self.flags.why(fault))?;
        Ok((flags & UP != 0).then_some(false))
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
    counts: Counts,
}

/// How often the carrier came and went.
struct Counts {
    files: Vec<File>,
    /// Their sum, as the kernel tells it (`carrier_changes_show` in net/core/net-sysfs.c). Neither ever falls, so while this
    /// is the same both are, and one file says so.
    changes: Option<File>,
    /// What it was before they were read the last time, if all could be.
    seen: Option<u64>,
    read: Vec<u64>,
}

impl Counts {
    /// What each of them is now.
    ///
    /// # Errors
    /// The netdev is gone.
    fn read(&mut self) -> Result<&[u64], Why> {
        let changes = self.changes.as_ref().and_then(|file| file.number().ok());
        if changes.is_some() && changes == self.seen {
            return Ok(&self.read);
        }
        self.seen = None;
        for (cell, file) in self.read.iter_mut().zip(&self.files) {
            *cell = match file.number() {
                Ok(count) => count,
                Err(fault @ Fault::Errno(Errno::NODEV)) => return Err(file.why(fault)),
                Err(_) => ABSENT,
            };
        }
        self.seen = changes.filter(|_| !self.read.contains(&ABSENT));
        Ok(&self.read)
    }
}

impl Link {
    fn open(tree: &Tree, port: &Port, netdev: &str) -> Result<Self, Why> {
        let carrier = Carrier::open(tree, netdev)?;
        let file = |name| tree.file(&format!("class/net/{netdev}/{name}")).ok();
        let count = |name| Some((name, file(name)?));
        let (names, files): (Vec<_>, Vec<_>) = COUNTS.into_iter().filter_map(count).unzip();
        let counts = Counts {
            read: vec![ABSENT; files.len()],
            files,
            changes: file("carrier_changes"),
            seen: None,
        };
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
        match self.counts.read() {
            Ok(read) => counts.copy_from_slice(read),
            Err(why) => return Read::Missing(why),
        }
        Read::Row
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // tests write the files
mod tests {
    use super::*;
    use crate::netns;
    use std::fs;

    #[test]
    fn counts_are_read_when_their_sum_has_changed() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("class/net/rail0");
        fs::create_dir_all(&folder).unwrap();
        let put = |name, content| fs::write(folder.join(name), content).unwrap();
        put("flags", "0x1003\n");
        put("operstate", "up\n");
        put("carrier_changes", "3\n");
        put("carrier_up_count", "2\n");
        put("carrier_down_count", "?\n");
        let ctx = netns::context(tree.path(), false);
        let Opened::Active(mut source) = open(&ctx, &netns::any_port("rail0")) else {
            panic!("all its files are there")
        };
        let mut read = || {
            let mut row = [7; 3];
            assert_eq!(source.read(&mut row), Read::Row);
            row
        };
        assert_eq!(read(), [1, 2, ABSENT]);
        put("carrier_down_count", "1\n");
        assert_eq!(read(), [1, 2, 1], "what could not be read is tried again");
        put("carrier_up_count", "9\n");
        assert_eq!(read(), [1, 2, 1]);
        put("carrier_up_count", "2\n");
        put("carrier_down_count", "2\n");
        put("carrier_changes", "4\n");
        put("operstate", "down\n");
        assert_eq!(read(), [0, 2, 2]);
        put("flags", "0x1002\n");
        assert_eq!(read(), [ABSENT, 2, 2]);
        put("carrier_changes", "?\n");
        put("carrier_up_count", "5\n");
        assert_eq!(read(), [ABSENT, 5, 2], "without a sum they are always read");
    }

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
