//! What the fabric is meant to be: the doctor's policy.

use serde::{Deserialize, Serialize};

/// Metres; a port of a long-haul switch buffers for less.
const LONGEST: u32 = 100_000;

/// How the fabric is meant to be set up, so that one that is healthy but otherwise than most gives no finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Policy {
    /// What holds senders back.
    pub(crate) congestion: Congestion,
    /// The lossless priorities; empty: those of `events.lossless`, and without those exactly one, 3 or 4.
    pub(crate) lossless: Vec<u8>,
    /// DSCP of `RoCE` data; `any`: whichever leads to the lossless priority.
    #[serde(with = "or_any")]
    pub(crate) dscp: Option<u32>,
    /// DSCP of CNPs.
    #[serde(with = "or_any")]
    pub(crate) cnp_dscp: Option<u32>,
    /// RDMA MTU in bytes.
    pub(crate) mtu: u32,
    /// Speed of each rail in Gb/s; `any`: as its siblings, or as the port is capable of.
    #[serde(with = "or_any")]
    pub(crate) speed_gbps: Option<u32>,
    /// Length of the longest cable from a rail to its switch; `any`: not told.
    #[serde(with = "or_any")]
    pub(crate) cable_meters: Option<u32>,
}

/// What holds senders back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Congestion {
    /// ECN and CNPs, with PFC below them.
    Dcqcn,
    /// PFC alone.
    PfcOnly,
    /// No PFC.
    Lossy,
}

impl Default for Policy {
    fn default() -> Self {
        let usual = doctor::Policy::default();
        Self {
            congestion: Congestion::Dcqcn,
            lossless: Vec::new(),
            dscp: None,
            cnp_dscp: None,
            mtu: usual.mtu,
            speed_gbps: None,
            cable_meters: None,
        }
    }
}

impl Policy {
    /// The same for the doctor. `lossless` and `expect_ecn` are what the events are told, and hold where this says nothing
    /// else.
    pub(super) fn with(&self, lossless: &[u8], expect_ecn: bool) -> doctor::Policy {
        let own = if self.lossless.is_empty() {
            lossless
        } else {
            &self.lossless
        };
        let mask = own.iter().fold(0, |mask, priority| mask | 1 << (priority & 7));
        let byte = |value: Option<u32>| value.and_then(|value| u8::try_from(value).ok());
        doctor::Policy {
            congestion: match self.congestion {
                Congestion::Dcqcn if expect_ecn => doctor::Congestion::Dcqcn,
                Congestion::Dcqcn | Congestion::PfcOnly => doctor::Congestion::PfcOnly,
                Congestion::Lossy => doctor::Congestion::Lossy,
            },
            lossless: (!own.is_empty()).then_some(mask),
            dscp: byte(self.dscp),
            cnp_dscp: byte(self.cnp_dscp),
            mtu: self.mtu,
            speed: self.speed_gbps.map(|speed| u64::from(speed) * 1_000_000_000),
            cable: self.cable_meters,
        }
    }

    /// One line for each value that makes no sense.
    pub(super) fn problems(&self, problems: &mut Vec<String>) {
        for priority in self.lossless.iter().filter(|priority| **priority > 7) {
            problems.push(format!(
                "  policy.lossless: there is no priority {priority}; they go from 0 to 7"
            ));
        }
        for (key, dscp) in [("dscp", self.dscp), ("cnp_dscp", self.cnp_dscp)] {
            if let Some(dscp) = dscp.filter(|dscp| *dscp > 63) {
                problems.push(format!(
                    "  policy.{key}: there is no DSCP {dscp}; they go from 0 to 63 (a traffic class is four times the DSCP)"
                ));
            }
        }
        if ![256, 512, 1024, 2048, 4096].contains(&self.mtu) {
            problems.push(format!(
                "  policy.mtu: {} is no RDMA MTU; there are 256, 512, 1024, 2048 and 4096",
                self.mtu
            ));
        }
        if let Some(meters) = self.cable_meters.filter(|meters| *meters > LONGEST) {
            problems.push(format!(
                "  policy.cable_meters: PFC does not reach over {meters} m; {LONGEST} is the most"
            ));
        }
        if self.speed_gbps == Some(0) {
            problems.push("  policy.speed_gbps: 0 would be met by every link; \"any\" says that".to_owned());
        }
    }
}

/// A number, or `any`.
mod or_any {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    const ANY: &str = "any";

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u32),
        Word(String),
    }

    #[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref)] // the signature is serde's
    pub(super) fn serialize<S: Serializer>(value: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(number) => serializer.serialize_u32(*number),
            None => serializer.serialize_str(ANY),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
        match Written::deserialize(deserializer) {
            Ok(Written::Number(number)) => Ok(Some(number)),
            Ok(Written::Word(word)) if word == ANY => Ok(None),
            _ => Err(D::Error::custom("expected a number, or \"any\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn the_defaults_are_those_of_the_doctor() {
        assert_eq!(Config::default().policy(), doctor::Policy::default());
    }

    #[test]
    fn what_is_written_holds() {
        let text = "[policy]\ncongestion = \"pfc_only\"\nlossless = [3, 4]\ndscp = 26\ncnp_dscp = \"any\"\nmtu = 1024\nspeed_gbps = 200\ncable_meters = 30\n";
        let policy = Config::parse(text).unwrap().policy();
        let right = doctor::Policy {
            congestion: doctor::Congestion::PfcOnly,
            lossless: Some(0b1_1000),
            dscp: Some(26),
            cnp_dscp: None,
            mtu: 1024,
            speed: Some(200_000_000_000),
            cable: Some(30),
        };
        assert_eq!(policy, right);
    }

    #[test]
    fn what_the_events_are_told_holds_as_well() {
        let policy = Config::parse("[events]\nlossless = [4]\nexpect_ecn = false\n")
            .unwrap()
            .policy();
        assert_eq!(policy.lossless, Some(0b1_0000));
        assert_eq!(policy.congestion, doctor::Congestion::PfcOnly);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("[policy]\nlossless = [8]\n", "there is no priority 8"),
            ("[policy]\ndscp = 106\n", "a traffic class is four times the DSCP"),
            ("[policy]\nmtu = 9000\n", "9000 is no RDMA MTU"),
            ("[policy]\nspeed_gbps = \"fast\"\n", "line 2"),
            ("[policy]\ncable_meters = 200000\n", "PFC does not reach"),
            ("[policy]\ncongestion = \"ecn\"\n", "line 2"),
            ("[policy]\nlosless = [3]\n", "did you mean `lossless`"),
        ] {
            let problems = Config::parse(text).expect_err(text);
            assert!(problems.contains(said), "{problems}");
        }
    }
}
