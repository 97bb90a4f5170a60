//! Whose NICs the server has, and what their drivers do and do not tell.

use crate::counted::FCS;
use crate::name::{UnknownName, find};
use catalog::{Driver, Entry, Signal, SourceKind};
use std::fmt;
use std::str::FromStr;

/// Make of the NICs of a simulated server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nic {
    /// NVIDIA `ConnectX`: `mlx5_core` and `mlx5_ib`.
    #[default]
    Mlx5,
    /// Broadcom Thor: `bnxt_en` and `bnxt_re`.
    Bnxt,
    /// Intel 800 series: `ice` and `irdma`.
    Irdma,
    /// AMD Pensando Pollara: `ionic` and `ionic_rdma`.
    Ionic,
}

/// What a make says of itself.
pub(crate) struct Make {
    /// The driver as the `device/driver` link names it.
    pub(crate) driver: &'static str,
    /// The catalogue's vocabularies of it. `bnxt_en` has a second one for RDMA, which no NIC has together with the first.
    vocabularies: [&'static str; 2],
    /// RDMA device names, in front of the number.
    pub(crate) device: &'static str,
    /// Firmware version. The word in brackets reaches every place that shows a port.
    pub(crate) firmware: &'static str,
    pub(crate) board: Option<&'static str>,
    /// PCI vendor.
    pub(crate) vendor: &'static str,
    /// Kernel of the server: release, major and minor.
    kernel: (u32, u32),
    /// What the byte counters of RDMA leave out of each frame: FCS, and for irdma, which counts from the IP header on,
    /// the Ethernet header of 14 bytes.
    pub(crate) uncounted: f64,
}

impl Nic {
    /// Every make.
    pub const ALL: [Self; 4] = [Self::Mlx5, Self::Bnxt, Self::Irdma, Self::Ionic];

    /// The name that the command line takes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mlx5 => "mlx5",
            Self::Bnxt => "bnxt",
            Self::Irdma => "irdma",
            Self::Ionic => "ionic",
        }
    }

    /// Release of the kernel whose drivers the server has: 6.12, and 6.18 for `ionic_rdma`, which began there.
    #[must_use]
    pub fn kernel(self) -> String {
        let (major, minor) = self.make().kernel;
        format!("{major}.{minor}.0")
    }

    pub(crate) fn make(self) -> Make {
        match self {
            Self::Mlx5 => Make {
                driver: "mlx5_core",
                vocabularies: ["mlx5_core", "mlx5_ib"],
                device: "mlx5_",
                firmware: "28.39.1002 (simulated)",
                board: Some("MT_0000000838"),
                vendor: "0x15b3",
                kernel: (6, 12),
                uncounted: FCS,
            },
            Self::Bnxt => Make {
                driver: "bnxt_en",
                vocabularies: ["bnxt_en", "bnxt_re"],
                device: "bnxt_re",
                firmware: "231.0.162.0 (simulated)",
                board: None,
                vendor: "0x14e4",
                kernel: (6, 12),
                uncounted: FCS,
            },
            Self::Irdma => Make {
                driver: "ice",
                vocabularies: ["ice", "irdma"],
                device: "irdma",
                firmware: "1.71 (simulated)",
                board: None,
                vendor: "0x8086",
                kernel: (6, 12),
                uncounted: FCS + 14.0,
            },
            Self::Ionic => Make {
                driver: "ionic",
                vocabularies: ["ionic", "ionic_rdma"],
                device: "ionic_",
                firmware: "1.110.0-a-79 (simulated)",
                board: None,
                vendor: "0x1dd8",
                kernel: (6, 18),
                uncounted: FCS,
            },
        }
    }

    /// The catalogue's files for the driver, and the kernel's own after them: what a driver says otherwise comes first.
    pub(crate) fn files(self) -> impl Iterator<Item = &'static Driver> {
        self.make()
            .vocabularies
            .into_iter()
            .chain(["*"])
            .filter_map(|name| catalog::DRIVERS.iter().find(|file| file.name == name))
    }

    /// How often the driver looks at its hardware, in milliseconds; 0 if at every read.
    pub(crate) fn refresh_ms(self) -> u32 {
        self.files().map(|file| file.refresh_ms).max().unwrap_or(0)
    }

    /// Whether the server's kernel has the counter.
    pub(crate) fn is_released(self, entry: &Entry) -> bool {
        release(entry.since).is_none_or(|since| since <= self.make().kernel)
    }

    /// Whether the driver does not answer one of the kernel's own questions: `get_fec_stats`, `get_link_ext_stats`,
    /// `get_pause_stats`, the tunable of PFC storm prevention and `dcbnl_ops` of the drivers in `drivers/net/ethernet/`.
    pub(crate) fn lacks(self, source: SourceKind, signal: Signal) -> bool {
        let of_mlx5 = signal == Signal::PfcStormPrevention;
        match (self, source) {
            (Self::Bnxt, SourceKind::Settings) => of_mlx5,
            (Self::Irdma, SourceKind::Settings) => {
                of_mlx5 || matches!(signal, Signal::FecCorrectedBits | Signal::LinkDownEvents)
            }
            (Self::Ionic, SourceKind::Settings) => {
                let counts = matches!(
                    signal,
                    Signal::FecCorrectedBits
                        | Signal::FecCorrectedBlocks
                        | Signal::FecUncorrectableBlocks
                        | Signal::PauseRxFrames
                        | Signal::PauseTxFrames
                );
                of_mlx5 || counts
            }
            (Self::Ionic, SourceKind::Dcb) => true,
            _ => false,
        }
    }
}

/// The kernel release that a text begins with.
fn release(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((major.parse().ok()?, rest[..digits].parse().ok()?))
}

impl fmt::Display for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Nic {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find("NIC", &Self::ALL, Self::as_str, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for nic in Nic::ALL {
            assert_eq!(nic.as_str().parse(), Ok(nic));
        }
        let error = "mlx".parse::<Nic>().unwrap_err().to_string();
        assert_eq!(
            error,
            "no NIC \"mlx\"; did you mean \"mlx5\"? There are: mlx5, bnxt, irdma, ionic"
        );
    }

    #[test]
    fn the_catalogue_has_every_vocabulary() {
        for nic in Nic::ALL {
            assert_eq!(nic.files().count(), 3, "{nic}");
            assert!(
                nic.files()
                    .take(2)
                    .all(|file| file.bound_as.contains(&nic.make().driver))
            );
        }
    }

    #[test]
    fn a_driver_looks_at_every_read_or_once_a_second() {
        assert_eq!(Nic::ALL.map(Nic::refresh_ms), [0, 1000, 0, 0]);
    }

    #[test]
    fn a_release_is_what_the_text_begins_with() {
        assert_eq!(release("6.18, GEN3 hardware"), Some((6, 18)));
        assert_eq!(release("4.16"), Some((4, 16)));
        assert_eq!(release("after 6.1, present in 6.12"), None);
        assert_eq!(release(""), None);
    }
}
