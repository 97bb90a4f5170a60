//! Where something is sent to.

use axum::http::Uri;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// An address of HTTP or HTTPS, as in `https://host:9090/path`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url(Uri);

impl Url {
    /// Path and query.
    pub(crate) fn path(&self) -> &str {
        self.0.path_and_query().map_or("/", |path| path.as_str())
    }

    /// True if it is to be encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// The name or address of the receiver, without the brackets of IPv6.
    pub(crate) fn host(&self) -> &str {
        self.0
            .host()
            .unwrap_or_default()
            .trim_start_matches('[')
            .trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    /// Host and port as they are written, for a header.
    pub(crate) fn authority(&self) -> &str {
        self.0.authority().map_or("", |authority| authority.as_str())
    }

    /// Host and port: what can be shown, as a path may hold a secret.
    pub(crate) fn receiver(&self) -> String {
        format!("{}:{}", self.0.host().unwrap_or_default(), self.port())
    }

    /// The same receiver with another path.
    pub(crate) fn join(&self, path: &str) -> Self {
        let before = self.0.path().trim_end_matches('/');
        let text = format!(
            "{}://{}{before}{path}",
            self.0.scheme_str().unwrap_or("http"),
            self.authority()
        );
        text.parse().map_or_else(|_| self.clone(), Self)
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text
            .parse()
            .map_err(|error| format!("{text:?} is not a URL: {error}"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(format!(
                "{text:?} is not a URL of http or https, as in \"https://host:9090/path\""
            ));
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err("a URL must not hold a password; name a file with password_file".to_owned());
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(format!("{text:?} names no host"));
        }
        Ok(Self(uri))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.receiver())
    }
}

impl Serialize for Url {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Url {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The same, or nothing, which is written as an empty text.
pub(super) mod or_none {
    use super::Url;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[allow(clippy::ref_option)] // the signature is serde's
    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Option<Url>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(url) => serializer.collect_str(url),
            None => serializer.serialize_str(""),
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Url>, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        let url: Url = "https://prometheus.example/api/v1/write?x=1".parse().unwrap();
        assert_eq!(
            (url.host(), url.port(), url.path(), url.is_tls()),
            ("prometheus.example", 443, "/api/v1/write?x=1", true)
        );
        let url: Url = "http://[::1]:9090".parse().unwrap();
        assert_eq!((url.host(), url.port(), url.path()), ("::1", 9090, "/"));
        assert_eq!(url.receiver(), "[::1]:9090");
        let url: Url = "http://a:9093/alerts/".parse().unwrap();
        assert_eq!(
            url.join("/api/v2/alerts").to_string(),
            "http://a:9093/alerts/api/v2/alerts"
        );
    }

    #[test]
    fn what_is_no_url_says_why() {
        let problem = |text: &str| text.parse::<Url>().unwrap_err();
        assert!(problem("host:9090").contains("http or https"));
        assert!(problem("ftp://host/").contains("http or https"));
        assert!(problem("https://me:secret@host/").contains("password_file"));
        assert!(!problem("https://me:secret@host/").contains("secret"));
        assert!(problem("/path").contains("http or https"));
    }
}
