//! Definitions of tracks: whose counters, read where, and the names of the columns.

use crate::bytes::{Input, Malformed, put_bytes, put_count, put_varint};
use model::{DeviceId, Port, PortId, Schema, SourceKind};
use std::sync::Arc;

/// One port × one source × one set of columns. A change in any of them is another track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Whose counters.
    pub port: PortId,
    /// Where they are read.
    pub source: SourceKind,
    /// What the device was called.
    pub device: String,
    /// What its netdev was called.
    pub netdev: Option<String>,
    /// The driver, as the catalogue needs it to tell what a counter means.
    pub driver: String,
    /// One per value of a row.
    pub columns: Box<[Column]>,
}

/// One column of a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The counter's name, exactly as the driver has it.
    pub name: Arc<str>,
    /// The unit that it counts in, in the catalogue's words; empty where it does not know.
    pub unit: String,
    /// True of what only grows. The extremes of such a column are rates; those of others are readings.
    pub counts: bool,
}

/// Names a track in the archive: a hash of all that defines it, so that it is the same in every file and every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TrackId(pub(crate) u64);

impl Track {
    /// The track of a source that was opened for `port`.
    #[must_use]
    pub fn new(port: &Port, schema: &Schema) -> Self {
        let columns = schema
            .columns
            .iter()
            .map(|column| {
                let entry = column.meaning.map(|meaning| meaning.entry);
                Column {
                    name: Arc::clone(&column.name),
                    unit: entry.map_or_else(String::new, |entry| entry.unit.as_str().to_owned()),
                    counts: column.counts,
                }
            })
            .collect();
        Self {
            port: schema.port.clone(),
            source: schema.source,
            device: port.device.clone(),
            netdev: port.netdev.clone(),
            driver: port.driver.clone(),
            columns,
        }
    }

    /// The columns and what this version's catalogue knows of them.
    #[must_use]
    pub fn schema(&self) -> Schema {
        let names = self.columns.iter().map(|column| Arc::clone(&column.name));
        Schema::new(self.port.clone(), &self.driver, self.source, names)
    }

    /// Where the counter of this name stands in a row.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| &*column.name == name)
    }

    pub(crate) fn id(&self) -> TrackId {
        id_of(&self.encode())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, self.port.device.as_str().as_bytes());
        put_varint(&mut out, self.port.number.into());
        put_bytes(&mut out, self.source.as_str().as_bytes());
        put_bytes(&mut out, self.device.as_bytes());
        put_count(&mut out, usize::from(self.netdev.is_some()));
        put_bytes(&mut out, self.netdev.as_deref().unwrap_or_default().as_bytes());
        put_bytes(&mut out, self.driver.as_bytes());
        put_count(&mut out, self.columns.len());
        for column in &self.columns {
            put_bytes(&mut out, column.name.as_bytes());
            put_bytes(&mut out, column.unit.as_bytes());
            out.push(column.counts.into());
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let device = DeviceId::pci(input.text()?);
        let number =
            u32::try_from(input.varint()?).map_err(|_| Malformed("a port's number is impossible"))?;
        let source = source(input.text()?)?;
        let name = input.text()?.to_owned();
        let has_netdev = input.varint()? != 0;
        let netdev = input.text()?;
        let driver = input.text()?.to_owned();
        let count = input.count()?;
        let columns = (0..count)
            .map(|_| {
                Ok(Column {
                    name: input.text()?.into(),
                    unit: input.text()?.to_owned(),
                    counts: input.u8()? != 0,
                })
            })
            .collect::<Result<_, Malformed>>()?;
        Ok(Self {
            port: PortId { device, number },
            source,
            device: name,
            netdev: has_netdev.then(|| netdev.to_owned()),
            driver,
            columns,
        })
    }
}

/// The id of a track, from its definition.
pub(crate) fn id_of(definition: &[u8]) -> TrackId {
    TrackId(fnv1a(definition))
}

fn source(name: &str) -> Result<SourceKind, Malformed> {
    SourceKind::ALL
        .into_iter()
        .find(|source| source.as_str() == name)
        .ok_or(Malformed("a source is not known to this version"))
}

/// FNV-1a of 64 bits, <http://www.isthe.com/chongo/tech/comp/fnv/>. An archive has at most thousands of tracks, so
/// that two are taken for one with a probability of 10⁻¹³.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A track of these columns, all of which count.
    pub(crate) fn track(device: &str, source: SourceKind, names: &[&str]) -> Track {
        Track {
            port: PortId {
                device: DeviceId::pci(device),
                number: 1,
            },
            source,
            device: "mlx5_0".to_owned(),
            netdev: Some("eth0".to_owned()),
            driver: "mlx5_core".to_owned(),
            columns: names
                .iter()
                .map(|name| Column {
                    name: (*name).into(),
                    unit: "packets".to_owned(),
                    counts: true,
                })
                .collect(),
        }
    }

    #[test]
    fn a_definition_comes_back() {
        let mut track = track("0000:1a:00.0", SourceKind::HwCounters, &["a", "b"]);
        assert_eq!(Track::decode(&track.encode()), Ok(track.clone()));
        track.netdev = None;
        track.columns[1].counts = false;
        assert_eq!(Track::decode(&track.encode()), Ok(track));
    }

    #[test]
    fn whatever_changes_is_another_track() {
        let first = track("0000:1a:00.0", SourceKind::Ethtool, &["a", "b"]);
        let mut renamed = first.clone();
        renamed.device = "mlx5_1".to_owned();
        let others = [
            renamed,
            track("0000:1b:00.0", SourceKind::Ethtool, &["a", "b"]),
            track("0000:1a:00.0", SourceKind::HwCounters, &["a", "b"]),
            track("0000:1a:00.0", SourceKind::Ethtool, &["a", "c"]),
            track("0000:1a:00.0", SourceKind::Ethtool, &["ab"]),
        ];
        for other in others {
            assert_ne!(other.id(), first.id());
        }
        assert_eq!(first.clone().id(), first.id());
    }

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of the authors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_track_or_refused(bytes: Vec<u8>) {
            let _ = Track::decode(&bytes);
        }
    }
}
