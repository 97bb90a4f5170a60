//! What is sent to others, and to whom. Nothing, unless it is asked for.

use super::duration;
use super::url::{self, Url};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;
use std::time::Duration;

/// Who is told of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Notify {
    /// Gets each event as JSON, when it opens and when it closes.
    #[serde(with = "url::or_none")]
    pub(crate) webhook: Option<Url>,
    /// Each of these gets the events as alerts.
    pub(crate) alertmanager: Vec<Url>,
    /// No more than this waits for each receiver.
    pub(crate) max_mib: u32,
    pub(crate) username: String,
    pub(crate) password_file: PathBuf,
    pub(crate) bearer_token_file: PathBuf,
    pub(crate) ca_file: PathBuf,
    pub(crate) external_labels: Vec<Label>,
}

/// Where the metrics are pushed to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RemoteWrite {
    /// Takes Prometheus remote write 1.0.
    #[serde(with = "url::or_none")]
    pub(crate) url: Option<Url>,
    #[serde(with = "duration")]
    pub(crate) interval: Duration,
    /// No more than this waits on disk.
    pub(crate) max_mib: u32,
    pub(crate) username: String,
    pub(crate) password_file: PathBuf,
    pub(crate) bearer_token_file: PathBuf,
    pub(crate) ca_file: PathBuf,
    pub(crate) external_labels: Vec<Label>,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            webhook: None,
            alertmanager: Vec::new(),
            max_mib: 16,
            username: String::new(),
            password_file: PathBuf::new(),
            bearer_token_file: PathBuf::new(),
            ca_file: PathBuf::new(),
            external_labels: Vec::new(),
        }
    }
}

impl Default for RemoteWrite {
    fn default() -> Self {
        Self {
            url: None,
            interval: Duration::from_secs(15),
            max_mib: 256,
            username: String::new(),
            password_file: PathBuf::new(),
            bearer_token_file: PathBuf::new(),
            ca_file: PathBuf::new(),
            external_labels: Vec::new(),
        }
    }
}

/// How a client shows who it is, and by whom it knows the receiver.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) username: &'a str,
    pub(crate) password_file: &'a PathBuf,
    pub(crate) bearer_token_file: &'a PathBuf,
    pub(crate) ca_file: &'a PathBuf,
}

impl Notify {
    /// True if anybody is to be told.
    pub(crate) fn is_wanted(&self) -> bool {
        self.webhook.is_some() || !self.alertmanager.is_empty()
    }

    pub(crate) fn access(&self) -> Access<'_> {
        Access {
            username: &self.username,
            password_file: &self.password_file,
            bearer_token_file: &self.bearer_token_file,
            ca_file: &self.ca_file,
        }
    }

    pub(super) fn problems(&self, found: &mut Vec<String>) {
        check_access("notify", self.access(), found);
        for (at, url) in self.alertmanager.iter().enumerate() {
            if self.alertmanager[..at].contains(url) {
                found.push(format!("  notify.alertmanager: {url:?} stands there twice"));
            }
        }
        if self.max_mib == 0 {
            found.push("  notify.max_mib: with 0 nothing could wait for its receiver".to_owned());
        }
    }
}

impl RemoteWrite {
    pub(crate) fn access(&self) -> Access<'_> {
        Access {
            username: &self.username,
            password_file: &self.password_file,
            bearer_token_file: &self.bearer_token_file,
            ca_file: &self.ca_file,
        }
    }

    pub(super) fn problems(&self, found: &mut Vec<String>) {
        check_access("remote_write", self.access(), found);
        if self.max_mib == 0 {
            found.push("  remote_write.max_mib: with 0 nothing could wait for the receiver".to_owned());
        }
        if self.interval < Duration::from_secs(1) {
            found.push("  remote_write.interval: an interval is at least 1s".to_owned());
        }
    }
}

fn check_access(section: &str, access: Access<'_>, found: &mut Vec<String>) {
    let has_password = !access.password_file.as_os_str().is_empty();
    let has_token = !access.bearer_token_file.as_os_str().is_empty();
    if access.username.is_empty() == has_password {
        found.push(format!(
            "  {section}: username and password_file go together; give both or neither"
        ));
    }
    if has_password && has_token {
        found.push(format!(
            "  {section}: password_file and bearer_token_file are both given; keep one"
        ));
    }
    if access.username.contains(':') {
        found.push(format!(
            "  {section}.username: a name cannot hold a colon (RFC 7617)"
        ));
    }
}

/// A label that all series or alerts get, written as `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}={}", self.name, self.value))
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (name, value) = text
            .split_once('=')
            .filter(|(name, value)| is_label_name(name) && !value.is_empty())
            .ok_or_else(|| {
                serde::de::Error::custom(format!("{text:?} is not a label such as \"cluster=alpha\""))
            })?;
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// `[a-zA-Z_][a-zA-Z0-9_]*`; those with two underscores are Prometheus' own.
fn is_label_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(plain)
        && !name.starts_with("__")
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn problems(text: &str) -> String {
        Config::parse(text).expect_err("this configuration is wrong")
    }

    #[test]
    fn who_is_told_and_where_metrics_go_is_taken() {
        let config = Config::parse(
            "[notify]\nwebhook = \"https://hooks.example/x\"\nalertmanager = [\"http://a:9093\", \"http://b:9093\"]\n\
             [remote_write]\nurl = \"http://p:9090/api/v1/write\"\nexternal_labels = [\"cluster=alpha\", \"rack=7=b\"]\n",
        )
        .unwrap();
        assert!(config.notify.is_wanted());
        assert_eq!(config.notify.alertmanager.len(), 2);
        let labels = &config.remote_write.external_labels;
        assert_eq!(
            (labels[1].name.as_str(), labels[1].value.as_str()),
            ("rack", "7=b")
        );
        let text = toml::to_string(&config).unwrap();
        assert_eq!(Config::parse(&text), Ok(config));
        assert!(!Config::default().notify.is_wanted());
    }

    #[test]
    fn mistakes_say_where_and_what_to_do() {
        let text = problems("[notify]\nwebhook = \"hooks.example\"\n");
        assert!(
            text.contains("line 2:") && text.contains("http or https"),
            "{text}"
        );
        let text = problems("[remote_write]\nexternal_labels = [\"9x=1\"]\n");
        assert!(
            text.contains("line 2:") && text.contains("cluster=alpha"),
            "{text}"
        );
        let text = problems("[notify]\nalertmanager = [\"http://a:9093\", \"http://a:9093\"]\n");
        assert!(text.contains("a:9093 stands there twice"), "{text}");
        assert!(problems("[remote_write]\nusername = \"me\"\n").contains("give both or neither"));
        let text = problems(
            "[notify]\nusername = \"a\"\npassword_file = \"b\"\nbearer_token_file = \"c\"\n[remote_write]\ninterval = \"10ms\"\n",
        );
        assert!(
            text.contains("keep one") && text.contains("at least 1s"),
            "{text}"
        );
    }
}
