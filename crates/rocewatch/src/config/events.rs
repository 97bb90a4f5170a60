//! What is an event: the thresholds of the detectors.

use super::duration;
use crate::clock::nanos;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use signals::detect::{EventKind, Rule, Thresholds};
use std::collections::BTreeMap;
use std::time::Duration;

/// When events open and close, and what is meant on this fabric. `docs/events.md` lists the kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Events {
    /// Nothing opens for so long after the first look at a port.
    #[serde(with = "duration")]
    pub(crate) startup_grace: Duration,
    /// Nothing of the link opens for so long after the node has booted.
    #[serde(with = "duration")]
    pub(crate) boot_grace: Duration,
    /// Nothing that a bad link explains opens for so long after it has come back.
    #[serde(with = "duration")]
    pub(crate) link_grace: Duration,
    /// The fabric marks packets, so that pause without marks is a fault.
    pub(crate) expect_ecn: bool,
    /// The priorities that are meant to be lossless; empty: those on which a port has PFC.
    pub(crate) lossless: Vec<u8>,
    /// More priorities with PFC than this are taken for a mistake, where none are said to be meant.
    pub(crate) most_lossless: u32,
    /// Below this share of the line a port is taken to send nothing, where pause is only known by its frames.
    pub(crate) storm_idle: f64,
    /// No other event of pause opens for so long after a storm.
    #[serde(with = "duration")]
    pub(crate) storm_grace: Duration,
    /// CNPs per packet that are usual anywhere.
    pub(crate) cnp_usual: f64,
    /// How long a port's traffic is watched before its CNPs can be unusual.
    #[serde(with = "duration")]
    pub(crate) cnp_learning: Duration,
    /// How far back what is usual reaches.
    #[serde(with = "duration")]
    pub(crate) cnp_memory: Duration,
    /// Fewer ignored CNPs a second than this are none.
    pub(crate) cnp_ignored_least: f64,
    /// The span in which lost carriers are counted.
    #[serde(with = "duration")]
    pub(crate) link_flap_window: Duration,
    /// Bit error ratio before correction that is too much.
    pub(crate) fec_bit_errors: f64,
    /// Uncorrectable code words a second that are too many.
    pub(crate) fec_lost: f64,
    /// Rails that use less of their line than this on average may do so unevenly.
    pub(crate) rail_least: f64,
    /// The span over which the rails are compared.
    #[serde(with = "duration")]
    pub(crate) rail_window: Duration,
    /// When each kind opens and closes.
    pub(crate) rules: Rules,
}

/// The rule of each kind of event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules([Rule; EventKind::ALL.len()]);

/// A rule as it is written. What is left out is as by default.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Opens at this value or above, …
    open_at: Option<f64>,
    /// … held for so long.
    #[serde(default, with = "optional")]
    open_after: Option<Duration>,
    /// Closes below this value, …
    close_below: Option<f64>,
    /// … held for so long.
    #[serde(default, with = "optional")]
    close_after: Option<Duration>,
}

impl Written {
    fn of(rule: Rule) -> Self {
        Self {
            open_at: Some(rule.open_at),
            open_after: Some(Duration::from_nanos(rule.open_after)),
            close_below: Some(rule.close_below),
            close_after: Some(Duration::from_nanos(rule.close_after)),
        }
    }

    fn over(&self, rule: Rule) -> Rule {
        Rule {
            open_at: self.open_at.unwrap_or(rule.open_at),
            open_after: self.open_after.map_or(rule.open_after, nanos),
            close_below: self.close_below.unwrap_or(rule.close_below),
            close_after: self.close_after.map_or(rule.close_after, nanos),
        }
    }
}

impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rules = EventKind::ALL.into_iter().zip(self.0);
        serializer.collect_map(rules.map(|(kind, rule)| (kind.as_str(), Written::of(rule))))
    }
}

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut rules = Thresholds::default().rules;
        for (name, written) in BTreeMap::<String, Written>::deserialize(deserializer)? {
            let kind = EventKind::from_name(&name)
                .ok_or_else(|| serde::de::Error::custom(format!("{name:?} is no kind of event")))?;
            let rule = &mut rules[kind as usize];
            *rule = written.over(*rule);
        }
        Ok(Self(rules))
    }
}

impl Default for Events {
    fn default() -> Self {
        let usual = Thresholds::default();
        let time = Duration::from_nanos;
        Self {
            startup_grace: time(usual.startup_grace),
            boot_grace: time(usual.boot_grace),
            link_grace: time(usual.link_grace),
            expect_ecn: usual.expect_ecn,
            lossless: Vec::new(),
            most_lossless: usual.most_lossless,
            storm_idle: usual.storm_idle,
            storm_grace: time(usual.storm_grace),
            cnp_usual: usual.cnp_usual,
            cnp_learning: time(usual.cnp_learning),
            cnp_memory: time(usual.cnp_memory),
            cnp_ignored_least: usual.cnp_ignored_least,
            link_flap_window: time(usual.link_flap_window),
            fec_bit_errors: usual.fec_bit_errors,
            fec_lost: usual.fec_lost,
            rail_least: usual.rail_least,
            rail_window: time(usual.rail_window),
            rules: Rules(usual.rules),
        }
    }
}

impl Events {
    /// The same for the detectors.
    pub(crate) fn thresholds(&self) -> Thresholds {
        let mask = self
            .lossless
            .iter()
            .fold(0, |mask, priority| mask | 1 << (priority & 7));
        Thresholds {
            rules: self.rules.0,
            startup_grace: nanos(self.startup_grace),
            boot_grace: nanos(self.boot_grace),
            link_grace: nanos(self.link_grace),
            storm_idle: self.storm_idle,
            storm_grace: nanos(self.storm_grace),
            expect_ecn: self.expect_ecn,
            lossless: (!self.lossless.is_empty()).then_some(mask),
            most_lossless: self.most_lossless,
            cnp_usual: self.cnp_usual,
            cnp_learning: nanos(self.cnp_learning),
            cnp_memory: nanos(self.cnp_memory),
            cnp_ignored_least: self.cnp_ignored_least,
            link_flap_window: nanos(self.link_flap_window),
            fec_bit_errors: self.fec_bit_errors,
            fec_lost: self.fec_lost,
            rail_least: self.rail_least,
            rail_window: nanos(self.rail_window),
        }
    }

    /// One line for each value that makes no sense.
    pub(super) fn problems(&self, problems: &mut Vec<String>) {
        for priority in self.lossless.iter().filter(|priority| **priority > 7) {
            problems.push(format!(
                "  events.lossless: there is no priority {priority}; they go from 0 to 7"
            ));
        }
        for (key, value) in [
            ("storm_idle", self.storm_idle),
            ("cnp_usual", self.cnp_usual),
            ("cnp_ignored_least", self.cnp_ignored_least),
            ("fec_bit_errors", self.fec_bit_errors),
            ("fec_lost", self.fec_lost),
            ("rail_least", self.rail_least),
        ] {
            if value.is_nan() || value <= 0.0 {
                problems.push(format!("  events.{key}: {value} is not above 0"));
            }
        }
        if self.rail_window.is_zero() || self.cnp_memory.is_zero() {
            problems.push("  events: rail_window and cnp_memory need some time".to_owned());
        }
        for (kind, rule) in EventKind::ALL.into_iter().zip(self.rules.0) {
            if rule.open_at.is_nan() || rule.open_at <= 0.0 {
                let open_at = rule.open_at;
                problems.push(format!(
                    "  events.rules.{kind}.open_at: {open_at} is not above 0; to switch a kind off, let it open at inf"
                ));
            }
            if rule.close_below.is_nan() || rule.close_below > rule.open_at {
                problems.push(format!(
                    "  events.rules.{kind}.close_below: {} is above open_at, {}: it would open and close at once",
                    rule.close_below, rule.open_at
                ));
            }
        }
    }
}

/// A duration that may be left out.
mod optional {
    use super::duration;
    use serde::{Deserializer, Serializer};
    use std::time::Duration;

    #[allow(clippy::ref_option)] // the signature is serde's
    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => duration::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        duration::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_detectors() {
        assert_eq!(Events::default().thresholds(), Thresholds::default());
    }

    #[test]
    fn what_is_written_changes_and_the_rest_stays() {
        let text = "[events]\nlossless = [3, 4]\nexpect_ecn = false\n[events.rules]\n\
            pfc_storm = { open_at = 0.99, close_after = \"5s\" }\ncnp_spike = { open_at = inf }\n";
        let thresholds = Config::parse(text).unwrap().events.thresholds();
        let usual = Thresholds::default();
        assert_eq!(thresholds.lossless, Some(0b1_1000));
        assert!(!thresholds.expect_ecn);
        assert_eq!(
            *thresholds.rule(EventKind::PfcStorm),
            Rule {
                open_at: 0.99,
                close_after: 5_000_000_000,
                ..*usual.rule(EventKind::PfcStorm)
            }
        );
        assert!(thresholds.rule(EventKind::CnpSpike).open_at.is_infinite());
        assert_eq!(
            thresholds.rule(EventKind::LinkDown),
            usual.rule(EventKind::LinkDown)
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            (
                "[events.rules]\npfc_strom = { open_at = 1.0 }\n",
                "line 2: unknown key `events.rules.pfc_strom`; did you mean `pfc_storm`?",
            ),
            // A threshold by a wrong name left all monitoring off, without a word: NVSentinel 1529.
            (
                "[events]\nboot_grase = \"5m\"\n",
                "line 2: unknown key `events.boot_grase`; did you mean `boot_grace`?",
            ),
            (
                "[events.rules]\npfc_storm = { open_et = 0.9 }\n",
                "line 2: unknown key `events.rules.pfc_storm.open_et`; did you mean `open_at`?",
            ),
            (
                "[events.rules]\npfc_storm = { opens = 1.0 }\n",
                "unknown key `events.rules.pfc_storm.opens`",
            ),
            (
                "[events.rules]\npfc_storm = { open_at = 0.4 }\n",
                "events.rules.pfc_storm.close_below: 0.5 is above open_at, 0.4",
            ),
            (
                "[events.rules]\ncnp_spike = { open_at = 0.0 }\n",
                "let it open at inf",
            ),
            ("[events]\nlossless = [8]\n", "there is no priority 8"),
            (
                "[events]\nrail_least = nan\n",
                "events.rail_least: NaN is not above 0",
            ),
        ] {
            let problems = Config::parse(text).expect_err(text);
            assert!(problems.contains(said), "{problems}");
        }
    }
}
