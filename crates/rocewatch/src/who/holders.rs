//! Who held queue pairs at one moment, in a shape of bounded size that is kept with an incident.

use super::{Alike, Answer, Whose, alike, asking, by_owner, untold, words, write_rest};
use crate::event::rfc3339;
use model::{Owner, QueuePair};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Owners of a device that are kept, those that hold the most; the rest is counted.
const KEPT: usize = 32;
/// Owners of a device that are shown to people, and of one that nothing happened to.
const SHOWN: usize = 4;
const SHOWN_BESIDE: usize = 1;

/// Who held queue pairs of each RDMA device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Holders {
    /// When the devices were asked.
    #[serde(with = "rfc3339")]
    pub(crate) at: i64,
    devices: Vec<OfDevice>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OfDevice {
    device: String,
    /// All of them, whoever holds them; absent if nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue_pairs: Option<u64>,
    /// Those that hold the most, the most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    owners: Vec<Holding>,
    /// Owners beyond those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    others: Option<Others>,
    /// Queue pairs that the kernel counts and does not tell of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    untold: Option<u64>,
    /// Why nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Holding {
    #[serde(flatten)]
    whose: Whose,
    queue_pairs: Vec<Alike>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Others {
    owners: u64,
    queue_pairs: u64,
}

impl Holders {
    /// What these devices answered, `None` where they did not, when they were asked `at`, in nanoseconds since 1970.
    pub(crate) fn of(at: i64, answers: impl Iterator<Item = (String, Option<Answer>)>) -> Self {
        let device = |(device, answer): (String, Option<Answer>)| {
            let answer = answer.unwrap_or_else(|| Err(asking::silent(&device)));
            OfDevice::of(device, answer)
        };
        Self {
            at,
            devices: answers.map(device).collect(),
        }
    }

    /// Queue pairs of a device; `None` if it is not known.
    pub(crate) fn queue_pairs(&self, device: &str) -> Option<u64> {
        self.devices.iter().find(|of| of.device == device)?.queue_pairs
    }

    /// The holders for people, those of the devices that `matters` says yes to first, and of the others little.
    pub(crate) fn write(&self, matters: impl Fn(&str) -> bool, out: &mut String) {
        let mut devices: Vec<_> = self.devices.iter().collect();
        devices.sort_by_key(|of| Reverse(matters(&of.device)));
        for device in devices {
            let shown = if matters(&device.device) {
                SHOWN
            } else {
                SHOWN_BESIDE
            };
            device.write(shown, out);
        }
        if self.devices.is_empty() {
            out.push_str("  There was no RDMA device.\n");
        }
    }
}

impl OfDevice {
    fn of(device: String, answer: Answer) -> Self {
        let mut of = Self {
            device,
            queue_pairs: None,
            owners: Vec::new(),
            others: None,
            untold: None,
            why: None,
        };
        match answer {
            Ok(queue_pairs) => {
                let seen = queue_pairs.seen.len() as u64;
                of.queue_pairs = Some(queue_pairs.of.unwrap_or(seen));
                of.untold = untold(&queue_pairs);
                let mut owners = by_owner(queue_pairs.seen);
                of.owners = owners.by_ref().take(KEPT).map(Holding::new).collect();
                of.others = Others::of(owners.map(|(_, queue_pairs)| queue_pairs.len() as u64));
            }
            Err(why) => of.why = Some(why.to_string()),
        }
        of
    }

    fn write(&self, shown: usize, out: &mut String) {
        let total = self.queue_pairs.map(|total| match total {
            1 => "  1 queue pair".to_owned(),
            total => format!("  {total} queue pairs"),
        });
        let _ = writeln!(out, "  {}{}", self.device, total.unwrap_or_default());
        let mut text = String::new();
        for holding in self.owners.iter().take(shown) {
            let _ = writeln!(text, "  {}\n    {}", holding.whose, words(&holding.queue_pairs));
        }
        match self.beyond(shown) {
            None => {}
            Some(Others {
                owners: 1,
                queue_pairs,
            }) => {
                let _ = writeln!(
                    text,
                    "  and one more owner, of {queue_pairs}; --json tells of up to {KEPT}"
                );
            }
            Some(Others { owners, queue_pairs }) => {
                let _ = writeln!(
                    text,
                    "  and {owners} more owners, of {queue_pairs}; --json tells of up to {KEPT}"
                );
            }
        }
        let nobody = self.owners.is_empty() && self.why.is_none();
        write_rest(nobody, self.untold, self.why.as_deref(), &mut text);
        for line in text.lines() {
            let _ = writeln!(out, "  {line}");
        }
    }

    /// The owners that a person who is shown so many is not shown.
    fn beyond(&self, shown: usize) -> Option<Others> {
        let kept = self.owners.iter().skip(shown).map(Holding::count);
        let kept = Others::of(kept);
        let both = kept.into_iter().chain(self.others);
        both.reduce(|a, b| Others {
            owners: a.owners + b.owners,
            queue_pairs: a.queue_pairs + b.queue_pairs,
        })
    }
}

impl Holding {
    fn new((owner, queue_pairs): (Owner, Vec<QueuePair>)) -> Self {
        let kinds = queue_pairs
            .iter()
            .map(|pair| (pair.kind.as_str(), pair.state.as_str(), pair.port));
        Self {
            whose: Whose::new(owner),
            queue_pairs: alike(kinds),
        }
    }

    fn count(&self) -> u64 {
        self.queue_pairs.iter().map(|alike| alike.count).sum()
    }
}

impl Others {
    /// So many owners, with what each of them holds; `None` of nobody.
    fn of(held: impl Iterator<Item = u64>) -> Option<Self> {
        let one = |queue_pairs| Self {
            owners: 1,
            queue_pairs,
        };
        held.map(one).reduce(|a, b| Self {
            owners: a.owners + b.owners,
            queue_pairs: a.queue_pairs + b.queue_pairs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{queue_pair, trainer};
    use super::*;
    use model::{Holder, Place, QueuePairs};

    fn text(holders: &Holders) -> String {
        let mut text = String::new();
        holders.write(|device| device == "mlx5_1", &mut text);
        text
    }

    fn made(answers: Vec<(&str, Option<Answer>)>) -> Holders {
        let answers = answers.into_iter();
        Holders::of(0, answers.map(|(device, answer)| (device.to_owned(), answer)))
    }

    #[test]
    fn holders_are_told_read_back_and_counted() {
        let mut seen = vec![queue_pair(1, 1, Owner::Kernel("ib_core".into()))];
        seen.extend((10..14).map(|number| queue_pair(number, 2, trainer())));
        let all = QueuePairs { seen, of: Some(7) };
        let holders = made(vec![
            ("mlx5_0", None),
            ("mlx5_1", Some(Ok(all))),
            ("mlx5_2", Some(Ok(QueuePairs::default()))),
        ]);
        let right = "  mlx5_1  7 queue pairs
    python3 (process 4711)  container 4bc0a1f2d3e4 (containerd)  pod 2a6f1c3e-8f0b-4f5d-9b1a-7c2d3e4f5a6b  network namespace 4026532000
      4 RC RTS on port 1
    the kernel: ib_core
      1 GSI RTS on port 1
    2 more, which the kernel does not tell of
  mlx5_0
    mlx5_0 does not answer: its driver or firmware hangs (ETIMEDOUT)
  mlx5_2  0 queue pairs
    nobody holds a queue pair
";
        assert_eq!(text(&holders), right);
        let json = serde_json::to_string(&holders).unwrap();
        assert_eq!(serde_json::from_str::<Holders>(&json).unwrap(), holders, "{json}");
        let counts = ["mlx5_0", "mlx5_1", "mlx5_2"].map(|device| holders.queue_pairs(device));
        assert_eq!(counts, [None, Some(7), Some(0)]);
    }

    #[test]
    fn many_owners_are_counted_beyond_those_that_hold_the_most() {
        let owner = |process: u32| {
            Owner::Process(Holder {
                process,
                name: None,
                place: Place::default(),
                network_namespace: None,
            })
        };
        // Process 1 holds one, process 2 two, ….
        let held = (1..=40).flat_map(|process| (0..process).map(move |_| process));
        let seen = held.map(|process| queue_pair(7, 2, owner(process))).collect();
        let holders = made(vec![("mlx5_1", Some(Ok(QueuePairs { seen, of: None })))]);
        let device = &holders.devices[0];
        let rest = Others {
            owners: 8,
            queue_pairs: 36,
        };
        assert_eq!((device.owners.len(), device.others), (KEPT, Some(rest)));
        let text = text(&holders);
        assert!(
            text.contains("process 40, which has ended or is hidden in /proc\n      40 RC RTS on port 1\n"),
            "{text}"
        );
        // 820 in all, of which 40, 39, 38 and 37 are shown.
        assert!(
            text.contains("and 36 more owners, of 666; --json tells of up to 32"),
            "{text}"
        );
        assert!(!text.contains("process 36"), "{text}");
        let mut beside = String::new();
        holders.write(|_| false, &mut beside);
        assert!(beside.contains("and 39 more owners, of 780; --json"), "{beside}");
        assert!(!beside.contains("process 39"), "{beside}");
    }
}
