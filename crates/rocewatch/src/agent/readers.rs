//! The threads that lanes are read on: one for the links and for all devices that answer at once, one more for each that
//! does not.
//!
//! A thread that wakes costs more than the reads it wakes for (`docs/decisions/0008-one-thread-for-quick-devices.md`).
//! Therefore one thread reads all the devices as long as a round takes no longer than the patience of [`LIMITS`]. Before it
//! waits for a round it sets an alarm for when that should be over, which wakes nobody unless it goes off. Then another
//! thread takes over the other lanes, and the one that the kernel holds keeps the lane that it is in, until that has been
//! quick for a minute again.

use super::lane::Lane;
use crate::clock::Clock;
use linux::Alarm;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// When a lane is read apart from the others. Real time, however fast the lanes' clock.
#[derive(Clone, Copy)]
struct Limits {
    /// How long a round may take, and with it one device hold up the others.
    patience: Duration,
    /// A lane that nobody wanted to wait for must do with this at a time …
    quick: Duration,
    /// … for so long until it is read with the others again.
    calm: Duration,
}

/// One device may hold up the others for half of the usual shortest interval, so that none misses a read.
const LIMITS: Limits = Limits {
    patience: Duration::from_millis(50),
    quick: Duration::from_millis(10),
    calm: Duration::from_secs(60),
};

/// Starts a thread that ends with the process at the latest, and needs no stack to speak of.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(256 * 1024)
        .spawn(body)?;
    Ok(thread.thread().clone())
}

/// Reads a lane on a thread of its own.
///
/// # Errors
/// If the system has no thread left to give.
pub(super) fn read_alone(name: &str, mut lane: Lane) -> io::Result<()> {
    let body = move || {
        lane.give_bell_to(&std::thread::current());
        while turn(&mut lane).is_some() {}
    };
    spawn(name, body).map(drop)
}

/// Waits until there is something for a lane to do and has it done. How long it took on the lane's clock, or `None` once
/// the registry has let go of it.
fn turn(lane: &mut Lane) -> Option<u64> {
    let clock = lane.clock();
    loop {
        let (now, due) = (clock.now(), lane.due());
        if due <= now {
            return lane.work().then(|| clock.now() - now);
        }
        std::thread::park_timeout(clock.until(due));
    }
}

/// Lanes that are read on one thread while they are quick. The threads end when this and the last lane are gone.
pub(super) struct Readers {
    shared: Arc<Shared>,
}

struct Shared {
    bench: Mutex<Bench>,
    alarm: Alarm,
    limits: Limits,
}

/// Held for the moment that it takes to choose a lane, and never in a read.
struct Bench {
    /// Those that no thread is in.
    lanes: Vec<Lane>,
    /// The thread that reads them, …
    leader: Thread,
    /// … and how many did before it.
    term: u64,
    /// The leader is in a round.
    in_round: bool,
    /// When the round begins that the alarm is set for, on the lanes' clock.
    planned: u64,
    /// Nobody will add a lane: the leader ends when it has none.
    closing: bool,
}

impl Readers {
    /// Starts the threads: the one that reads, and the one that waits for it to be held up.
    ///
    /// # Errors
    /// If the system has no thread or no descriptor left to give.
    pub(super) fn start() -> io::Result<Self> {
        Self::with(LIMITS)
    }

    fn with(limits: Limits) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            bench: Mutex::new(Bench {
                lanes: Vec::new(),
                leader: std::thread::current(),
                term: 0,
                in_round: false,
                planned: u64::MAX,
                closing: false,
            }),
            alarm: Alarm::new()?,
            limits,
        });
        shared.start_deputy()?;
        let leader = spawn("reader", {
            let shared = Arc::clone(&shared);
            move || shared.lead(0)
        })?;
        shared.bench().leader = leader;
        Ok(Self { shared })
    }

    /// Has one more lane read.
    pub(super) fn add(&self, lane: Lane) {
        self.shared.bench().take_in(lane);
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let mut bench = self.shared.bench();
        bench.closing = true;
        bench.leader.unpark();
    }
}

impl Shared {
    fn bench(&self) -> MutexGuard<'_, Bench> {
        self.bench.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads whatever lane is due first, until another thread has taken over or there will be none any more.
    fn lead(self: Arc<Self>, term: u64) {
        while let Some(mut lane) = self.next(term) {
            if !lane.work() {
                continue;
            }
            let mut bench = self.bench();
            if bench.term != term {
                drop(bench);
                return self.read_apart(lane);
            }
            bench.lanes.push(lane);
        }
    }

    /// Waits for the next lane with something to do, and takes it from the bench.
    fn next(&self, term: u64) -> Option<Lane> {
        loop {
            let mut bench = self.bench();
            if bench.term != term {
                return None;
            }
            let Some(at) = bench.first() else {
                bench.in_round = false;
                bench.planned = u64::MAX;
                if bench.closing {
                    self.alarm.set(Duration::ZERO);
                    return None;
                }
                self.alarm.clear();
                drop(bench);
                std::thread::park();
                continue;
            };
            let (clock, due) = (bench.lanes[at].clock(), bench.lanes[at].due());
            let now = clock.now();
            if due <= now {
                self.begin_round(&mut bench, now, clock);
                return Some(bench.lanes.swap_remove(at));
            }
            let wait = clock.until(due);
            self.end_round(&mut bench, due, wait);
            drop(bench);
            std::thread::park_timeout(wait);
        }
    }

    /// A round that begins when it was planned has its alarm: to set that anew each time would be one more system call.
    fn begin_round(&self, bench: &mut Bench, now: u64, clock: Clock) {
        if bench.in_round {
            return;
        }
        bench.in_round = true;
        let late = now.checked_sub(bench.planned);
        if late.is_none_or(|late| late > clock.real(self.limits.patience / 10)) {
            self.alarm.set(self.limits.patience);
        }
    }

    /// There is nothing to do for so long. A command may change that: the round that it begins sets the alarm itself.
    fn end_round(&self, bench: &mut Bench, due: u64, wait: Duration) {
        bench.in_round = false;
        bench.planned = due;
        self.alarm.set(wait + self.limits.patience);
    }

    /// Reads a lane that the others cannot wait for, until it can be read with them again.
    fn read_apart(&self, mut lane: Lane) {
        let clock = lane.clock();
        lane.give_bell_to(&std::thread::current());
        let mut calm_since = clock.now();
        while let Some(took) = turn(&mut lane) {
            let now = clock.now();
            if took > clock.real(self.limits.quick) {
                calm_since = now;
            }
            if now - calm_since > clock.real(self.limits.calm) {
                let mut bench = self.bench();
                if !bench.closing {
                    return bench.take_in(lane);
                }
            }
        }
    }

    /// Starts the thread that waits for the leader to be held up.
    fn start_deputy(self: &Arc<Self>) -> io::Result<()> {
        let shared = Arc::clone(self);
        spawn("reader", move || shared.stand_by()).map(drop)
    }

    /// Waits until a round has taken too long, then leads.
    fn stand_by(self: Arc<Self>) {
        while self.alarm.wait().is_ok() {
            if let Some(term) = self.take_over() {
                if let Err(error) = self.start_deputy() {
                    tracing::error!(%error, "no thread that takes over if a device hangs: raise the limit on threads (TasksMax, ulimit -u)");
                }
                return self.lead(term);
            }
            if self.bench().closing {
                return;
            }
        }
    }

    /// Makes this thread the leader if the leader is in a round, whose alarm is what went off.
    fn take_over(&self) -> Option<u64> {
        let mut bench = self.bench();
        if !bench.in_round {
            return None;
        }
        let me = std::thread::current();
        for lane in &bench.lanes {
            lane.give_bell_to(&me);
        }
        bench.leader = me;
        bench.term += 1;
        bench.in_round = false;
        bench.planned = u64::MAX;
        Some(bench.term)
    }
}

impl Bench {
    /// Has the leader read one more lane.
    fn take_in(&mut self, lane: Lane) {
        lane.give_bell_to(&self.leader);
        self.lanes.push(lane);
        self.leader.unpark();
    }

    /// The lane with something to do first.
    fn first(&self) -> Option<usize> {
        (0..self.lanes.len()).min_by_key(|at| self.lanes[*at].due())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::lane::{Assignment, Command, Handle, Pace, Tools};
    use crate::agent::{Event, Health, JobId, LaneKind};
    use crate::clock::nanos;
    use crate::config::Config;
    use model::{Changes, DeviceId, Host, Opened, Port, PortId, Read, Schema, Source, SourceKind, Why};
    use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
    use std::sync::Condvar;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::thread::{ThreadId, current};

    const DEVICES: usize = 4;
    /// Nothing here takes this long unless it never ends.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Devices of one counter each, which answer at once unless they are held.
    #[derive(Default)]
    struct Board {
        reads: Mutex<Reads>,
        changed: Condvar,
    }

    #[derive(Default)]
    struct Reads {
        held: BTreeSet<String>,
        /// Those that a read of is under way.
        inside: BTreeSet<String>,
        /// How often each was read by which thread.
        done: BTreeMap<String, HashMap<ThreadId, u32>>,
    }

    impl Board {
        fn change(&self, change: impl FnOnce(&mut Reads)) {
            change(&mut self.reads.lock().expect("no test has failed"));
            self.changed.notify_all();
        }

        fn wait_until(&self, what: &str, mut there: impl FnMut(&mut Reads) -> bool) {
            let reads = self.reads.lock().expect("no test has failed");
            let (_reads, waited) = self
                .changed
                .wait_timeout_while(reads, LIMIT, |reads| !there(reads))
                .expect("no test has failed");
            assert!(!waited.timed_out(), "waited in vain until {what}");
        }

        /// The threads that read these devices from now on, each device several times.
        fn threads_of(&self, devices: &[&str]) -> BTreeMap<String, Vec<ThreadId>> {
            self.change(|reads| reads.done.clear());
            let mut threads = BTreeMap::new();
            self.wait_until("all are read", |reads| {
                threads = devices
                    .iter()
                    .filter_map(|device| Some(((*device).to_owned(), reads.done.get(*device)?)))
                    .filter(|(_, threads)| threads.values().sum::<u32>() >= 5)
                    .map(|(device, threads)| (device, threads.keys().copied().collect()))
                    .collect();
                threads.len() == devices.len()
            });
            threads
        }
    }

    struct Held(Arc<Board>);

    impl Host for Held {
        fn ports(&self) -> Result<Vec<Port>, String> {
            Ok(Vec::new())
        }

        fn open(&self, port: &Port, source: SourceKind) -> Opened {
            let schema = Arc::new(Schema {
                port: port.id.clone(),
                source,
                columns: Box::new([]),
            });
            Opened::Active(Box::new(Counter {
                board: Arc::clone(&self.0),
                device: port.device.clone(),
                schema,
            }))
        }

        fn changes(&self) -> Result<Box<dyn Changes>, Why> {
            Err(Why::new("none", "nothing changes here".to_owned()))
        }
    }

    struct Counter {
        board: Arc<Board>,
        device: String,
        schema: Arc<Schema>,
    }

    impl Source for Counter {
        fn schema(&self) -> &Arc<Schema> {
            &self.schema
        }

        fn read(&mut self, _: &mut [u64]) -> Read {
            let Self { board, device, .. } = self;
            board.change(|reads| {
                reads.inside.insert(device.clone());
            });
            board.wait_until("a device answers", |reads| !reads.held.contains(device));
            board.change(|reads| {
                reads.inside.remove(device);
                let threads = reads.done.entry(device.clone()).or_default();
                *threads.entry(current().id()).or_default() += 1;
            });
            Read::Row
        }
    }

    /// All devices.
    struct Node {
        board: Arc<Board>,
        lanes: Vec<Handle>,
        readers: Readers,
        events: Receiver<Event>,
    }

    const NAMES: [&str; DEVICES] = ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"];

    const PATIENCE: Duration = Duration::from_millis(20);

    /// All devices, each read every 5 ms.
    fn node(patience: Duration, calm: Duration) -> Node {
        node_read_every(Duration::from_millis(5), patience, calm)
    }

    fn node_read_every(interval: Duration, patience: Duration, calm: Duration) -> Node {
        let board = Arc::new(Board::default());
        let limits = Limits {
            patience,
            // A machine that tests other things at the same time is not quick.
            quick: Duration::from_secs(1),
            calm,
        };
        let readers = Readers::with(limits).expect("threads");
        let (sender, events) = channel();
        let lanes = NAMES.map(|device| {
            let (lane, handle) = Lane::new(Tools {
                kind: LaneKind::Device,
                host: Arc::new(Held(Arc::clone(&board))),
                pace: Pace {
                    duty: 1.0,
                    intervals: [nanos(interval); SourceKind::ALL.len()],
                    rings: Config::default().rings,
                },
                events: sender.clone(),
                clock: Clock::start(),
            });
            readers.add(lane);
            handle.send(Command::Add(assignment(device)));
            handle
        });
        Node {
            board,
            lanes: lanes.into(),
            readers,
            events,
        }
    }

    fn assignment(device: &str) -> Assignment {
        let id = PortId {
            device: DeviceId::pci(device),
            number: 1,
        };
        Assignment {
            port: Arc::new(Port::bare(id.clone(), device, "mlx5_core")),
            id: Arc::new(JobId {
                port: id,
                device: device.to_owned(),
                source: SourceKind::HwCounters,
                epoch: 1,
            }),
            health: Arc::new(Health::default()),
        }
    }

    impl Node {
        fn hold(&self, devices: &[&str]) {
            let held = devices.iter().map(|device| (*device).to_owned()).collect();
            self.board.change(|reads| reads.held = held);
            self.board
                .wait_until("they hang", |reads| reads.held.is_subset(&reads.inside));
        }

        /// Lets go of all lanes. Nobody is left to tell anything: every lane is gone.
        fn end(self) {
            drop((self.lanes, self.readers));
            loop {
                match self.events.recv_timeout(LIMIT) {
                    Ok(_) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => panic!("a lane is still there"),
                }
            }
        }
    }

    #[test]
    fn devices_that_answer_are_read_by_one_thread() {
        let node = node(LIMIT, LIMIT);
        let threads: HashSet<_> = node.board.threads_of(&NAMES).into_values().collect();
        assert_eq!(threads.len(), 1);
        node.end();
    }

    #[test]
    fn one_that_hangs_holds_up_no_other_and_keeps_its_thread() {
        let node = node(PATIENCE, LIMIT);
        node.hold(&["mlx5_2"]);
        let others = node.board.threads_of(&["mlx5_0", "mlx5_1", "mlx5_3"]);
        node.board
            .change(|reads| assert!(!reads.done.contains_key("mlx5_2")));
        node.hold(&[]);
        let own = node
            .board
            .threads_of(&["mlx5_2"])
            .remove("mlx5_2")
            .expect("it is read");
        assert_eq!(own.len(), 1);
        assert!(others.values().all(|threads| !threads.contains(&own[0])));
        node.end();
    }

    #[test]
    fn one_that_hangs_when_no_round_was_planned_holds_up_no_other() {
        let node = node_read_every(Duration::from_secs(3600), PATIENCE, LIMIT);
        node.board.wait_until("each was read", |reads| {
            NAMES.iter().all(|device| reads.done.contains_key(*device))
        });
        let [hangs, answers] = ["hangs", "answers"];
        node.board.change(|reads| reads.held.extend([hangs.to_owned()]));
        node.lanes[1].send(Command::Add(assignment(hangs)));
        node.board
            .wait_until("it hangs", |reads| reads.inside.contains(hangs));
        node.lanes[0].send(Command::Add(assignment(answers)));
        node.board
            .wait_until("the other is read", |reads| reads.done.contains_key(answers));
        node.hold(&[]);
        node.end();
    }

    #[test]
    fn when_all_hang_each_comes_back_by_itself() {
        let node = node(PATIENCE, LIMIT);
        node.hold(&NAMES);
        for left in (0..DEVICES).rev() {
            node.hold(&NAMES[..left]);
            node.board.threads_of(&NAMES[left..]);
        }
        node.end();
    }

    #[test]
    fn one_that_is_quick_again_is_read_with_the_others_again() {
        let node = node(PATIENCE, Duration::from_millis(100));
        node.hold(&["mlx5_1"]);
        node.hold(&[]);
        let end = |threads: &BTreeMap<String, Vec<ThreadId>>| {
            let all: HashSet<_> = threads.values().flatten().collect();
            all.len() == 1
        };
        let together = (0..500).any(|_| end(&node.board.threads_of(&NAMES)));
        assert!(together, "{:?}", node.board.threads_of(&NAMES));
        node.end();
    }

    #[test]
    fn a_lane_hears_its_commands_whatever_thread_has_it() {
        let node = node(PATIENCE, LIMIT);
        node.hold(&["mlx5_0"]);
        let before = node.board.threads_of(&["mlx5_1"]);
        for (lane, device) in node.lanes.iter().zip(NAMES) {
            lane.send(Command::Remove(assignment(device).id.port.clone()));
        }
        node.hold(&[]);
        // The last reads are over when what comes after them has been done.
        for (lane, device) in node.lanes.iter().zip(NAMES) {
            lane.send(Command::Add(assignment(&format!("{device} again"))));
        }
        let again = NAMES.map(|device| format!("{device} again"));
        node.board.threads_of(&again.each_ref().map(String::as_str));
        node.board.change(|reads| reads.done.clear());
        node.board.threads_of(&["mlx5_3 again"]);
        node.board.change(|reads| {
            assert!(
                NAMES.iter().all(|device| !reads.done.contains_key(*device)),
                "after {before:?}"
            );
        });
        node.end();
    }

    #[test]
    fn what_is_let_go_of_while_it_hangs_ends_when_the_kernel_lets_go() {
        let node = node(PATIENCE, LIMIT);
        node.hold(&["mlx5_3"]);
        let board = Arc::clone(&node.board);
        let Node {
            lanes,
            readers,
            events,
            ..
        } = node;
        drop((lanes, readers));
        let ended = |wait| loop {
            match events.recv_timeout(wait) {
                Ok(_) => {}
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        };
        assert!(!ended(Duration::from_millis(200)), "the hung lane is gone");
        board.change(|reads| reads.held.clear());
        assert!(ended(LIMIT));
    }
}
