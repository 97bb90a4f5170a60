//! The one writer of an archive.

use crate::damage::{Damage, OpenError};
use crate::files::{Disk, Folder};
use crate::limits::{Limits, State, Status, whole_micros};
use crate::log::{Batch, Definition, Log};
use crate::pin::{Clocks, FullRate, PinError, Pins};
use crate::record::{Record, Records, Refused};
use crate::second::Seconds;
use crate::store::Store;
use crate::time::{self, Epoch, Now, Offset};
use crate::track::Track;
use model::{Port, Schema};
use ring::Window;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Names a track that is open for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(u64);

struct Open {
    definition: Definition,
    seconds: Seconds,
}

/// Writes an archive. It has no thread: whoever owns it calls [`Writer::row`] for every row of every source and
/// [`Writer::tick`] once a second, on a thread on which waiting for the disk hurts nobody.
pub struct Writer {
    disk: Arc<dyn Disk>,
    limits: Limits,
    epoch: Epoch,
    offset: Offset,
    tracks: BTreeMap<Handle, Open>,
    handles: u64,
    batch: Batch,
    log: Log,
    records: Records,
    /// What is on disk, once it can be reached.
    store: Option<Store>,
    /// Monotonic time of the last sync.
    synced: u64,
    status: Status,
    damages: Vec<Damage>,
}

impl Writer {
    /// Opens the archive in `folder` for writing, and makes one if there is none. A disk that cannot be written to is no
    /// error: the writer starts paused and tries again.
    ///
    /// # Errors
    /// If another process writes the archive, or another version of Rocewatch wrote it.
    pub fn open(folder: &Path, limits: Limits, epoch: Epoch, now: Now) -> Result<Self, OpenError> {
        Self::on(Arc::new(Folder::new(folder)), limits, epoch, now)
    }

    pub(crate) fn on(disk: Arc<dyn Disk>, limits: Limits, epoch: Epoch, now: Now) -> Result<Self, OpenError> {
        let mut writer = Self {
            log: Log::new(Arc::clone(&disk), limits.waiting_bytes),
            records: Records::new(Arc::clone(&disk), limits.record_bytes, limits.waiting_bytes),
            disk,
            limits,
            epoch,
            offset: Offset::of(now),
            tracks: BTreeMap::new(),
            handles: 0,
            batch: Batch::default(),
            store: None,
            synced: now.monotonic,
            status: Status::default(),
            damages: Vec::new(),
        };
        match writer.reach() {
            Err(error @ (OpenError::Format { .. } | OpenError::Locked)) => return Err(error),
            reached => writer.note(reached.map_err(|error| error.to_string())),
        }
        Ok(writer)
    }

    /// Opens a track for the rows of a source of `port`.
    pub fn open_track(&mut self, port: &Port, schema: &Schema) -> Handle {
        let bytes = Track::new(port, schema).encode();
        let handle = Handle(self.handles);
        self.handles += 1;
        let open = Open {
            definition: Definition::new(bytes),
            seconds: Seconds::new(schema, &port.driver),
        };
        self.tracks.insert(handle, open);
        handle
    }

    /// Ends a track: its source is gone, or has another schema from now on.
    pub fn close_track(&mut self, track: Handle) {
        if let Some(mut open) = self.tracks.remove(&track) {
            let batch = &mut self.batch;
            open.seconds
                .finish(|second| batch.push(&open.definition, &second));
        }
    }

    /// Takes in a row as it was read, however many there are a second. Touches no disk.
    ///
    /// # Panics
    /// If the track is not open, or the row has not as many values as the track has columns.
    pub fn row(&mut self, track: Handle, window: Window, values: &[u64]) {
        let Open { definition, seconds } = self.tracks.get_mut(&track).expect("rows come to open tracks");
        let batch = &mut self.batch;
        seconds.push(window, values, |second| batch.push(definition, &second));
    }

    /// Keeps a record, in place of an earlier one of the same id. It is written at the next [`Writer::tick`].
    ///
    /// # Errors
    /// If no disk could keep it.
    pub fn put_record(&mut self, record: &Record) -> Result<(), Refused> {
        record.check()?;
        self.records.push(record);
        Ok(())
    }

    /// Keeps rows as they were read in a file of their own, in place of an earlier one of the same id, with `record` to
    /// say what they are. Waits for the disk.
    ///
    /// # Errors
    /// If no disk could keep it, or this one does not now.
    pub fn pin(&mut self, record: &Record, rows: &[FullRate<'_>]) -> Result<(), PinError> {
        let (pins, clocks) = self.pins()?;
        pins.put(record, rows, clocks)
    }

    /// Adds rows to a pin, and replaces its record. Waits for the disk.
    ///
    /// # Errors
    /// If there is no pin of this id, or as for [`Writer::pin`]; the pin is then as it was.
    pub fn extend_pin(&mut self, record: &Record, rows: &[FullRate<'_>]) -> Result<(), PinError> {
        let (pins, clocks) = self.pins()?;
        pins.extend(record, rows, clocks)
    }

    fn pins(&mut self) -> io::Result<(&mut Pins, Clocks)> {
        let clocks = Clocks {
            epoch: self.epoch,
            offset: self.offset,
        };
        let store = self.store.as_mut();
        let store = store.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        Ok((&mut store.pins, clocks))
    }

    /// Writes the seconds that ended before `now`, and does what is due: sync, seal, evict. To be called once a second,
    /// right after the monotonic clock began a second and the rows of the one before were handed in: then every row is
    /// in the log within a second.
    pub fn tick(&mut self, now: Now) -> &Status {
        let batch = &mut self.batch;
        for open in self.tracks.values_mut() {
            open.seconds
                .end_before(now.monotonic, |second| batch.push(&open.definition, &second));
        }
        self.queue();
        // The rows so far were read before the wall clock was seen to move.
        self.offset.follow(now);
        self.go_on(now.monotonic);
        &self.status
    }

    /// Writes all there is, the current second included, and makes it survive a power loss.
    #[must_use = "it tells whether the last rows reached the disk"]
    pub fn finish(mut self) -> Status {
        let batch = &mut self.batch;
        for open in self.tracks.values_mut() {
            open.seconds
                .finish(|second| batch.push(&open.definition, &second));
        }
        self.queue();
        self.limits.sync = Duration::ZERO;
        self.go_on(self.synced);
        self.status
    }

    /// How the archive was doing at the last tick.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// What was found that cannot be read, since the last call.
    pub fn take_damages(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damages)
    }

    fn queue(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.log.push(batch, self.epoch, self.offset);
    }

    fn go_on(&mut self, now: u64) {
        let done = self.reach().map_err(|error| error.to_string());
        let done = done.and_then(|()| self.write(now).map_err(|error| error.to_string()));
        self.note(done);
    }

    /// Opens what is on disk, if that has not been possible so far.
    fn reach(&mut self) -> Result<(), OpenError> {
        if self.store.is_none() {
            let store = Store::open(
                Arc::clone(&self.disk),
                &self.limits,
                &mut self.log,
                &mut self.records,
                &mut self.damages,
            )?;
            self.store = Some(store);
        }
        Ok(())
    }

    fn write(&mut self, now: u64) -> io::Result<()> {
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        let written = self.log.write().and(self.records.write());
        let full = self.log.covers() >= whole_micros(self.limits.seal)
            || self.log.length() >= self.limits.log_bytes();
        let mut synced = Ok(());
        if full || now.saturating_sub(self.synced) >= nanos(self.limits.sync) {
            self.synced = now;
            synced = self.log.sync().and(self.records.sync());
        }
        if full {
            self.log.complete();
        }
        let sealed = store.seal(&mut self.log, &mut self.damages, now);
        let evicted = store.evict(&mut self.log);
        written.and(synced).and(sealed).and(evicted)
    }

    fn note(&mut self, done: Result<(), String>) {
        let store = self.store.as_ref();
        let sealed = store.and_then(|store| store.segments.oldest());
        let oldest = sealed.into_iter().chain(self.log.oldest()).min();
        self.status = Status {
            state: done.map_or_else(State::Paused, |()| State::Writing),
            rows: self.log.written,
            lost_rows: self.log.lost,
            lost_records: self.records.lost,
            waiting_bytes: self.log.waiting_bytes() + self.records.waiting_bytes(),
            row_bytes: self.log.bytes() + store.map_or(0, |store| store.segments.bytes()),
            record_bytes: self.records.bytes(),
            pin_bytes: store.map_or(0, |store| store.pins.bytes()),
            recorded: Duration::from_micros(store.map_or(0, |store| store.segments.recorded())),
            oldest: oldest.map(time::nanos),
        };
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
