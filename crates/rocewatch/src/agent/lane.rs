//! Sources that are read one after the other, each by its cadence, on whatever thread has the lane (`readers.rs`).

use super::cadence::{self, Cadence};
use super::restraint::Restraint;
use super::{Event, Health, JobId, LaneKind, Paced, SourceState};
use crate::clock::Clock;
use crate::config::Rings;
use model::{Host, Opened, Port, PortId, Read, Source, SourceKind};
use ring::Window;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;

/// A failed source is tried again after this, then twice as long each time, …
const FIRST_RETRY: u64 = 1_000_000_000;
/// … but never later than this. Some functions make the kernel log a line at every failing read.
const LAST_RETRY: u64 = 60_000_000_000;

/// What the registry asks of a lane. A lane whose [`Handle`] is gone ends.
pub(super) enum Command {
    /// Read this from now on.
    Add(Assignment),
    /// Stop reading this port.
    Remove(PortId),
    /// New wanted intervals and share of time.
    Pace(Box<Pace>),
    /// Somebody was asked for something through its [`Health`].
    Wake,
}

/// One source of one port to be read.
pub(super) struct Assignment {
    pub(super) id: Arc<JobId>,
    pub(super) port: Arc<Port>,
    pub(super) health: Arc<Health>,
}

/// How fast a lane goes.
#[derive(Clone)]
pub(super) struct Pace {
    /// Share of wall time that reading may take, 0..=1.
    pub(super) duty: f64,
    /// Wanted interval of each source in nanoseconds, in the order of [`SourceKind::ALL`].
    pub(super) intervals: [u64; SourceKind::ALL.len()],
    pub(super) rings: Rings,
}

impl Pace {
    fn interval(&self, source: SourceKind) -> u64 {
        self.intervals[source as usize]
    }
}

/// A lane's bell at the thread that has it: commands are heard while that thread waits for the next read to be due.
struct Bell {
    rung: AtomicBool,
    thread: Mutex<Thread>,
}

impl Bell {
    /// Whoever has the lane looks at `rung` after it was given the bell: no ring falls between two threads.
    fn ring(&self) {
        self.rung.store(true, Release);
        self.thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .unpark();
    }
}

/// The registry's end of a lane.
pub(super) struct Handle {
    // Dropped in this order: whoever hears the last ring finds nobody at the other end.
    commands: Sender<Command>,
    rope: Rope,
}

/// Rings once more when it is let go of.
struct Rope(Arc<Bell>);

impl Drop for Rope {
    fn drop(&mut self) {
        self.0.ring();
    }
}

impl Handle {
    /// Has the lane obey as soon as the kernel lets go of it.
    pub(super) fn send(&self, command: Command) {
        let _ = self.commands.send(command);
        self.rope.0.ring();
    }
}

/// What the thread that has it owns.
pub(super) struct Lane {
    tools: Tools,
    /// When the first of the jobs is due.
    due: u64,
    jobs: Vec<Job>,
    restraint: Restraint,
    commands: Receiver<Command>,
    bell: Arc<Bell>,
}

/// What all jobs of a lane are done with.
pub(super) struct Tools {
    pub(super) kind: LaneKind,
    pub(super) host: Arc<dyn Host>,
    pub(super) pace: Pace,
    pub(super) events: Sender<Event>,
    pub(super) clock: Clock,
}

struct Job {
    id: Arc<JobId>,
    port: Arc<Port>,
    health: Arc<Health>,
    cadence: Cadence,
    /// When it is to be read or opened next.
    due: u64,
    /// Its track has no row yet: the first is read at once, however long the interval.
    unread: bool,
    /// Reads or openings that failed since the last good one.
    failures: u32,
    state: JobState,
}

enum JobState {
    Closed,
    /// It is known that there is nothing to read; only a change of the link is worth another look.
    NotApplicable,
    Open {
        source: Box<dyn Source>,
        writer: ring::Writer,
        row: Box<[u64]>,
    },
}

impl Lane {
    /// A lane without a source, and the registry's end of it.
    pub(super) fn new(tools: Tools) -> (Self, Handle) {
        let (sender, commands) = channel();
        let bell = Arc::new(Bell {
            rung: AtomicBool::new(false),
            thread: Mutex::new(std::thread::current()),
        });
        let handle = Handle {
            commands: sender,
            rope: Rope(Arc::clone(&bell)),
        };
        let lane = Self {
            due: u64::MAX,
            jobs: Vec::new(),
            restraint: Restraint::new(tools.clock.now()),
            tools,
            commands,
            bell,
        };
        (lane, handle)
    }

    /// Commands wake this thread from now on.
    pub(super) fn give_bell_to(&self, thread: &Thread) {
        let mut bell = self.bell.thread.lock().unwrap_or_else(PoisonError::into_inner);
        *bell = thread.clone();
    }

    /// When there is something to do next.
    pub(super) fn due(&self) -> u64 {
        if self.bell.rung.load(Acquire) { 0 } else { self.due }
    }

    /// The clock that it goes by.
    pub(super) fn clock(&self) -> Clock {
        self.tools.clock
    }

    /// Obeys what it was commanded, and does the job that is due first if any is due: for as long as the kernel likes.
    /// False once the registry has let go of it.
    pub(super) fn work(&mut self) -> bool {
        if self.bell.rung.swap(false, Acquire) && !self.obey_all() {
            return false;
        }
        self.do_one();
        self.due = self.jobs.iter().map(|job| job.due).min().unwrap_or(u64::MAX);
        true
    }

    fn obey_all(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.obey(command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn obey(&mut self, command: Command) {
        let Self { tools, jobs, .. } = self;
        let now = tools.clock.now();
        match command {
            Command::Add(Assignment { id, port, health }) => jobs.push(Job {
                cadence: Cadence::new(tools.pace.interval(id.source)),
                id,
                port,
                health,
                due: now,
                unread: false,
                failures: 0,
                state: JobState::Closed,
            }),
            Command::Remove(port) => jobs.retain(|job| job.port.id != port),
            Command::Pace(pace) => {
                tools.pace = *pace;
                for job in &mut *jobs {
                    job.cadence = Cadence::new(tools.pace.interval(job.id.source));
                    job.due = job.due.min(now + job.cadence.wanted());
                }
            }
            Command::Wake => {
                for job in &mut *jobs {
                    job.heed_requests(now);
                }
            }
        }
        jobs.sort_by_key(|job| job.cadence.wanted());
    }

    fn do_one(&mut self) {
        let Self {
            tools,
            jobs,
            restraint,
            ..
        } = self;
        let Some(at) = (0..jobs.len()).min_by_key(|at| jobs[*at].due) else {
            return;
        };
        let began = tools.clock.now();
        if jobs[at].due > began {
            return;
        }
        let ended = match jobs[at].state {
            JobState::Open { .. } => tools.read(&mut jobs[at], began),
            _ => tools.open(&mut jobs[at], began),
        };
        let floor = cadence::floor(jobs.iter().map(|job| &job.cadence), tools.pace.duty);
        jobs[at].plan(ended, floor);
        let wanted = jobs[0].cadence.wanted();
        if restraint.watch(ended, floor, wanted) {
            tools.tell_pace(jobs, floor.max(wanted), wanted);
        }
    }
}

impl Tools {
    fn tell_pace(&self, jobs: &[Job], granted: u64, wanted: u64) {
        let Some(dearest) = jobs.iter().max_by_key(|job| job.cadence.cost()) else {
            return;
        };
        self.tell(Event::Paced(Paced {
            lane: self.kind,
            dearest: Arc::clone(&dearest.id),
            cost: dearest.cadence.cost(),
            granted,
            wanted,
            duty: self.pace.duty,
        }));
    }

    /// Gives when it was done.
    fn open(&self, job: &mut Job, began: u64) -> u64 {
        job.health.begin(began);
        let opened = self.host.open(&job.port, job.id.source);
        let ended = self.clock.now();
        job.health.end(ended);
        match opened {
            Opened::Active(source) => {
                job.failures = 0;
                self.start_track(job, source);
            }
            Opened::NotApplicable(why) => {
                job.state = JobState::NotApplicable;
                self.close(job, SourceState::NotApplicable(why));
            }
            Opened::Failed(why) => {
                job.failures = job.failures.saturating_add(1);
                job.state = JobState::Closed;
                self.close(job, SourceState::Failed(why));
            }
        }
        ended
    }

    /// Opens a new ring for the source's present schema.
    fn start_track(&self, job: &mut Job, source: Box<dyn Source>) {
        let schema = Arc::clone(source.schema());
        let columns = schema.columns.len();
        let (writer, reader) = ring::channel(
            columns,
            ring_rows(&self.pace.rings, columns, job.cadence.wanted()),
        );
        job.unread = true;
        job.state = JobState::Open {
            source,
            writer,
            row: vec![0; columns].into(),
        };
        self.tell(Event::Opened {
            job: Arc::clone(&job.id),
            schema,
            reader,
        });
    }

    fn close(&self, job: &Job, state: SourceState) {
        self.tell(Event::Closed {
            job: Arc::clone(&job.id),
            state,
        });
    }

    /// Gives when it was done.
    fn read(&self, job: &mut Job, began: u64) -> u64 {
        let JobState::Open { source, writer, row } = &mut job.state else {
            return began;
        };
        job.unread = false;
        job.health.begin(began);
        let read = source.read(row);
        let ended = self.clock.now();
        let took = job.health.end(ended);
        job.health.count_read_time(took);
        job.cadence.observe(took);
        match read {
            Read::Row => {
                writer.push(Window { began, ended }, row);
                job.health.samples.fetch_add(1, Relaxed);
                if job.failures > 0 {
                    job.failures = 0;
                    self.tell(Event::Recovered {
                        job: Arc::clone(&job.id),
                    });
                }
            }
            Read::SchemaChanged => {
                if let JobState::Open { source, .. } = std::mem::replace(&mut job.state, JobState::Closed) {
                    self.start_track(job, source);
                }
            }
            Read::Missing(why) => {
                job.failures = job.failures.saturating_add(1);
                job.health.failed.fetch_add(1, Relaxed);
                self.tell(Event::Missed {
                    job: Arc::clone(&job.id),
                    why,
                });
            }
        }
        ended
    }

    /// The deriver lives as long as the process; without it there is nobody to tell.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

impl Job {
    /// When this job is to be done next, given the lane's shortest interval.
    fn plan(&mut self, now: u64, floor: u64) {
        let interval = self.cadence.wanted().max(floor);
        self.health.interval.store(interval, Relaxed);
        self.due = match &self.state {
            JobState::NotApplicable => u64::MAX,
            _ if self.failures > 0 => now + retry_after(self.failures).max(interval),
            JobState::Closed => now,
            JobState::Open { .. } if self.unread => now,
            JobState::Open { .. } => {
                let mut next = self.due + interval;
                if next <= now {
                    self.health.late.fetch_add((now - self.due) / interval, Relaxed);
                    next = now + interval;
                }
                if interval == self.cadence.wanted() {
                    cadence::on_the_beat(next, interval)
                } else {
                    next
                }
            }
        };
    }

    fn heed_requests(&mut self, now: u64) {
        let reopen = self.health.take_reopen();
        let reread = self.health.take_reread();
        match self.state {
            JobState::Open { .. } if reread => self.due = now,
            JobState::NotApplicable if reopen => self.due = now,
            JobState::Closed if reread || reopen => self.due = now,
            _ => {}
        }
    }
}

fn retry_after(failures: u32) -> u64 {
    FIRST_RETRY
        .saturating_mul(1 << (failures - 1).min(6))
        .min(LAST_RETRY)
}

/// As many rows as the configured span needs, within the configured memory; at least two, for a rate.
fn ring_rows(rings: &Rings, columns: usize, interval: u64) -> usize {
    let wanted = crate::clock::nanos(rings.span) / interval.max(1);
    let row_bytes = 8 * (columns as u64 + 3);
    let room = u64::from(rings.max_kib_per_track) * 1024 / row_bytes;
    usize::try_from(wanted.min(room).max(2)).unwrap_or(usize::MAX)
}
