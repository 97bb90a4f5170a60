//! Names of the columns of [`crate::SourceKind::QpCounters`]: whose queue pairs, and which of their counters.

use std::fmt;

/// The column that tells how many queue pairs of a group are counted now. A reading.
pub const QUEUE_PAIRS: &str = "queue_pairs";
/// The column that tells how many of the kernel's groups have no columns of their own, and are in [`OTHERS`]. A reading.
pub const LEFT_OUT: &str = "groups_left_out";
/// The name of those groups together, where others have that of a process.
pub const OTHERS: &str = "(others)";

/// One column, as `pid=4711 qp_type=RC comm=python3 out_of_sequence`. What does not tell a group apart is left out of its
/// name; what `rdma statistic qp show` calls `cntn` is the number of a group that an administrator bound by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpColumn<'a> {
    /// The kernel's number of the group.
    pub cntn: Option<&'a str>,
    /// The process that holds the queue pairs.
    pub pid: Option<&'a str>,
    /// What the queue pairs carry.
    pub qp_type: Option<&'a str>,
    /// The name of that process, or [`OTHERS`].
    pub comm: Option<&'a str>,
    /// The counter, exactly as the driver has it; or [`QUEUE_PAIRS`], or [`LEFT_OUT`].
    pub counter: &'a str,
}

impl<'a> QpColumn<'a> {
    /// The parts of a column's name.
    #[must_use]
    pub fn parse(name: &'a str) -> Self {
        let (mut head, counter) = name.rsplit_once(' ').unwrap_or(("", name));
        let cntn = word(&mut head, "cntn=");
        let pid = word(&mut head, "pid=");
        let qp_type = word(&mut head, "qp_type=");
        Self {
            cntn,
            pid,
            qp_type,
            // The last, since a process may call itself anything.
            comm: head.strip_prefix("comm="),
            counter,
        }
    }

    /// True of what is a reading and does not count.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        matches!(self.counter, QUEUE_PAIRS | LEFT_OUT)
    }
}

/// Takes `key` and its value from the front of `head`.
fn word<'a>(head: &mut &'a str, key: &str) -> Option<&'a str> {
    let rest = head.strip_prefix(key)?;
    let (value, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    *head = rest;
    Some(value)
}

impl fmt::Display for QpColumn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = ["cntn", "pid", "qp_type", "comm"];
        let values = [self.cntn, self.pid, self.qp_type, self.comm];
        for (key, value) in keys.into_iter().zip(values) {
            if let Some(value) = value {
                write!(f, "{key}={value} ")?;
            }
        }
        f.write_str(self.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_parts_that_it_was_made_of() {
        let whole = QpColumn {
            cntn: None,
            pid: Some("4711"),
            qp_type: Some("RC"),
            comm: Some("python3"),
            counter: "out_of_sequence",
        };
        assert_eq!(
            whole.to_string(),
            "pid=4711 qp_type=RC comm=python3 out_of_sequence"
        );
        let by_hand = QpColumn {
            cntn: Some("8"),
            pid: None,
            qp_type: None,
            comm: None,
            ..whole
        };
        let by_type = QpColumn {
            pid: None,
            comm: None,
            ..whole
        };
        let odd = QpColumn {
            comm: Some("pid=1 a  b= "),
            ..whole
        };
        let nameless = QpColumn {
            comm: Some(""),
            ..whole
        };
        let of_port = QpColumn {
            cntn: None,
            counter: LEFT_OUT,
            ..by_hand
        };
        for column in [whole, by_hand, by_type, odd, nameless, of_port] {
            assert_eq!(QpColumn::parse(&column.to_string()), column);
            assert_eq!(column.is_reading(), column == of_port);
        }
    }

    #[test]
    fn any_text_is_read_without_harm() {
        for name in ["", " ", "pid=", "pid= ", "comm=", "cntn=1", "=  =", "pid=1 x"] {
            let _ = QpColumn::parse(name).to_string();
        }
        assert_eq!(QpColumn::parse("x").counter, "x");
    }
}
