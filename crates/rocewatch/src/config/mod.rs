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
mod sampling;
mod url;

pub(crate) use check::suggestion;
pub(crate) use events::Events;
pub(crate) use pattern::Pattern;
pub(crate) use policy::Policy;
pub(crate) use push::{Access, Label, Notify, RemoteWrite};
pub(crate) use sampling::Sampling;
pub(crate) use url::Url;

use crate::failure::Failure;
use crate::files;
use catalog::{Family, Origin};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Loopback, since the numbers tell about the cluster; and a port that no exporter has: 9100 to 9999 of the public
/// list are all taken, and 14791 ends in 4791, the UDP port of `RoCEv2`.
pub(crate) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 14791);

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
    /// How long an answer from the archive may take.
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
        self.sampling.problems(&mut problems);
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

#[cfg(test)]
mod tests;
