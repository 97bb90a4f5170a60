//! Temperatures of a NIC, by hwmon. Anybody may read them, and rtnl is not taken.
//!
//! What a read costs: on mlx5 (since 6.6) one firmware command for each sensor, the access register MTMP
//! (`mlx5_hwmon_read` in drivers/net/ethernet/mellanox/mlx5/core/hwmon.c); on `bnxt_en` one firmware command
//! (`bnxt_hwrm_temp_query`), on ice one admin command (`ice_hwmon_read`). So twice a minute rather than ten times a second.

use crate::Context;
use crate::number::{NotANumber, decimal};
use crate::tree::{Fault, File, Tree, read_row};
use model::{ABSENT, Opened, Port, Read, Schema, Source, SourceKind, Why};
use std::sync::Arc;

/// Opens the source of a port.
pub(crate) fn open(ctx: &Context, port: &Port) -> Opened {
    let sensors = sensors(&ctx.tree, &directory(port));
    if sensors.is_empty() {
        let detail = format!("the driver of {} registers no temperature sensor", port.device);
        return Opened::NotApplicable(Why::new("no_sensor", detail));
    }
    let (names, files): (Vec<_>, Vec<_>) = sensors.into_iter().unzip();
    let schema = Schema::new(port.id.clone(), &port.driver, SourceKind::Hwmon, names);
    Opened::Active(Box::new(Hwmon {
        schema: Arc::new(schema),
        files: files.into(),
    }))
}

/// Where the device's hwmon devices are.
fn directory(port: &Port) -> String {
    match &port.netdev {
        // A bond has no device of its own; its RDMA device has.
        Some(netdev) if !port.has_rdma() => format!("class/net/{netdev}/device/hwmon"),
        _ => format!("class/infiniband/{}/device/hwmon", port.device),
    }
}

/// Every sensor with its name: the label, or `temp1` … where the driver gives none.
fn sensors(tree: &Tree, directory: &str) -> Vec<(String, File)> {
    let mut sensors: Vec<(String, File)> = Vec::new();
    for hwmon in tree.list(directory).unwrap_or_default() {
        let directory = format!("{directory}/{}", hwmon.name);
        for number in numbers(tree, &directory) {
            let Ok(file) = tree.file(&format!("{directory}/temp{number}_input")) else {
                continue;
            };
            let label = tree.read_string(&format!("{directory}/temp{number}_label"));
            let name = label
                .ok()
                .filter(|label| !label.is_empty())
                .unwrap_or_else(|| format!("temp{number}"));
            // A second sensor of a name could not be told from the first.
            if sensors.iter().all(|(known, _)| *known != name) {
                sensors.push((name, file));
            }
        }
    }
    sensors
}

/// The numbers of the temperature sensors in a directory, ascending.
fn numbers(tree: &Tree, directory: &str) -> Vec<u32> {
    let entries = tree.list(directory).unwrap_or_default();
    let number = |name: &str| {
        name.strip_prefix("temp")?
            .strip_suffix("_input")?
            .parse::<u32>()
            .ok()
    };
    let mut numbers: Vec<_> = entries.iter().filter_map(|entry| number(&entry.name)).collect();
    numbers.sort_unstable();
    numbers
}

struct Hwmon {
    schema: Arc<Schema>,
    files: Box<[File]>,
}

impl Source for Hwmon {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        read_row(row, &self.files, |file| match file.parse(decimal) {
            // Below freezing inside a server: a sensor without a value. A row has no place for a sign.
            Err(Fault::Content(NotANumber::Negative)) => Ok(ABSENT),
            millicelsius => millicelsius,
        })
    }
}
