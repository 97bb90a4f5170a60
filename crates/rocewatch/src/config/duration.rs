//! Durations as people write them: `100ms`, `30s`, `2m`.

use serde::{Deserialize as _, Deserializer, Serializer};
use std::time::Duration;

/// Far beyond any use, and short enough that times in nanoseconds can be added and multiplied.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(super) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*value))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?)
}

fn parse<E: serde::de::Error>(text: &str) -> Result<Duration, E> {
    let duration = humantime::parse_duration(text).map_err(|error| {
        E::custom(format!(
            "{text:?} is not a duration such as \"100ms\", \"30s\" or \"2m\": {error}"
        ))
    })?;
    if duration > LONGEST {
        let longest = humantime::format_duration(LONGEST);
        return Err(E::custom(format!("{text:?} is longer than {longest}")));
    }
    Ok(duration)
}

/// The same, or `off`.
pub(super) mod or_off {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use std::time::Duration;

    const OFF: &str = "off";

    #[allow(clippy::ref_option)] // the signature is serde's
    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_str(OFF),
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            OFF => Ok(None),
            text => super::parse(text).map(Some),
        }
    }
}
