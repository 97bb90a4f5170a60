//! The configuration file: what it may say, and what holds without it.
//!
//! Keys are strict. An unknown key is an error that names the line and the nearest known key, since a typing error in
//! a limit must never switch monitoring off quietly.

mod check;
mod duration;
mod events;
mod pattern;
mod policy;
mod push;
mod url;

pub(crate) use check::suggestion;
pub(crate) use events::Events;
pub(crate) use pattern::Pattern;
pub(crate) use policy::Policy;
pub(crate) use push::{Access, Label, Notify, RemoteWrite};
pub(crate) use url::Url;

use crate::failure::Failure;
use crate::files;
use catalog::{Family, Origin};
use model::SourceKind;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Loopback, since the numbers tell about the cluster; and a port that no exporter has: 9100 to 9999 of the public
/// list are all taken, and 14791 ends in 4791, the UDP port of `RoCEv2`.
pub(crate) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 14791);

/// A share below this would stretch the intervals of slow devices to months.
const LEAST_DUTY_PERCENT: f64 = 0.001;

/// Everything that can be configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Address of `/metrics` and the API.
    pub(crate) listen: SocketAddr,
    /// The daemon locks itself in, as far as the kernel's Landlock goes.
    pub(crate) sandbox: bool,
    pub(crate) devices: Devices,
    pub(crate) sampling: Sampling,
    pub(crate) rings: Rings,
    pub(crate) archive: Archive,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
    pub(crate) http: Http,
    pub(crate) notify: Notify,
    pub(crate) remote_write: RemoteWrite,
    pub(crate) log: Log,
    pub(crate) policy: Policy,
}

/// Which devices are watched. A device that is left out is never opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Devices {
    /// Only these, by RDMA device, netdev or PCI address; `*` stands for any run of characters. Empty: all.
    pub(crate) include: Vec<Pattern>,
    /// Never these.
    pub(crate) exclude: Vec<Pattern>,
}

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

/// How much is remembered in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rings {
    /// How far back each ring reaches at the wanted interval.
    #[serde(with = "duration")]
    pub(crate) span: Duration,
    /// No ring is larger than this.
    pub(crate) max_kib_per_track: u32,
}

/// How much is kept on disk, where there is a directory to keep it in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Archive {
    /// Recorded time that is kept; hours in which nothing was recorded do not count.
    #[serde(with = "duration")]
    pub(crate) keep: Duration,
    /// No more than this on disk.
    pub(crate) max_mib: u32,
    /// The same for the full-rate rows of incidents, which are kept beside it.
    pub(crate) incidents_max_mib: u32,
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(7 * 24 * 60 * 60),
            max_mib: 2048,
            incidents_max_mib: 512,
        }
    }
}

/// What `/metrics` shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metrics {
    /// How much of it.
    pub(crate) profile: Profile,
    /// Which counters go out under the driver's own names as well. For `all`, those of a driver's statistics that the
    /// catalogue does not know are read too, from the next start on.
    pub(crate) raw: Raw,
    /// No more than this many series; what is left out is counted.
    pub(crate) max_series: u32,
}

/// How much `/metrics` shows: `docs/scale.md` tells what each costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Profile {
    /// What alerts and the view of a whole fabric need.
    Minimal,
    /// Every metric, and the known counters that none of them shows.
    Standard,
    /// Every metric, and every counter that the drivers have.
    Full,
}

/// Choice of raw counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Raw {
    /// As it is with the profile.
    Profile,
    /// None.
    None,
    /// Those that the catalogue knows and that no other metric shows.
    Unexposed,
    /// All that are sampled.
    All,
}

/// Limits of the HTTP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Http {
    /// Connections at once; a further one waits.
    pub(crate) max_connections: u32,
    /// How long a client may take for its request's head, and how long an idle connection is kept.
    #[serde(with = "duration")]
    pub(crate) header_timeout: Duration,
    /// How long an answer may take.
    #[serde(with = "duration")]
    pub(crate) request_timeout: Duration,
    /// TLS and passwords, in the format of exporter-toolkit. Empty: neither.
    pub(crate) web_config: PathBuf,
}

impl Http {
    /// The file with TLS and passwords, if there is to be one.
    pub(crate) fn web_config(&self) -> Option<&Path> {
        (!self.web_config.as_os_str().is_empty()).then_some(&self.web_config)
    }
}

/// What is logged and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) level: Level,
    pub(crate) format: Format,
}

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// Text on a terminal, journald's own protocol under systemd, JSON otherwise.
    Auto,
    Text,
    Journald,
    Json,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: DEFAULT_LISTEN,
            sandbox: true,
            devices: Devices::default(),
            sampling: Sampling::default(),
            archive: Archive::default(),
            events: Events::default(),
            rings: Rings::default(),
            metrics: Metrics::default(),
            http: Http::default(),
            notify: Notify::default(),
            remote_write: RemoteWrite::default(),
            log: Log::default(),
            policy: Policy::default(),
        }
    }
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

impl Default for Rings {
    fn default() -> Self {
        Self {
            span: Duration::from_secs(120),
            max_kib_per_track: 512,
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            profile: Profile::Standard,
            raw: Raw::Profile,
            max_series: 20_000,
        }
    }
}

impl Metrics {
    /// True if this family goes out. Which series one of raw counters has is asked for each of them.
    pub(crate) fn shows(&self, family: &Family) -> bool {
        family.essential || family.origin == Origin::Raw || self.profile != Profile::Minimal
    }

    /// True if a counter goes out under the driver's own name. `otherwise` says whether a metric shows it already, and is absent
    /// for a counter that the catalogue does not know.
    pub(crate) fn shows_raw(&self, otherwise: Option<bool>) -> bool {
        match (self.raw, self.profile) {
            (Raw::None, _) | (Raw::Profile, Profile::Minimal) => false,
            (Raw::Unexposed, _) | (Raw::Profile, Profile::Standard) => otherwise == Some(false),
            (Raw::All, _) | (Raw::Profile, Profile::Full) => true,
        }
    }

    /// True if counters that the catalogue does not know go out, and so have to be read.
    pub(crate) fn shows_unknown(&self) -> bool {
        self.shows_raw(None)
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            max_connections: 64,
            header_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(10),
            web_config: PathBuf::new(),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: Level::Info,
            format: Format::Auto,
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
            SourceKind::Module => return self.module,
            SourceKind::Verbs => return self.verbs,
            SourceKind::QpCounters => return self.qp_counters,
        })
    }
}

impl Devices {
    /// True if a device that is known under these names is to be watched.
    pub(crate) fn watches(&self, names: &[&str]) -> bool {
        let matches =
            |patterns: &[Pattern]| patterns.iter().any(|p| names.iter().any(|name| p.matches(name)));
        (self.include.is_empty() || matches(&self.include)) && !matches(&self.exclude)
    }

    /// True if a device of this name is never to be watched.
    pub(crate) fn excludes(&self, name: &str) -> bool {
        self.exclude.iter().any(|pattern| pattern.matches(name))
    }
}

impl Config {
    /// Reads a configuration file, or gives the defaults where there is none.
    ///
    /// # Errors
    /// Names the file, the line and what to do.
    pub(crate) fn load(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let text = files::read_text(path).map_err(|error| {
            Failure::Usage(format!(
                "cannot read the configuration {}: {error}; check the path and its permissions",
                path.display()
            ))
        })?;
        Self::parse(&text).map_err(|problems| {
            Failure::Usage(format!(
                "the configuration {} is not usable\n{problems}",
                path.display()
            ))
        })
    }

    /// Parses a configuration's text; an error holds every problem, one a line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let unknown = check::unknown_keys(text)?;
        if !unknown.is_empty() {
            return Err(unknown.join("\n"));
        }
        let config: Self = toml::from_str(text).map_err(|error| check::with_line(text, &error))?;
        config.validate()?;
        Ok(config)
    }

    /// What the fabric is meant to be.
    pub(crate) fn policy(&self) -> doctor::Policy {
        self.policy.with(&self.events.lossless, self.events.expect_ecn)
    }

    fn validate(&self) -> Result<(), String> {
        let mut problems = Vec::new();
        for source in SourceKind::ALL {
            let least = least_interval(source);
            if self
                .sampling
                .interval(source)
                .is_some_and(|interval| interval < least)
            {
                problems.push(format!("  sampling.{source}: an interval is at least {least:?}"));
            }
        }
        for (key, percent) in [
            ("device_duty_percent", self.sampling.device_duty_percent),
            ("rtnl_duty_percent", self.sampling.rtnl_duty_percent),
        ] {
            if !(LEAST_DUTY_PERCENT..=100.0).contains(&percent) {
                problems.push(format!(
                    "  sampling.{key}: {percent} is not between {LEAST_DUTY_PERCENT} and 100"
                ));
            }
        }
        if self.sampling.discovery < Duration::from_secs(1) {
            problems.push(
                "  sampling.discovery: listing the ports more than once a second only costs".to_owned(),
            );
        }
        if self.sampling.window < Duration::from_millis(100) {
            problems.push("  sampling.window: rates need at least 100ms".to_owned());
        }
        if self.rings.span < Duration::from_secs(1) || self.rings.max_kib_per_track == 0 {
            problems.push("  rings: a ring has to hold at least a second and a KiB".to_owned());
        }
        self.notify.problems(&mut problems);
        self.remote_write.problems(&mut problems);
        if self.http.max_connections == 0 {
            problems.push("  http.max_connections: with 0 nobody could scrape".to_owned());
        }
        self.events.problems(&mut problems);
        self.policy.problems(&mut problems);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("\n"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        Config::parse(text).expect_err("this configuration is wrong")
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Config::parse(""), Ok(Config::default()));
    }

    /// What packages install as `/etc/rocewatch/rocewatch.toml`.
    const PACKAGED: &str = include_str!("../../../../packaging/rocewatch.toml");

    /// Names of all keys that hold a value, as in `sampling.ethtool`.
    fn keys(table: &toml::Table, path: &str, found: &mut Vec<String>) {
        for (key, value) in table {
            match value {
                toml::Value::Table(inner) => keys(inner, &format!("{path}{key}."), found),
                _ => found.push(format!("{path}{key}")),
            }
        }
    }

    #[test]
    fn the_packaged_file_has_every_key_with_its_default_and_its_meaning() {
        assert_eq!(Config::parse(PACKAGED), Ok(Config::default()));

        let is_key = |line: &str| line.starts_with(|first: char| first.is_ascii_lowercase());
        let spelt_out: Vec<_> = PACKAGED
            .lines()
            .map(|line| line.strip_prefix('#').filter(|rest| is_key(rest)).unwrap_or(line))
            .collect();
        let text = spelt_out.join("\n");
        assert_eq!(Config::parse(&text), Ok(Config::default()));

        let (mut given, mut known) = (Vec::new(), Vec::new());
        keys(&text.parse().unwrap(), "", &mut given);
        keys(&toml::Table::try_from(Config::default()).unwrap(), "", &mut known);
        assert_eq!(given, known, "packaging/rocewatch.toml lists each key once");

        for pair in spelt_out.windows(2).filter(|pair| is_key(pair[1])) {
            // Keys in one block share the words above them.
            let told = pair[0].starts_with("# ") || is_key(pair[0]);
            assert!(told, "no word on {}", pair[1]);
        }
    }

    #[test]
    fn values_are_taken_and_the_rest_stays() {
        let config =
            Config::parse("listen = \"0.0.0.0:9999\"\n[sampling]\nhw_counters = \"50ms\"\n").unwrap();
        assert_eq!(config.listen, "0.0.0.0:9999".parse().unwrap());
        assert_eq!(config.sampling.hw_counters, Duration::from_millis(50));
        assert_eq!(config.sampling.ethtool, Duration::from_millis(200));
    }

    #[test]
    fn a_source_can_be_switched_on_and_off() {
        let config = Config::parse("[sampling]\nhwmon = \"off\"\nmodule = \"5m\"\nverbs = \"1s\"\n").unwrap();
        let interval = |source| config.sampling.interval(source);
        assert_eq!(interval(SourceKind::Hwmon), None);
        assert_eq!(interval(SourceKind::Module), Some(Duration::from_secs(300)));
        assert_eq!(interval(SourceKind::Verbs), Some(Duration::from_secs(1)));
        let text = toml::to_string(&config).unwrap();
        assert_eq!(Config::parse(&text), Ok(config));
    }

    #[test]
    fn every_unknown_key_is_named_with_its_line_and_the_nearest() {
        let text =
            problems("lisen = \"127.0.0.1:1\"\n\n[sampling]\nhw_counter = \"1s\"\n[sampeling]\nx = 1\n");
        assert!(
            text.contains("line 1: unknown key `lisen`; did you mean `listen`?"),
            "{text}"
        );
        assert!(
            text.contains("line 4: unknown key `sampling.hw_counter`; did you mean `hw_counters`?"),
            "{text}"
        );
        assert!(
            text.contains("line 5: unknown key `sampeling`; did you mean `sampling`?"),
            "{text}"
        );
    }

    #[test]
    fn a_key_with_a_line_end_is_still_one_line() {
        let text = problems("\"a\\n  b\" = 1\n");
        assert!(
            text.starts_with("  line 1: unknown key `a\\n  b`; known here"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn a_key_like_none_lists_what_there_is() {
        let text = problems("[http]\nzzzzzz = 1\n");
        assert!(
            text.contains(
                "known here are `header_timeout`, `max_connections`, `request_timeout`, `web_config`"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_value_of_the_wrong_kind_names_its_line() {
        let text = problems("\n\nlisten = 7\n");
        assert!(text.contains("line 3:"), "{text}");
        let text = problems("[sampling]\nethtool = \"fast\"\n");
        assert!(
            text.contains("line 2:") && text.contains("\"fast\" is not a duration"),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_is_not_toml_names_its_line() {
        assert!(problems("a = 1\nb = [\n").contains("line 2"));
    }

    #[test]
    fn limits_that_make_no_sense_are_refused() {
        assert!(problems("[sampling]\nrtnl_duty_percent = 0.0\n").contains("sampling.rtnl_duty_percent: 0"));
        assert!(
            problems("[sampling]\nethtool = \"0s\"\n")
                .contains("sampling.ethtool: an interval is at least 1ms")
        );
        assert!(problems("[http]\nmax_connections = 0\n").contains("http.max_connections"));
        assert!(
            problems("[sampling]\nmodule = \"1s\"\n")
                .contains("sampling.module: an interval is at least 10s")
        );
    }

    #[test]
    fn what_would_overflow_the_clock_is_refused() {
        let text = problems("[http]\nheader_timeout = \"18446744073709551615s\"\n");
        assert!(
            text.contains("line 2:") && text.contains("is longer than 30days"),
            "{text}"
        );
        assert!(Config::parse("[sampling]\ndiscovery = \"30days\"\n").is_ok());
        assert!(problems("[sampling]\ndiscovery = \"30days 1ns\"\n").contains("longer than 30days"));
        let text = problems("[sampling]\ndevice_duty_percent = 1e-300\n");
        assert!(text.contains("is not between 0.001 and 100"), "{text}");
    }

    #[test]
    fn the_readme_shows_every_key_with_its_default() {
        let readme = include_str!("../../../../README.md");
        let block = readme
            .split_once("All keys, with their defaults:\n")
            .expect("the README has the block")
            .1;
        let block = block.split_once("\n## ").expect("a heading follows").0;
        assert_eq!(Config::parse(block), Ok(Config::default()));
        let keys = |table: &toml::Table| {
            let nested = table
                .values()
                .filter_map(toml::Value::as_table)
                .map(toml::Table::len)
                .sum::<usize>();
            table.len() + nested
        };
        let shown: toml::Table = block.parse().expect("it is TOML");
        let all = toml::Table::try_from(Config::default()).expect("the configuration is a table");
        assert_eq!(keys(&shown), keys(&all), "a key is missing in the README");
    }

    #[test]
    fn a_profile_decides_what_is_shown_and_raw_has_the_last_word() {
        let metrics = |text: &str| Config::parse(&format!("[metrics]\n{text}\n")).unwrap().metrics;
        let raw = |text: &str| {
            let metrics = metrics(text);
            [Some(true), Some(false), None].map(|otherwise| metrics.shows_raw(otherwise))
        };
        assert_eq!(raw("profile = \"minimal\""), [false, false, false]);
        assert_eq!(raw(""), [false, true, false]);
        assert_eq!(raw("profile = \"full\""), [true, true, true]);
        assert_eq!(raw("profile = \"full\"\nraw = \"none\""), [false, false, false]);
        assert_eq!(raw("profile = \"minimal\"\nraw = \"all\""), [true, true, true]);

        let shows =
            |text: &str, name: &str| metrics(text).shows(catalog::family(name).expect("the family is there"));
        for (profile, essential, other) in [
            ("minimal", true, false),
            ("standard", true, true),
            ("full", true, true),
        ] {
            let text = format!("profile = \"{profile}\"");
            assert_eq!(shows(&text, "event_active"), essential, "{profile}");
            assert_eq!(shows(&text, "priority_bytes"), other, "{profile}");
        }
    }

    #[test]
    fn devices_are_chosen_by_any_of_their_names() {
        let config =
            Config::parse("[devices]\ninclude = [\"mlx5_*\"]\nexclude = [\"0000:1a:*\", \"eth7\"]\n")
                .unwrap();
        let names = ["mlx5_0", "eth0", "0000:19:00.0"];
        assert!(config.devices.watches(&names));
        assert!(!config.devices.watches(&["mlx5_0", "eth0", "0000:1a:00.0"]));
        assert!(!config.devices.watches(&["mlx5_7", "eth7", "0000:20:00.0"]));
        assert!(!config.devices.watches(&["bnxt_re0", "eth1", "0000:21:00.0"]));
        assert!(Devices::default().watches(&names));
    }
}
