//! A whole capture: facts about it, a tree of files, and readings of sources.

use crate::{Files, Node, Reading, pci_space, reading, text};
use catalog::SourceKind;
use model::Port;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The newest format, in which there may be parts of [`PCI`]. A capture without them is of the first.
const FORMAT: u32 = 2;
const FIRST_FORMAT: u32 = 1;
const ABOUT: &str = "capture.toml";
const SYS: &str = "sys.txt";
/// The folder of configuration spaces, and where the functions of its parts are in the tree.
const PCI: &str = "pci/";
const FUNCTIONS: &str = "bus/pci/devices";
/// Time between two readings of one source where the second does not tell.
const INTERVAL: Duration = Duration::from_secs(1);

/// What a node's NICs said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Where and when.
    pub about: About,
    /// Its sysfs.
    pub sys: Files,
    /// Readings by place, in the order in which they were read.
    pub readings: BTreeMap<Place, Vec<Reading>>,
}

/// Facts about a capture, `capture.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Version of the format.
    pub format: u32,
    /// What the machine is, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Release of its kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// When it was taken, as RFC 3339 has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// Version of the program that took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rocewatch: Option<String>,
    /// Addresses, GUIDs and serial numbers are pseudonyms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudonyms: Option<bool>,
    /// Milliseconds between two readings of one source where the second does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ms: Option<u64>,
}

/// Whose reading: `netdev/eth0/ethtool`, `rdma/mlx5_0/1/hw_counters`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(String);

impl Place {
    /// Where the readings of `source` of `port` are kept; `None` for a source of the netdev of a port without one.
    #[must_use]
    pub fn of(port: &Port, source: SourceKind) -> Option<Self> {
        let owner = match source {
            SourceKind::HwCounters
            | SourceKind::DeviceCounters
            | SourceKind::PortCounters
            | SourceKind::Hwmon
            | SourceKind::Aer
            | SourceKind::Verbs
            | SourceKind::QpCounters => {
                format!("rdma/{}/{}", port.device, port.id.number)
            }
            SourceKind::Ethtool
            | SourceKind::Link
            | SourceKind::Settings
            | SourceKind::Dcb
            | SourceKind::Module => {
                format!("netdev/{}", port.netdev.as_ref()?)
            }
        };
        Some(Self(format!("{owner}/{source}")))
    }

    pub(crate) fn map(&self, change: impl FnOnce(&str) -> String) -> Self {
        Self(change(&self.0))
    }
}

/// Why something is no capture.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCapture {
    /// A part is missing.
    #[error("it has no {0}, so it is no capture: make one with `rocewatch capture FILE`")]
    Missing(&'static str),
    /// `capture.toml` is wrong.
    #[error("{ABOUT}: {0}")]
    About(String),
    /// Made by a later version.
    #[error(
        "{ABOUT}: it has format {0}, and this version of rocewatch reads formats up to {FORMAT}: use a later version"
    )]
    Format(u32),
    /// A line is wrong.
    #[error("{member}: {line}")]
    Line {
        /// The part that it stands in.
        member: String,
        /// The line.
        line: crate::BadLine,
    },
    /// A part that no capture has.
    #[error("{0}: a capture has no such part")]
    Unknown(String),
}

impl Recording {
    /// The recording whose parts these are, by name.
    ///
    /// # Errors
    /// Which part is wrong, and how.
    pub fn from_members(members: &BTreeMap<String, String>) -> Result<Self, BadCapture> {
        let about = about(members.get(ABOUT).ok_or(BadCapture::Missing(ABOUT))?)?;
        let sys = members.get(SYS).ok_or(BadCapture::Missing(SYS))?;
        let at = |member: &str, line| BadCapture::Line {
            member: member.to_owned(),
            line,
        };
        let mut sys = text::parse(sys).map_err(|line| at(SYS, line))?;
        let interval = about.interval_ms.map_or(INTERVAL, Duration::from_millis);
        let mut numbered: BTreeMap<Place, BTreeMap<u32, Reading>> = BTreeMap::new();
        for (name, content) in members {
            if name == ABOUT || name == SYS {
                continue;
            }
            if let Some(address) = name.strip_prefix(PCI) {
                let place = config_of(&sys, address).ok_or_else(|| BadCapture::Unknown(name.clone()))?;
                let space = pci_space::parse(content).map_err(|line| at(name, line))?;
                sys.put(&place, Node::File(space));
                continue;
            }
            let (place, number) = place(name).ok_or_else(|| BadCapture::Unknown(name.clone()))?;
            let what = place.0.clone();
            let mut reading = reading::parse(content, &what).map_err(|line| at(name, line))?;
            reading.after.get_or_insert(interval * (number - 1));
            numbered.entry(place).or_default().insert(number, reading);
        }
        let readings = numbered
            .into_iter()
            .map(|(place, readings)| (place, readings.into_values().collect()))
            .collect();
        Ok(Self { about, sys, readings })
    }

    /// A machine of which there is only a tree of files, in the text form of `sys.txt`.
    ///
    /// # Errors
    /// The line that is wrong.
    pub fn of_text(title: &str, sys: &str) -> Result<Self, BadCapture> {
        let line = |line| BadCapture::Line {
            member: SYS.to_owned(),
            line,
        };
        Ok(Self {
            about: About {
                title: Some(title.to_owned()),
                ..About::default()
            },
            sys: text::parse(sys).map_err(line)?,
            readings: BTreeMap::new(),
        })
    }

    /// Its parts by name.
    #[must_use]
    pub fn members(&self) -> BTreeMap<String, String> {
        let mut sys = Files::new();
        let mut members = BTreeMap::new();
        for (path, node) in self.sys.ordered() {
            match (pci_space::function_of(path), node) {
                (Some(address), Node::File(space))
                    if config_of(&self.sys, address).as_deref() == Some(path) =>
                {
                    members.insert(format!("{PCI}{address}"), pci_space::print(address, space));
                }
                _ => sys.put(path, node.clone()),
            }
        }
        let about = About {
            format: if members.is_empty() { FIRST_FORMAT } else { FORMAT },
            ..self.about.clone()
        };
        members.insert(ABOUT.to_owned(), toml::to_string(&about).unwrap_or_default());
        members.insert(SYS.to_owned(), text::print(&sys));
        for (place, readings) in &self.readings {
            for (number, reading) in (1..).zip(readings) {
                members.insert(format!("{}.{number}", place.0), reading::print(reading));
            }
        }
        members
    }
}

/// Where the configuration space of the function with this address is in a tree that has the function.
fn config_of(sys: &Files, address: &str) -> Option<String> {
    let function = pci_space::is_address(address).then(|| format!("{FUNCTIONS}/{address}"))?;
    Some(format!("{}/config", sys.resolve(&function).ok()?))
}

fn about(text: &str) -> Result<About, BadCapture> {
    /// The format alone, so that a later version is named even if the rest cannot be read.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let wrong = |error: toml::de::Error| BadCapture::About(error.to_string().trim_end().to_owned());
    let Version { format } = toml::from_str(text).map_err(wrong)?;
    if !(FIRST_FORMAT..=FORMAT).contains(&format) {
        return Err(BadCapture::Format(format));
    }
    toml::from_str(text).map_err(wrong)
}

/// The place and the number, from 1, that a part's name tells.
fn place(name: &str) -> Option<(Place, u32)> {
    let (place, number) = name.rsplit_once('.')?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    let source = place.rsplit('/').next()?;
    let parts = place.split('/').count();
    let is_known = SourceKind::ALL.iter().any(|kind| kind.as_str() == source);
    let is_place = (place.starts_with("netdev/") && parts == 3) || (place.starts_with("rdma/") && parts == 4);
    (is_known && is_place).then(|| (Place(place.to_owned()), number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Answer;

    fn members(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn a_capture_is_read_and_printed() {
        let parts = members(&[
            ("capture.toml", "format = 1\ninterval_ms = 500\n"),
            ("sys.txt", "class/net/eth0/mtu = 9000\n"),
            ("netdev/eth0/ethtool.1", "NIC statistics:\n     rx: 1\n"),
            ("netdev/eth0/ethtool.2", "NIC statistics:\n     rx: 5\n"),
            (
                "rdma/mlx5_0/1/hw_counters.1",
                "# after 7 ms\nERROR: EIO it broke\n",
            ),
        ]);
        let recording = Recording::from_members(&parts).unwrap();
        let ethtool = &recording.readings[&Place("netdev/eth0/ethtool".to_owned())];
        assert_eq!(ethtool[0].after, Some(Duration::ZERO));
        assert_eq!(ethtool[1].after, Some(Duration::from_millis(500)));
        assert_eq!(ethtool[1].answer, Answer::Row(vec![("rx".to_owned(), 5)]));
        let again = Recording::from_members(&recording.members()).unwrap();
        assert_eq!(again, recording);
    }

    #[test]
    fn a_configuration_space_is_a_part_and_a_file_of_the_tree() {
        let function = "devices/pci0000:00/0000:1a:00.0";
        let sys =
            format!("bus/pci/devices/0000:1a:00.0 -> ../../../{function}\n{function}/class = 0x020000\n");
        let space = "0000:1a:00.0 configuration space\n00: b3 15 21 10\n";
        let parts = members(&[
            ("capture.toml", "format = 2\n"),
            ("sys.txt", &sys),
            ("pci/0000:1a:00.0", space),
        ]);
        let recording = Recording::from_members(&parts).unwrap();
        let read = recording.sys.read("bus/pci/devices/0000:1a:00.0/config");
        assert_eq!(read, Ok(&[0xb3, 0x15, 0x21, 0x10][..]));
        assert_eq!(recording.members(), parts);
        // Without it the capture is one that earlier versions read.
        let mut without = parts.clone();
        without.remove("pci/0000:1a:00.0");
        let without = Recording::from_members(&without).unwrap().members();
        assert_eq!(without["capture.toml"], "format = 1\n");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |list: &[(&str, &str)]| Recording::from_members(&members(list)).unwrap_err().to_string();
        let whole = [("capture.toml", "format = 1\n"), ("sys.txt", "")];
        assert!(wrong(&[]).contains("capture.toml"));
        assert!(wrong(&[("capture.toml", "format = 3\nnew = 1\n")]).contains("format 3"));
        assert!(wrong(&[("capture.toml", "format = 1\nkernle = \"6\"\n"), whole[1]]).contains("kernle"));
        assert!(wrong(&[whole[0], ("sys.txt", "x\n")]).contains("sys.txt: line 1"));
        let odd = wrong(&[whole[0], whole[1], ("netdev/eth0/ethtol.1", "")]);
        assert!(odd.contains("netdev/eth0/ethtol.1"));
        let nowhere = wrong(&[whole[0], whole[1], ("pci/0000:1a:00.0", "")]);
        assert!(nowhere.contains("pci/0000:1a:00.0"), "{nowhere}");
        let line = wrong(&[whole[0], whole[1], ("netdev/eth0/ethtool.1", "x\n")]);
        assert!(line.contains("netdev/eth0/ethtool.1: line 1"), "{line}");
    }
}
