//! The files under `data/`, as they stand.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriverFile {
    pub(crate) driver: Driver,
    #[serde(default)]
    pub(crate) counter: Vec<Counter>,
    #[serde(default)]
    pub(crate) fact: Vec<Fact>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Driver {
    pub(crate) name: String,
    pub(crate) bound_as: Vec<String>,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) refresh_ms: u32,
    #[serde(default)]
    pub(crate) notes: String,
}

// The flags are independent of each other, and this is how a data file spells them.
#[allow(clippy::struct_excessive_bools)]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counter {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) signal: String,
    pub(crate) per: String,
    #[serde(default)]
    pub(crate) direction: String,
    pub(crate) unit: String,
    pub(crate) kind: String,
    #[serde(default = "full_width")]
    pub(crate) width: u8,
    /// The driver extends the hardware's `width` bits to 64 by itself.
    #[serde(default)]
    pub(crate) extended: bool,
    #[serde(default)]
    pub(crate) saturates: bool,
    #[serde(default)]
    pub(crate) all_ones_is_missing: bool,
    #[serde(default)]
    pub(crate) optional: bool,
    #[serde(default)]
    pub(crate) without_firmware: bool,
    #[serde(default)]
    pub(crate) port_alone: bool,
    #[serde(default)]
    pub(crate) rank: u8,
    #[serde(default)]
    pub(crate) summed: bool,
    #[serde(default)]
    pub(crate) reset: String,
    pub(crate) meaning: String,
    #[serde(default)]
    pub(crate) notes: String,
    #[serde(default)]
    pub(crate) since: String,
    #[serde(default)]
    pub(crate) privilege: String,
    pub(crate) cite: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) meaning: String,
    #[serde(default)]
    pub(crate) notes: String,
    pub(crate) cite: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsFile {
    pub(crate) family: Vec<Family>,
    pub(crate) unexposed: Vec<Unexposed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unexposed {
    pub(crate) reason: String,
    pub(crate) signals: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default = "counters")]
    pub(crate) origin: String,
    #[serde(default = "live")]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) essential: bool,
    pub(crate) help: String,
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    #[serde(default)]
    pub(crate) from: Vec<From>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct From {
    pub(crate) signal: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

fn full_width() -> u8 {
    64
}

fn counters() -> String {
    "counters".to_owned()
}

fn live() -> String {
    "live".to_owned()
}

/// All driver files in name order, which is also the order of every generated table and document.
pub(crate) fn driver_files(data: &Path) -> Vec<(String, DriverFile)> {
    let mut files: Vec<_> = std::fs::read_dir(data)
        .expect("data/ is readable")
        .map(|entry| entry.expect("data/ is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml") && !path.ends_with("metrics.toml"))
        .map(|path| {
            (
                path.file_name().expect("a file").to_string_lossy().into_owned(),
                parse(&path),
            )
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
