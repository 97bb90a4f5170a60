//! What left its usual range, and when: the first is nearest to the cause.

use super::Span;
use crate::event::rfc3339;
use crate::usual::{LEAST, is_outside};
use catalog::{Index, Kind, Signal};
use serde::Serialize;
use signals::PortSignals;
use std::collections::BTreeMap;

/// Out of range is what is so by this many bytes a second: one packet more is nothing.
const LEAST_BYTES: f64 = 1e6;
/// What may come one at a time, such as CNPs, or in a burst, has to be out of range for so long on average, and not only by its
/// first interval.
const SUSTAINED: i64 = 1_000_000_000;
/// Fewer intervals than this say nothing about what is usual.
const LEAST_INTERVALS: u32 = 10;

/// A signal that left its range.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Moved {
    /// The beginning of the first interval that is out of range, …
    #[serde(with = "rfc3339")]
    pub(crate) at: i64,
    /// … and its end: it moved at some time in between.
    #[serde(with = "rfc3339")]
    pub(crate) until: i64,
    pub(crate) device: String,
    pub(crate) port: u32,
    pub(crate) signal: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u8>,
    /// Growth per second in that interval, or the reading; in the driver's unit.
    pub(crate) value: f64,
    /// The lowest and the highest before.
    pub(crate) usual: (f64, f64),
}

/// In the order in which they moved. Nobody can tell which of two was first whose intervals overlap: of those the fabric's
/// own signals come before the traffic that suffers.
pub(super) fn in_order(mut all: Vec<Moved>) -> Vec<Moved> {
    all.sort_by_key(|moved| (rank(moved.signal), moved.at));
    let mut ordered = Vec::with_capacity(all.len());
    while let Some(first_end) = all.iter().map(|moved| moved.until).min() {
        let next = all.iter().position(|moved| moved.at < first_end).unwrap_or(0);
        ordered.push(all.remove(next));
    }
    ordered
}

/// The beginnings of the names of signals that tell something, by nearness to the cause; all else is bookkeeping.
const TELLING: [&str; 11] = [
    "link.",
    "rdma_event.",
    "pfc.",
    "pause.",
    "pcie.",
    "buffer.",
    "drop.",
    "fec.",
    "ecn.",
    "cnp.",
    "roce.",
];
/// Traffic, which moves for every reason.
const TRAFFIC: [&str; 4] = ["bytes.rx_rdma", "bytes.tx_rdma", "bytes.rx", "bytes.tx"];
/// What counts requests or objects that a job makes, not what becomes of them.
const ORDINARY: [&str; 9] = [
    "roce.rx_write_requests",
    "roce.rx_read_requests",
    "roce.rx_atomic_requests",
    "roce.rx_sends",
    "roce.tx_sends",
    "roce.tx_write_requests",
    "roce.tx_read_requests",
    "roce.tx_atomic_requests",
    "link.rx_bits_total",
];

fn rank(signal: &str) -> Option<usize> {
    if ORDINARY.contains(&signal) || signal.starts_with("roce.active") || signal.starts_with("roce.watermark")
    {
        return None;
    }
    let telling = TELLING.iter().position(|beginning| signal.starts_with(beginning));
    telling.or_else(|| TRAFFIC.contains(&signal).then_some(TELLING.len()))
}

/// Watches the signals of one port.
pub(super) struct Watcher {
    /// Until then everything is usual.
    usual_until: i64,
    /// … except for these.
    unusual: Vec<Span>,
    signals: BTreeMap<(Signal, Option<Index>), Range>,
}

#[derive(Default)]
struct Range {
    last: Option<(u64, i64)>,
    intervals: u32,
    usual: Option<(f64, f64)>,
    candidate: Option<Candidate>,
    departed: Option<Departure>,
}

/// An interval out of range.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Departure {
    begin: i64,
    end: i64,
    rate: f64,
}

/// The first interval out of range, which may be no more than a moment.
#[derive(Clone, Copy)]
struct Candidate {
    interval: Departure,
    /// The value, and when, from which on it has to stay out of range.
    stays_from: (u64, i64),
}

impl Watcher {
    pub(super) fn new(usual_until: i64, unusual: Vec<Span>) -> Self {
        Self {
            usual_until,
            unusual,
            signals: BTreeMap::new(),
        }
    }

    /// Looks at the signals of a source after a row of it that was read at `wall`.
    pub(super) fn look(&mut self, source: model::SourceKind, wall: i64, rows: &PortSignals) {
        let usual = wall <= self.usual_until;
        let told = usual
            && self
                .unusual
                .iter()
                .any(|span| (span.from..=span.to).contains(&wall));
        for (number, slot) in rows.slots().iter().enumerate() {
            if rank(slot.signal.as_str()).is_none() {
                continue;
            }
            let Some((of, columns)) = rows.origin(number) else {
                continue;
            };
            let Some(value) = rows.value(number).filter(|_| of == source) else {
                continue;
            };
            let column = columns
                .first()
                .and_then(|column| rows.raw(of)?.0.columns.get(*column)?.meaning);
            let counts = column.is_none_or(|meaning| meaning.entry.kind == Kind::Counter);
            let range = self.signals.entry((slot.signal, slot.index)).or_default();
            if told {
                range.last = None;
            } else {
                let kind = Manner::of(slot.signal.as_str(), counts);
                range.take(value, wall, kind, usual);
            }
        }
    }

    /// What has left its range.
    pub(super) fn moved(self, device: &str, port: u32) -> Vec<Moved> {
        let departed = |((signal, index), range): ((Signal, Option<Index>), Range)| {
            let Departure { begin, end, rate } = range.departure()?;
            Some(Moved {
                at: begin,
                until: end,
                device: device.to_owned(),
                port,
                signal: signal.as_str(),
                priority: match index {
                    Some(Index::Priority(priority)) => Some(priority),
                    _ => None,
                },
                value: rate,
                usual: range.usual?,
            })
        };
        self.signals.into_iter().filter_map(departed).collect()
    }
}

/// How a signal moves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It reads what is the case now.
    Reads,
    /// It counts what is a fault each time.
    Strikes,
    /// It counts what a healthy fabric has now and then.
    Flows,
    /// It counts bytes.
    Carries,
}

impl Manner {
    fn of(signal: &str, counts: bool) -> Self {
        let strikes = ["link.", "rdma_event.", "drop."];
        match counts {
            false => Self::Reads,
            true if strikes.iter().any(|beginning| signal.starts_with(beginning)) => Self::Strikes,
            true if signal.starts_with("bytes.") => Self::Carries,
            true => Self::Flows,
        }
    }

    /// By how much it has to be out of range.
    fn least(self) -> f64 {
        match self {
            Self::Flows => LEAST,
            Self::Carries => LEAST_BYTES,
            Self::Reads | Self::Strikes => f64::MIN_POSITIVE,
        }
    }
}

impl Range {
    /// When it left its range, and by which rate. What left it less than a second before the rows end is taken at its word: an
    /// incident is looked at while it goes on.
    fn departure(&self) -> Option<Departure> {
        self.departed
            .or(self.candidate.map(|candidate| candidate.interval))
    }

    fn take(&mut self, value: u64, wall: i64, manner: Manner, usual: bool) {
        let last = self.last.replace((value, wall));
        let Some((before, since)) = last.filter(|(_, since)| *since < wall) else {
            return;
        };
        let now = match manner {
            Manner::Reads => value as f64,
            Manner::Strikes | Manner::Flows | Manner::Carries => rate(before, value, since, wall),
        };
        if usual {
            let (low, high) = self.usual.unwrap_or((now, now));
            self.usual = Some((low.min(now), high.max(now)));
            self.intervals += 1;
            return;
        }
        let Some(range) = self
            .usual
            .filter(|_| self.intervals >= LEAST_INTERVALS && self.departed.is_none())
        else {
            return;
        };
        if self.candidate.is_none() && is_outside(now, range, manner.least()) {
            let is_long = wall - since >= SUSTAINED;
            self.candidate = Some(Candidate {
                interval: Departure {
                    begin: since,
                    end: wall,
                    rate: now,
                },
                stays_from: if is_long { (before, since) } else { (value, wall) },
            });
        }
        let Some(Candidate {
            interval,
            stays_from: (from, at),
        }) = self.candidate
        else {
            return;
        };
        if matches!(manner, Manner::Reads | Manner::Strikes) {
            self.departed = Some(interval);
        } else if wall - interval.begin >= SUSTAINED {
            let mean = rate(from, value, at, wall);
            self.departed = is_outside(mean, range, manner.least()).then_some(interval);
            self.candidate = None;
        }
    }
}

fn rate(before: u64, value: u64, since: i64, wall: i64) -> f64 {
    value.saturating_sub(before) as f64 * 1e9 / wall.abs_diff(since) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: i64 = 100_000_000;

    /// The interval from then on, a tenth of a second long.
    fn departure(tenths: i64, rate: f64) -> Departure {
        Departure {
            begin: tenths * TENTH,
            end: (tenths + 1) * TENTH,
            rate,
        }
    }

    /// A range that knows 100 a second, and then these intervals of a tenth of a second.
    fn after(growth: impl IntoIterator<Item = u64>, manner: Manner) -> Range {
        let mut range = Range::default();
        let (mut value, mut wall) = (0, 0);
        for _ in 0..20 {
            range.take(value, wall, manner, true);
            (value, wall) = (value + 10, wall + TENTH);
        }
        for grown in growth {
            range.take(value, wall, manner, false);
            (value, wall) = (value + grown, wall + TENTH);
        }
        range
    }

    #[test]
    fn the_first_interval_out_of_range_is_told() {
        // Within twice the usual, then not, and it stays so.
        let range = after([15, 15, 40].into_iter().chain([50; 12]), Manner::Flows);
        assert_eq!(range.usual, Some((100.0, 100.0)));
        assert_eq!(range.departed, Some(departure(22, 400.0)));
    }

    #[test]
    fn a_moment_is_no_departure_of_what_flows_and_is_one_of_what_strikes() {
        for burst in [40, 1_000] {
            let course = || [burst].into_iter().chain([10; 30]);
            assert_eq!(after(course(), Manner::Flows).departed, None);
            let rate = burst as f64 * 10.0;
            assert_eq!(
                after(course(), Manner::Strikes).departed,
                Some(departure(20, rate))
            );
        }
    }

    #[test]
    fn what_began_just_before_the_rows_end_is_a_departure() {
        let left = Some(departure(20, 400.0));
        assert_eq!(after([40; 3], Manner::Flows).departure(), left);
        assert_eq!(after([40, 10, 10], Manner::Flows).departure(), left);
        let moment = [40].into_iter().chain([10; 30]);
        assert_eq!(after(moment, Manner::Flows).departure(), None);
    }

    #[test]
    fn an_interval_of_a_second_is_more_than_a_moment() {
        let mut range = after([], Manner::Flows);
        let (value, wall) = range.last.unwrap();
        let end = wall + 10 * TENTH;
        range.take(value + 5_000, end, Manner::Flows, false);
        let (begin, rate) = (wall, 5_000.0);
        assert_eq!(range.departed, Some(Departure { begin, end, rate }));
    }

    #[test]
    fn without_a_before_nothing_is_unusual() {
        let mut range = Range::default();
        range.take(0, 0, Manner::Strikes, false);
        range.take(5_000, 1_000_000_000, Manner::Strikes, false);
        assert_eq!(range.departed, None);
    }

    #[test]
    fn a_gauge_is_judged_by_what_it_reads() {
        assert!(
            is_outside(0.0, (1.0, 1.0), Manner::Reads.least()),
            "a link that went down"
        );
        assert!(
            !is_outside(70.0, (60.0, 62.0), Manner::Reads.least()),
            "a little warmer"
        );
    }

    #[test]
    fn of_what_no_reading_tells_apart_the_cause_is_first() {
        let moved = |signal, at, until| Moved {
            at,
            until,
            device: "mlx5_0".to_owned(),
            port: 1,
            signal,
            priority: None,
            value: 1.0,
            usual: (0.0, 0.0),
        };
        let ordered = in_order(vec![
            moved("bytes.rx", 95, 120),
            moved("cnp.tx", 130, 140),
            moved("bytes.tx", 10, 20),
            moved("pfc.rx_frames", 100, 130),
            moved("ecn.rx_ce", 119, 400),
        ]);
        let order: Vec<_> = ordered.iter().map(|moved| moved.signal).collect();
        // Traffic that had moved before the pause began is first; the CNPs came after all that moved at 119.
        assert_eq!(
            order,
            ["bytes.tx", "pfc.rx_frames", "ecn.rx_ce", "bytes.rx", "cnp.tx"]
        );
    }

    #[test]
    fn bookkeeping_tells_nothing_and_cause_comes_before_effect() {
        assert_eq!(rank("roce.active_qps"), None);
        assert_eq!(rank("config.pfc_enabled"), None);
        assert!(rank("pfc.rx_frames") < rank("cnp.tx"));
        assert!(rank("roce.ack_timeout") < rank("bytes.tx_rdma"));
    }
}
