//! What queue pairs have counted, by who holds them.
//!
//! The kernel's counters come and go with their queue pairs: the last queue pair of a group takes the group's counter with it,
//! the kernel adds what it had counted to the port's (`counter_history_stat_update` in drivers/infiniband/core/counters.c), and
//! the driver gives its number to the next. So a group's total is kept here, as the sum of what its counters grew: while the
//! group has queue pairs its total never falls, whichever of its counters end. Once it has none its columns are gone; if
//! it comes again it begins at nothing, as Prometheus expects of a counter that began anew.

use super::nldev::{Bond, Bound};
use catalog::Width;
use model::delta::{self, Delta};
use model::{LEFT_OUT, OTHERS, QUEUE_PAIRS, QpColumn, QueuePairKind, SourceKind};
use std::sync::Arc;

/// Groups with columns of their own. More than a node has processes on one NIC, unless something is wrong; all further ones are
/// counted together.
pub(super) const MOST_GROUPS: usize = 32;

/// The counters of a port that queue pairs are bound to, and what each group of queue pairs has counted.
pub(super) struct Ledger {
    driver: String,
    /// Grows with every look.
    look: u64,
    counters: Vec<Counter>,
    groups: Vec<Group>,
    /// There are other columns than when somebody last asked.
    changed: bool,
}

/// A counter of the kernel's.
struct Counter {
    id: u32,
    /// What binds its queue pairs, as the kernel tells it.
    bond: Bond,
    /// Its group: that, with the process in place of the thread; `None` with the others that found no room.
    whose: Option<Bond>,
    queue_pairs: u64,
    /// What it read last, in the order of its group's counters.
    previous: Vec<u64>,
    /// The look that last saw it, and when that was, in nanoseconds.
    seen: u64,
    seen_at: u64,
}

/// Queue pairs that are counted together.
struct Group {
    whose: Option<Bond>,
    comm: Option<String>,
    counted: Vec<Counted>,
}

struct Counted {
    name: Arc<str>,
    width: Width,
    /// The firmware has no such counter of queue pairs; what is told of it is no value.
    port_alone: bool,
    total: u64,
}

impl Ledger {
    pub(super) fn new(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            look: 0,
            counters: Vec::new(),
            groups: Vec::new(),
            changed: false,
        }
    }

    /// A look begins.
    pub(super) fn begin(&mut self) {
        self.look += 1;
    }

    /// Takes in a counter at `now`, in nanoseconds of any clock that never goes back. The kernel names the thread that made the
    /// queue pairs; `owner` tells its process, and what that is called.
    pub(super) fn take(
        &mut self,
        bound: &Bound<'_>,
        now: u64,
        owner: impl FnOnce(u32) -> (u32, Option<String>),
    ) {
        let known = self.known(bound);
        let at = known.unwrap_or_else(|| self.welcome(bound, now, owner));
        let counter = &mut self.counters[at];
        let mut groups = self.groups.iter_mut();
        let Some(group) = groups.find(|group| group.whose == counter.whose) else {
            return;
        };
        let elapsed = now.saturating_sub(counter.seen_at);
        for (nth, (name, value)) in bound.counters().enumerate() {
            let (at, new) = group.find(nth, name, &self.driver);
            self.changed |= new;
            if counter.previous.len() <= at {
                // A counter begins at zero.
                counter.previous.resize(at + 1, 0);
            }
            let entry = &mut group.counted[at];
            let grew = grew(counter.previous[at], value, entry.width, elapsed);
            entry.total = entry.total.wrapping_add(grew);
            counter.previous[at] = value;
        }
        counter.queue_pairs = bound.queue_pairs;
        (counter.seen, counter.seen_at) = (self.look, now);
    }

    /// A look has seen all there is. A counter that it has not seen is kept for one more: while the kernel tells of its counters
    /// some may end, and it then passes over others (`res_get_common_dumpit` goes on by position).
    pub(super) fn end(&mut self) {
        let before = self.look - 1;
        self.counters.retain(|counter| counter.seen >= before);
        let groups = self.groups.len();
        let counters = &self.counters;
        self.groups
            .retain(|group| counters.iter().any(|counter| group.has(counter)));
        self.changed |= self.groups.len() != groups;
    }

    /// True if there are other columns than at the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The names of the columns.
    pub(super) fn columns(&self) -> Vec<String> {
        let none = QpColumn::parse(LEFT_OUT);
        let mut columns = vec![none.to_string()];
        for group in &self.groups {
            let text = |number: Option<u32>| number.map(|number| number.to_string());
            let bond = group.whose.as_ref();
            let cntn = text(bond.and_then(|bond| bond.cntn));
            let pid = text(bond.and_then(|bond| bond.process));
            let whose = QpColumn {
                cntn: cntn.as_deref(),
                pid: pid.as_deref(),
                qp_type: bond.and_then(|bond| bond.kind).map(QueuePairKind::as_str),
                comm: group.comm.as_deref(),
                counter: QUEUE_PAIRS,
            };
            columns.push(whose.to_string());
            columns.extend(group.shown().map(|entry| {
                let counter = &*entry.name;
                QpColumn { counter, ..whose }.to_string()
            }));
        }
        columns
    }

    /// Fills a row of those columns.
    pub(super) fn fill(&self, row: &mut [u64]) {
        let left_out = self.counters.iter().filter(|counter| counter.whose.is_none());
        let mut cells = row.iter_mut();
        let mut put = |value| {
            if let Some(cell) = cells.next() {
                *cell = value;
            }
        };
        put(left_out.count() as u64);
        for group in &self.groups {
            let counters = self.counters.iter().filter(|counter| group.has(counter));
            put(counters.map(|counter| counter.queue_pairs).sum());
            group.shown().for_each(|entry| put(entry.total));
        }
    }

    /// Where a counter is that was seen before. The kernel stops naming a process that is ending.
    fn known(&self, bound: &Bound<'_>) -> Option<usize> {
        let same = |known: &Bond| {
            let ending = Bond {
                process: bound.bond.process.or(known.process),
                ..bound.bond
            };
            *known == ending
        };
        self.counters
            .iter()
            .position(|counter| counter.id == bound.id && same(&counter.bond))
    }

    /// A counter that is new, and its group where that is.
    fn welcome(
        &mut self,
        bound: &Bound<'_>,
        now: u64,
        owner: impl FnOnce(u32) -> (u32, Option<String>),
    ) -> usize {
        let (process, comm) = bound.bond.process.map(owner).unzip();
        let whose = Bond {
            process,
            ..bound.bond
        };
        let own = self.groups.iter().filter_map(|group| group.whose);
        let has_room = own.clone().any(|bond| bond == whose) || own.count() < MOST_GROUPS;
        let (whose, comm) = if has_room {
            (Some(whose), comm.flatten())
        } else {
            (None, Some(OTHERS.to_owned()))
        };
        if self.groups.iter().all(|group| group.whose != whose) {
            self.changed = true;
            self.groups.push(Group {
                whose,
                comm,
                counted: Vec::new(),
            });
        }
        self.counters.push(Counter {
            id: bound.id,
            bond: bound.bond,
            whose,
            queue_pairs: 0,
            previous: Vec::new(),
            seen: 0,
            seen_at: now,
        });
        self.counters.len() - 1
    }
}

impl Group {
    fn has(&self, counter: &Counter) -> bool {
        self.whose == counter.whose
    }

    /// The counters that it has columns for.
    fn shown(&self) -> impl Iterator<Item = &Counted> {
        self.counted.iter().filter(|entry| !entry.port_alone)
    }

    /// Where the counter of this name is, which mostly is the `nth`; and whether it is new.
    fn find(&mut self, nth: usize, name: &str, driver: &str) -> (usize, bool) {
        let is = |entry: &Counted| &*entry.name == name;
        if self.counted.get(nth).is_some_and(is) {
            return (nth, false);
        }
        if let Some(at) = self.counted.iter().position(is) {
            return (at, false);
        }
        let meaning = catalog::meaning(driver, SourceKind::HwCounters, name);
        self.counted.push(Counted {
            name: name.into(),
            width: meaning.map_or(Width::FULL, |meaning| meaning.entry.width),
            port_alone: meaning.is_some_and(|meaning| meaning.entry.port_alone),
            total: 0,
        });
        (self.counted.len() - 1, true)
    }
}

/// How much a counter grew. One that began anew is another under the same number, and began at zero.
fn grew(previous: u64, value: u64, width: Width, elapsed: u64) -> u64 {
    match delta::step(previous, value, width, elapsed) {
        Delta::Grew(grew) => grew,
        Delta::Saturated => value.saturating_sub(previous),
        Delta::Reset => value,
    }
}

#[cfg(test)]
mod tests {
    use super::super::nldev;
    use super::super::nldev::tests::{Told, bound_answer};
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn look(ledger: &mut Ledger, groups: &[Told<'_>]) {
        let now = SECOND * (ledger.look + 1);
        ledger.begin();
        for bound in nldev::bound(&bound_answer(groups)) {
            // Threads have the number of their process and some hundreds.
            ledger.take(&bound, now, |thread| {
                (thread % 100, Some(format!("rank{}", thread % 100)))
            });
        }
        ledger.end();
    }

    fn shown(ledger: &Ledger) -> Vec<(String, u64)> {
        let columns = ledger.columns();
        let mut row = vec![u64::MAX; columns.len()];
        ledger.fill(&mut row);
        columns.into_iter().zip(row).collect()
    }

    fn value(ledger: &Ledger, name: &str) -> Option<u64> {
        let shown = shown(ledger);
        shown
            .into_iter()
            .find(|(column, _)| column == name)
            .map(|(_, value)| value)
    }

    const RANK_7: &str = "pid=7 qp_type=RC comm=rank7 a";

    #[test]
    fn each_process_has_its_columns() {
        let mut ledger = Ledger::new("mlx5_core");
        look(
            &mut ledger,
            &[(1, 7, 2, &[("a", 5), ("b", 6)]), (2, 8, 1, &[("a", 9)])],
        );
        assert!(ledger.take_changed());
        let right = [
            ("groups_left_out", 0),
            ("pid=7 qp_type=RC comm=rank7 queue_pairs", 2),
            ("pid=7 qp_type=RC comm=rank7 a", 5),
            ("pid=7 qp_type=RC comm=rank7 b", 6),
            ("pid=8 qp_type=RC comm=rank8 queue_pairs", 1),
            ("pid=8 qp_type=RC comm=rank8 a", 9),
        ];
        assert_eq!(
            shown(&ledger),
            right.map(|(name, value)| (name.to_owned(), value))
        );
        look(
            &mut ledger,
            &[(1, 7, 3, &[("a", 15), ("b", 6)]), (2, 8, 1, &[("a", 9)])],
        );
        assert!(!ledger.take_changed());
        assert_eq!(value(&ledger, RANK_7), Some(15));
        assert_eq!(value(&ledger, "pid=7 qp_type=RC comm=rank7 queue_pairs"), Some(3));
    }

    #[test]
    fn nothing_bound_is_one_column() {
        let mut ledger = Ledger::new("mlx5_core");
        look(&mut ledger, &[]);
        assert!(!ledger.take_changed());
        assert_eq!(shown(&ledger), [("groups_left_out".to_owned(), 0)]);
    }

    #[test]
    fn a_group_keeps_what_a_counter_of_its_had_counted() {
        let mut ledger = Ledger::new("mlx5_core");
        // Two threads.
        look(
            &mut ledger,
            &[(1, 7, 1, &[("a", 100)]), (2, 107, 2, &[("a", 30)])],
        );
        assert_eq!(value(&ledger, RANK_7), Some(130));
        assert_eq!(value(&ledger, "pid=7 qp_type=RC comm=rank7 queue_pairs"), Some(3));
        // The first ends, and its number goes to another of the same process.
        for _ in 0..3 {
            look(&mut ledger, &[(2, 107, 1, &[("a", 35)])]);
            assert_eq!(value(&ledger, RANK_7), Some(135));
        }
        look(&mut ledger, &[(2, 107, 1, &[("a", 35)]), (1, 7, 1, &[("a", 4)])]);
        assert_eq!(value(&ledger, RANK_7), Some(139));
    }

    #[test]
    fn a_counter_that_one_look_passed_over_is_not_counted_twice() {
        let mut ledger = Ledger::new("mlx5_core");
        look(&mut ledger, &[(1, 7, 1, &[("a", 100)])]);
        look(&mut ledger, &[]);
        assert_eq!(value(&ledger, RANK_7), Some(100));
        look(&mut ledger, &[(1, 7, 1, &[("a", 101)])]);
        assert_eq!(value(&ledger, RANK_7), Some(101));
    }

    #[test]
    fn a_group_without_queue_pairs_is_absent_and_begins_anew() {
        let mut ledger = Ledger::new("mlx5_core");
        look(&mut ledger, &[(1, 7, 1, &[("a", 100)])]);
        look(&mut ledger, &[]);
        look(&mut ledger, &[]);
        assert!(ledger.take_changed());
        assert_eq!(value(&ledger, RANK_7), None);
        look(&mut ledger, &[(1, 7, 1, &[("a", 3)])]);
        assert_eq!(value(&ledger, RANK_7), Some(3));
    }

    #[test]
    fn the_number_of_another_process_is_another_counter() {
        let mut ledger = Ledger::new("mlx5_core");
        look(&mut ledger, &[(1, 7, 1, &[("a", 100)])]);
        look(&mut ledger, &[(1, 8, 1, &[("a", 150)])]);
        assert_eq!(value(&ledger, RANK_7), Some(100));
        assert_eq!(value(&ledger, "pid=8 qp_type=RC comm=rank8 a"), Some(150));
        look(&mut ledger, &[(1, 8, 1, &[("a", 151)])]);
        assert_eq!(value(&ledger, RANK_7), None);
    }

    #[test]
    fn a_process_that_ends_keeps_its_name() {
        let mut ledger = Ledger::new("mlx5_core");
        look(&mut ledger, &[(1, 7, 1, &[("a", 100)])]);
        let answer = bound_answer(&[(1, 7, 1, &[("a", 105)])]);
        ledger.begin();
        for mut bound in nldev::bound(&answer) {
            bound.bond.process = None;
            ledger.take(&bound, 9 * SECOND, |_| unreachable!("it is known"));
        }
        ledger.end();
        assert_eq!(value(&ledger, RANK_7), Some(105));
        assert_eq!(shown(&ledger).len(), 3);
    }

    #[test]
    fn a_counter_of_32_bits_wraps() {
        let mut ledger = Ledger::new("mlx5_core");
        let name = "out_of_sequence";
        let meaning = catalog::meaning("mlx5_core", SourceKind::HwCounters, name).unwrap();
        assert_eq!(meaning.entry.width.bits, 32);
        look(&mut ledger, &[(1, 7, 1, &[(name, u64::from(u32::MAX) - 4)])]);
        look(&mut ledger, &[(1, 7, 1, &[(name, 10)])]);
        let column = format!("pid=7 qp_type=RC comm=rank7 {name}");
        assert_eq!(value(&ledger, &column), Some(u64::from(u32::MAX) + 11));
    }

    #[test]
    fn what_the_firmware_keeps_for_a_port_alone_is_absent() {
        let mut ledger = Ledger::new("mlx5_core");
        let told = [("out_of_sequence", 4), ("np_cnp_sent", 0), ("unknown", 0)];
        look(&mut ledger, &[(1, 7, 1, &told)]);
        let whose = "pid=7 qp_type=RC comm=rank7";
        assert_eq!(value(&ledger, &format!("{whose} out_of_sequence")), Some(4));
        assert_eq!(value(&ledger, &format!("{whose} np_cnp_sent")), None);
        assert_eq!(value(&ledger, &format!("{whose} unknown")), Some(0));
    }

    #[test]
    fn groups_without_room_are_counted_together_and_counted() {
        let mut ledger = Ledger::new("mlx5_core");
        let most = u32::try_from(MOST_GROUPS).unwrap();
        let told: Vec<Told<'_>> = (1..=most + 3).map(|n| (n, n, 2, &[("a", 10)][..])).collect();
        look(&mut ledger, &told);
        assert_eq!(value(&ledger, LEFT_OUT), Some(3));
        assert_eq!(value(&ledger, "comm=(others) a"), Some(30));
        assert_eq!(value(&ledger, "comm=(others) queue_pairs"), Some(6));
        // Room that comes later is for those that come later: no series may take over what another has counted.
        for _ in 0..2 {
            look(&mut ledger, &told[1..]);
        }
        assert_eq!(value(&ledger, "comm=(others) a"), Some(30));
        assert_eq!(ledger.columns().len(), 1 + 2 * MOST_GROUPS);
    }

    proptest! {
        #[test]
        fn while_a_group_is_there_its_total_never_falls_and_holds_all_that_was_seen_to_grow(
            looks in prop::collection::vec(prop::collection::vec((1u32..4, 1u32..3, 0u64..1000), 0..6), 1..20),
        ) {
            let mut ledger = Ledger::new("mlx5_core");
            let mut before: Vec<(String, u64)> = Vec::new();
            for groups in looks {
                let counted: Vec<_> = groups.iter().map(|(id, process, value)| (*id, *process, [("a", *value)])).collect();
                let told: Vec<Told<'_>> = counted.iter().map(|(id, process, a)| (*id, *process, 1, &a[..])).collect();
                look(&mut ledger, &told);
                let now: Vec<_> = shown(&ledger).into_iter().filter(|(name, _)| name.ends_with(" a")).collect();
                for (name, value) in &now {
                    if let Some((_, former)) = before.iter().find(|(other, _)| other == name) {
                        prop_assert!(value >= former);
                    }
                }
                before = now;
            }
        }
    }
}
