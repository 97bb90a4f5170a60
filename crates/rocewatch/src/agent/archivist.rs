//! The thread that takes every row and event to disk: once a second, from the rings, where rows wait if the disk does not
//! take them.

use super::events::Change;
use super::incidents::{Circumstances, Incidents};
use super::{JobId, World};
use crate::clock::{Clock, nanos};
use crate::event::EventRecord;
use archive::{Archive, Damage, Handle, Limits, Now, OpenError, State, Status, Writer};
use model::{Host, Port, Schema};
use ring::{Cursor, Next, Row};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// Behind each full second, when the rows of that second are in.
const LAG: u64 = 10_000_000;
/// How often memory that was freed goes back to the kernel: a seal needs some megabytes every ten minutes, a look-up as many.
const GIVE_BACK: Duration = Duration::from_secs(60);

/// Places that cannot be read are named up to so many, the newest; all are counted.
const MOST_NAMED: usize = 32;

/// Tells the ports with their settings, to be kept beside an incident.
pub(crate) type Describe = fn(&World) -> serde_json::Value;

/// The archive of a running agent.
pub(crate) struct Archivist {
    news: Arc<Mutex<News>>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// How the archive is doing, for metrics and the API.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// Bytes, rows, and whether rows reach the disk.
    pub(crate) status: Status,
    /// Seconds in which they did not.
    pub(crate) failures: u64,
    /// Places on disk that could not be read at the start or since.
    pub(crate) damages: u64,
    /// The newest of them.
    pub(crate) damaged: VecDeque<Damage>,
    /// Nanoseconds since 1970 of the oldest row.
    pub(crate) oldest: Option<i64>,
}

impl Archivist {
    /// Opens the archive in `folder`, and has every row of `world` written from now on.
    ///
    /// # Errors
    /// Another process writes it, or another version of this program did. A disk that fails is no error: the rows wait.
    pub(super) fn start(
        folder: PathBuf,
        limits: Limits,
        epoch: archive::Epoch,
        host: Arc<dyn Host>,
        world: Arc<Mutex<World>>,
        describe: Describe,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let mut writer = Writer::open(&folder, limits, epoch, now(clock))?;
        end_what_was_open(&folder, &mut writer);
        let news = Arc::new(Mutex::new(News::default()));
        let (stop, stopped) = channel();
        let mut work = Work {
            writer,
            folder,
            world,
            clock,
            followed: Vec::new(),
            news: Arc::clone(&news),
            gave_back: 0,
            told: 0,
            incidents: Incidents::new(host),
            describe,
        };
        let thread = std::thread::Builder::new()
            .name("archivist".to_owned())
            .spawn(move || {
                work.run(&stopped);
                if let State::Paused(why) = work.writer.finish().state {
                    tracing::warn!("the last rows are not in the archive: {why}");
                }
            })
            .map_err(|error| OpenError::Io {
                what: "cannot start a thread".to_owned(),
                error,
            })?;
        Ok(Self { news, stop, thread })
    }

    /// How it is doing.
    pub(crate) fn news(&self) -> News {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks it to write the last rows and end.
    pub(crate) fn end(&self) {
        let _ = self.stop.send(());
    }

    /// True once it has.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}

/// One instant on the clock of the rows and on the wall's.
fn now(clock: Clock) -> Now {
    Now {
        monotonic: clock.now(),
        wall: clock.wall(),
    }
}

struct Work {
    writer: Writer,
    folder: PathBuf,
    world: Arc<Mutex<World>>,
    clock: Clock,
    followed: Vec<Followed>,
    news: Arc<Mutex<News>>,
    gave_back: u64,
    /// Number of the newest change that is kept.
    told: u64,
    incidents: Incidents,
    describe: Describe,
}

/// A track that is being written.
struct Followed {
    track: Track,
    handle: Handle,
    cursor: Cursor,
    row: Row,
}

/// A track of the world: one source of one port for as long as its columns stay the same.
#[derive(Clone)]
pub(super) struct Track {
    pub(super) job: Arc<JobId>,
    pub(super) port: Arc<Port>,
    pub(super) schema: Arc<Schema>,
    pub(super) reader: ring::Reader,
}

impl Track {
    /// True if both are the same ring.
    fn is(&self, other: &Self) -> bool {
        self.job == other.job && Arc::ptr_eq(&self.schema, &other.schema)
    }
}

impl Work {
    fn run(&mut self, stopped: &Receiver<()>) {
        loop {
            let due = (self.clock.now() / SECOND + 1) * SECOND + LAG;
            match stopped.recv_timeout(self.clock.until(due)) {
                Err(RecvTimeoutError::Timeout) => self.second(),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                    self.take_in();
                    self.take_events();
                    return;
                }
            }
        }
    }

    fn second(&mut self) {
        self.take_in();
        self.take_events();
        let before = self.writer.status().state.clone();
        let status = self.writer.tick(now(self.clock)).clone();
        tell_change(&self.folder, &before, &status.state);
        let damages = self.writer.take_damages();
        for damage in &damages {
            tracing::warn!("the archive is damaged, and only what was there is lost: {damage}");
        }
        self.give_back();
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.failures += u64::from(matches!(status.state, State::Paused(_)));
        news.damages += damages.len() as u64;
        news.damaged.extend(damages);
        let older = news.damaged.len().saturating_sub(MOST_NAMED);
        news.damaged.drain(..older);
        news.oldest = status.oldest;
        news.status = status;
    }

    /// Hands every event to the writer that has begun or ended, and the rows around it.
    fn take_events(&mut self) {
        let now = now(self.clock);
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let changes: Vec<Change> = world.events().since(self.told).cloned().collect();
        let newest = world.events().newest();
        let missed = (newest - self.told).saturating_sub(changes.len() as u64);
        if missed > 0 {
            tracing::warn!(
                missed,
                "more happened in a second than is remembered; some of it is not kept"
            );
        }
        self.told = newest;
        let describe = self.describe;
        let describe = || Circumstances {
            watched: world.ports().map(|view| Arc::clone(&view.port)).collect(),
            told: describe(&world),
            earlier: world.events().lately(now.wall),
        };
        let mut events = Vec::new();
        for change in &changes {
            events.push(self.incidents.take(change, now.monotonic, describe));
        }
        drop(world);
        for event in &events {
            if let Err(refused) = self.writer.put_record(&record(event)) {
                tracing::warn!(id = %event.id, "an event cannot be kept: {refused}");
            }
        }
        let tracks = self.followed.iter().map(|followed| &followed.track);
        self.incidents.write(&mut self.writer, now, tracks);
    }

    /// Hands every new row to the writer.
    fn take_in(&mut self) {
        let tracks = self.world.lock().unwrap_or_else(PoisonError::into_inner).tracks();
        for track in &tracks {
            if !self.followed.iter().any(|followed| followed.track.is(track)) {
                self.follow(track.clone());
            }
        }
        for followed in &mut self.followed {
            followed.drain(&mut self.writer);
        }
        let now = self.clock.now();
        let ended = |followed: &mut Followed| !tracks.iter().any(|track| followed.track.is(track));
        for followed in self.followed.extract_if(.., ended) {
            self.writer.close_track(followed.handle);
            self.incidents.close(followed.track, now);
        }
    }

    fn follow(&mut self, track: Track) {
        let handle = self.writer.open_track(&track.port, &track.schema);
        self.followed.push(Followed {
            handle,
            row: track.reader.row(),
            cursor: Cursor::new(track.reader.clone()),
            track,
        });
    }

    /// Keeps what the process has near what it needs, once in a while.
    fn give_back(&mut self) {
        let now = self.clock.now();
        if now.saturating_sub(self.gave_back) >= nanos(GIVE_BACK) {
            self.gave_back = now;
            linux::give_back_memory();
        }
    }
}

impl Followed {
    fn drain(&mut self, writer: &mut Writer) {
        loop {
            match self.cursor.next(&mut self.row) {
                Next::Row => writer.row(self.handle, self.row.window, &self.row.values),
                Next::Lost(rows) => {
                    tracing::warn!(device = %self.track.job.device, source = %self.track.job.source, rows,
                        "rows were overwritten before they were archived");
                }
                Next::None => return,
            }
        }
    }
}

/// The event as the archive keeps it.
fn record(event: &EventRecord) -> archive::Record {
    archive::Record {
        id: event.id.clone(),
        began: event.began,
        ended: event.ended,
        body: serde_json::to_vec(event).unwrap_or_default(),
    }
}

/// Events that went on when the agent ended last: nobody saw their end, and they are not going on for ever.
fn end_what_was_open(folder: &Path, writer: &mut Writer) {
    let Ok(archive) = Archive::open(folder) else {
        return;
    };
    let last = archive.tracks().iter().map(|span| span.last).max();
    let Ok((records, _)) = archive.records(i64::MIN, i64::MAX) else {
        return;
    };
    for open in records.iter().filter(|record| record.ended.is_none()) {
        let Ok(mut event) = serde_json::from_slice::<EventRecord>(&open.body) else {
            continue;
        };
        event.ended = Some(last.unwrap_or(event.began).max(event.began));
        event.end_not_seen = true;
        // It was kept once, so that it can be.
        let _ = writer.put_record(&record(&event));
    }
}

fn tell_change(folder: &Path, before: &State, after: &State) {
    match (before, after) {
        (State::Writing, State::Paused(why)) => tracing::warn!(
            "the archive in {} is not written: {why}; sampling goes on, and rows wait in memory",
            folder.display()
        ),
        (State::Paused(_), State::Writing) => {
            tracing::info!("the archive in {} is written again", folder.display());
        }
        _ => {}
    }
}
