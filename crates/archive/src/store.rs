//! What a writer finds on disk, and how logs become segments.

use crate::contents::Contents;
use crate::damage::{Damage, OpenError};
use crate::files::{Disk, Lock};
use crate::frame::Kind;
use crate::layout::{Numbered, PINS};
use crate::limits::Limits;
use crate::log::{Complete, Log};
use crate::logged::Logged;
use crate::pin::Pins;
use crate::record::Records;
use crate::row;
use crate::segments::Segments;
use std::io;
use std::sync::Arc;

/// The files of an archive that can be written to.
pub(crate) struct Store {
    disk: Arc<dyn Disk>,
    pub(crate) segments: Segments,
    pub(crate) pins: Pins,
    most_bytes: u64,
    /// Why the last seal failed, and when to try again.
    failed: Option<(String, u64)>,
    _lock: Lock,
}

/// Nanoseconds until a seal that failed is tried again: it costs a good part of a second of the processor.
const RETRY: u64 = 10_000_000_000;

impl Store {
    /// Opens what there is, and lets `log` and `records` go on behind it.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        limits: &Limits,
        log: &mut Log,
        records: &mut Records,
        damages: &mut Vec<Damage>,
    ) -> Result<Self, OpenError> {
        for folder in [Numbered::Log.folder(), Numbered::Records.folder(), PINS] {
            disk.make_folder(folder)
                .map_err(OpenError::io("make a folder of the archive"))?;
        }
        let lock = disk.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::Locked,
            _ => OpenError::io("lock the archive")(error),
        })?;
        let opened = Segments::open(Arc::clone(&disk), limits.measures())?;
        let logs = Numbered::Log
            .list(&*disk)
            .map_err(OpenError::io("list the archive's logs"))?;
        let last = logs.last().copied().unwrap_or(0).max(opened.last_log);
        let mut complete = Vec::new();
        for number in logs {
            if opened.sealed.contains(&number) {
                // Its blocks were written and a crash came before it was removed.
                let _ = disk.remove(&Numbered::Log.path(number));
            } else {
                complete.push(look(&*disk, number)?);
            }
        }
        let pins = Pins::open(Arc::clone(&disk), limits.pin_bytes)?;
        let of_records = records.resume()?;
        damages.extend(opened.damages.into_iter().chain(of_records));
        log.resume(complete, last.saturating_add(1));
        Ok(Self {
            segments: opened.segments,
            pins,
            disk,
            most_bytes: limits.bytes,
            failed: None,
            _lock: lock,
        })
    }

    /// Seals the oldest complete log.
    pub(crate) fn seal(&mut self, log: &mut Log, damages: &mut Vec<Damage>, now: u64) -> io::Result<()> {
        let Some(oldest) = log.oldest_complete() else {
            return Ok(());
        };
        if let Some((why, _)) = self.failed.as_ref().filter(|(_, again)| now < *again) {
            return Err(io::Error::other(why.clone()));
        }
        match self.seal_one(oldest, damages) {
            Ok(()) => {
                self.failed = None;
                log.forget_oldest_complete();
                Ok(())
            }
            Err(error) => {
                self.failed = Some((error.to_string(), now.saturating_add(RETRY)));
                Err(error)
            }
        }
    }

    fn seal_one(&mut self, log: Complete, damages: &mut Vec<Damage>) -> io::Result<()> {
        let path = Numbered::Log.path(log.number);
        let read = self.disk.open(&path).and_then(|source| source.read());
        match read.and_then(|bytes| Logged::new(path.clone(), bytes).map_err(io::Error::other)) {
            Ok(rows) => damages.extend(self.segments.seal(log.number, &rows)?),
            Err(error) => {
                // It stays for the next start, or for the operator, and must not hold up the logs behind it.
                damages.push(Damage::unreadable(&path, log.bytes, &error));
                return Ok(());
            }
        }
        // What is left after a failure here is removed at the next start.
        let _ = self.disk.remove(&path);
        Ok(())
    }

    /// Keeps the limits. Where nothing can be sealed, the logs go in the end.
    pub(crate) fn evict(&mut self, log: &mut Log) -> io::Result<()> {
        self.segments.evict(log.bytes())?;
        while self.segments.bytes() + log.bytes() > self.most_bytes {
            let Some(oldest) = log.oldest_complete() else {
                return Ok(());
            };
            self.disk.remove(&Numbered::Log.path(oldest.number))?;
            log.forget_oldest_complete();
        }
        Ok(())
    }
}

fn look(disk: &dyn Disk, number: u64) -> Result<Complete, OpenError> {
    let path = Numbered::Log.path(number);
    let source = disk.open(&path).map_err(OpenError::io(format!("open {path}")))?;
    let bytes = source
        .length()
        .map_err(OpenError::io(format!("measure {path}")))?;
    // A log of another format is not to be sealed in this one.
    let contents = Contents::load(&path, &*source)?;
    let frames = contents.entries.iter().filter(|entry| entry.kind == Kind::Rows);
    let walls = frames.filter_map(|entry| Some(row::Meta::decode(&entry.meta).ok()?.wall().0));
    Ok(Complete {
        number,
        bytes,
        oldest: walls.min(),
    })
}
