//! Answers of ethtool netlink.

use linux::fuzzing::settings::{QUESTIONS, facts};
use model::{ABSENT, SourceKind};

/// Facts are columns of the catalogue, flags are flags, and a speed is one that a link can have.
pub fn check(answer: &[u8]) {
    for question in 0..QUESTIONS {
        for (column, value) in facts(question, answer) {
            assert!(
                catalog::meaning("any", SourceKind::Settings, column).is_some(),
                "{column}"
            );
            match column {
                "pause_rx" | "pause_tx" => assert!(value <= 1),
                "speed" => assert!(value == ABSENT || (1..u64::from(u32::MAX)).contains(&value)),
                "lanes" | "link_ext_down_count" => assert!(u32::try_from(value).is_ok()),
                // Counts: eight bytes of the answer.
                _ => assert!(answer.windows(8).any(|eight| eight == value.to_ne_bytes())),
            }
        }
    }
}
