//! How often each source is read.

use super::duration;
use model::SourceKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A share below this would stretch the intervals of slow devices to months.
const LEAST_DUTY_PERCENT: f64 = 0.001;

/// How often each source is wanted, and how much of the node's time reading may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sampling {
    #[serde(with = "duration")]
    pub(crate) ethtool: Duration,
    #[serde(with = "duration")]
    pub(crate) hw_counters: Duration,
    #[serde(with = "duration")]
    pub(crate) device_counters: Duration,
    #[serde(with = "duration")]
    pub(crate) port_counters: Duration,
    #[serde(with = "duration")]
    pub(crate) link: Duration,
    #[serde(with = "duration")]
    pub(crate) settings: Duration,
    #[serde(with = "duration")]
    pub(crate) dcb: Duration,
    #[serde(with = "duration::or_off")]
    pub(crate) hwmon: Option<Duration>,
    #[serde(with = "duration::or_off")]
    pub(crate) aer: Option<Duration>,
    #[serde(with = "duration::or_off")]
    pub(crate) module: Option<Duration>,
    #[serde(with = "duration::or_off")]
    pub(crate) verbs: Option<Duration>,
    /// Counters of queue pairs; there are some only where an administrator has the kernel bind them.
    #[serde(with = "duration::or_off")]
    pub(crate) qp_counters: Option<Duration>,
    /// Optional RDMA counters are switched on while they are read, which writes to the devices.
    pub(crate) optional_counters: bool,
    /// How often the ports are listed again when no event asks for it.
    #[serde(with = "duration")]
    pub(crate) discovery: Duration,
    /// Share of wall time that reading one device may take, in percent.
    pub(crate) device_duty_percent: f64,
    /// Share of wall time that may be spent under the kernel's rtnl lock, for all devices together, in percent.
    pub(crate) rtnl_duty_percent: f64,
    /// The span over which rates and ratios are taken.
    #[serde(with = "duration")]
    pub(crate) window: Duration,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            ethtool: Duration::from_millis(200),
            hw_counters: Duration::from_millis(100),
            device_counters: Duration::from_secs(1),
            port_counters: Duration::from_secs(1),
            link: Duration::from_secs(1),
            settings: Duration::from_secs(30),
            dcb: Duration::from_secs(30),
            hwmon: Some(Duration::from_secs(30)),
            aer: Some(Duration::from_secs(10)),
            module: None,
            verbs: None,
            qp_counters: None,
            optional_counters: false,
            discovery: Duration::from_secs(30),
            device_duty_percent: 1.0,
            rtnl_duty_percent: 0.2,
            window: Duration::from_secs(1),
        }
    }
}

impl Sampling {
    /// The wanted interval of a source; `None` if it is off.
    pub(crate) fn interval(&self, source: SourceKind) -> Option<Duration> {
        Some(match source {
            SourceKind::Ethtool => self.ethtool,
            SourceKind::HwCounters => self.hw_counters,
            SourceKind::DeviceCounters => self.device_counters,
            SourceKind::PortCounters => self.port_counters,
            SourceKind::Link => self.link,
            SourceKind::Settings => self.settings,
            SourceKind::Dcb => self.dcb,
            SourceKind::Hwmon => return self.hwmon,
            SourceKind::Aer => return self.aer,
            SourceKind::Module => return self.module,
            SourceKind::Verbs => return self.verbs,
            SourceKind::QpCounters => return self.qp_counters,
        })
    }

    pub(super) fn problems(&self, found: &mut Vec<String>) {
        for source in SourceKind::ALL {
            let least = least_interval(source);
            if self.interval(source).is_some_and(|interval| interval < least) {
                found.push(format!("  sampling.{source}: an interval is at least {least:?}"));
            }
        }
        for (key, percent) in [
            ("device_duty_percent", self.device_duty_percent),
            ("rtnl_duty_percent", self.rtnl_duty_percent),
        ] {
            if !(LEAST_DUTY_PERCENT..=100.0).contains(&percent) {
                found.push(format!(
                    "  sampling.{key}: {percent} is not between {LEAST_DUTY_PERCENT} and 100"
                ));
            }
        }
        if self.discovery < Duration::from_secs(1) {
            found.push(
                "  sampling.discovery: listing the ports more than once a second only costs".to_owned(),
            );
        }
        if self.window < Duration::from_millis(100) {
            found.push("  sampling.window: rates need at least 100ms".to_owned());
        }
    }
}

/// The shortest interval that makes sense. A module is read over a slow bus, under a lock that all netdevs share.
fn least_interval(source: SourceKind) -> Duration {
    match source {
        SourceKind::Module => Duration::from_secs(10),
        SourceKind::Hwmon => Duration::from_secs(1),
        _ => Duration::from_millis(1),
    }
}
