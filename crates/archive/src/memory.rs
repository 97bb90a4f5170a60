//! A disk in memory whose failures a test chooses: full, read-only, unplugged in the middle of a write.

use crate::files::{Disk, Lock, Sink, Source};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the disk does to writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Willing,
    /// Nothing can be changed.
    ReadOnly,
    /// So many bytes can still be appended.
    Full {
        left: usize,
    },
    /// So many bytes can still be appended, then nothing works any more.
    Faulty {
        left: usize,
    },
    /// After so many changes the power is gone, in the middle of the next: so many sixteenths of it are done.
    Dies {
        after: usize,
        done: usize,
    },
}

#[derive(Clone, Debug, Default)]
struct Stored {
    bytes: Vec<u8>,
    /// What of it survives a power loss.
    synced: usize,
    /// Its name survives a power loss.
    named: bool,
    /// The disk gives none of it.
    unreadable: bool,
}

#[derive(Debug)]
struct State {
    files: BTreeMap<String, Arc<Mutex<Stored>>>,
    /// Files that were removed, and come back if the power is lost before that is synced.
    removed: BTreeMap<String, Arc<Mutex<Stored>>>,
    mood: Mood,
    changes: usize,
}

/// The disk. A copy is the same disk.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Mutex<State>>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a power loss leaves of the bytes that were not synced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rest {
    Nothing,
    /// The first half of them.
    Half,
    /// Their number, but zeros.
    Zeros,
    /// All, as after `kill -9`.
    All,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            files: BTreeMap::new(),
            removed: BTreeMap::new(),
            mood: Mood::Willing,
            changes: 0,
        })))
    }

    pub(crate) fn set(&self, mood: Mood) {
        locked(&self.0).mood = mood;
    }

    /// Changes so far.
    pub(crate) fn changes(&self) -> usize {
        locked(&self.0).changes
    }

    /// The disk as it is found after the power was lost now.
    pub(crate) fn after_power_loss(&self, rest: Rest) -> Self {
        let state = locked(&self.0);
        let kills_only = matches!(rest, Rest::All);
        let new = Self::new();
        let removed = state.removed.iter().filter(|_| !kills_only);
        for (name, file) in removed.chain(state.files.iter()) {
            let file = locked(file).clone();
            if !file.named && matches!(rest, Rest::Nothing) {
                continue;
            }
            let unsynced = &file.bytes[file.synced..];
            let mut bytes = file.bytes[..file.synced].to_vec();
            match rest {
                Rest::Nothing => {}
                Rest::Half => bytes.extend_from_slice(&unsynced[..unsynced.len() / 2]),
                Rest::Zeros => bytes.extend(unsynced.iter().map(|_| 0)),
                Rest::All => bytes.extend_from_slice(unsynced),
            }
            new.put(name, bytes);
        }
        new
    }

    /// Every file and its bytes.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let state = locked(&self.0);
        let files = state.files.iter();
        files
            .map(|(name, file)| (name.clone(), locked(file).bytes.clone()))
            .collect()
    }

    /// Puts a file here, synced.
    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        let synced = bytes.len();
        let file = Stored {
            bytes,
            synced,
            named: true,
            unreadable: false,
        };
        locked(&self.0)
            .files
            .insert(name.to_owned(), Arc::new(Mutex::new(file)));
    }

    /// From now on the disk gives nothing of a file.
    pub(crate) fn damage(&self, name: &str) {
        if let Some(file) = locked(&self.0).files.get(name) {
            locked(file).unreadable = true;
        }
    }

    /// A disk of its own with the same files.
    pub(crate) fn copy(&self) -> Self {
        let new = Self::new();
        for (name, bytes) in self.files() {
            new.put(&name, bytes);
        }
        new
    }

    /// Bytes of `wanted` that can be written, or why none.
    fn change(&self, wanted: usize) -> io::Result<usize> {
        let mut state = locked(&self.0);
        match state.mood {
            Mood::ReadOnly => return Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            Mood::Full { left } => {
                let taken = wanted.min(left);
                state.mood = Mood::Full { left: left - taken };
                return Ok(taken);
            }
            Mood::Faulty { left } => {
                let taken = wanted.min(left);
                state.mood = Mood::Faulty { left: left - taken };
                return Ok(taken);
            }
            Mood::Dies { after, .. } if state.changes > after => return Err(io::ErrorKind::BrokenPipe.into()),
            Mood::Dies { after, done } if state.changes == after => {
                state.changes += 1;
                return Ok(wanted * done / 16);
            }
            Mood::Willing | Mood::Dies { .. } => {}
        }
        state.changes += 1;
        Ok(wanted)
    }

    /// A change that is made as a whole or not at all.
    fn change_whole(&self) -> io::Result<()> {
        let taken = self.change(1)?;
        // On a full disk names can still be changed, and files cut off.
        if taken == 0 && !matches!(locked(&self.0).mood, Mood::Full { .. }) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

impl Disk for Memory {
    fn make_folder(&self, _: &str) -> io::Result<()> {
        match locked(&self.0).mood {
            Mood::ReadOnly => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> io::Result<Lock> {
        Ok(Lock::unneeded())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let state = locked(&self.0);
        let inside = |name: &String| Some(name.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        Ok(state.files.keys().filter_map(inside).collect())
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Source>> {
        let state = locked(&self.0);
        let file = state.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Handle(self.clone(), Arc::clone(file))))
    }

    fn append(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        if !locked(&self.0).files.contains_key(path) {
            self.change_whole()?;
        }
        let mut state = locked(&self.0);
        let file = state.files.entry(path.to_owned()).or_default();
        Ok(Box::new(Handle(self.clone(), Arc::clone(file))))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.change_whole()?;
        let mut state = locked(&self.0);
        if let Some(file) = state.files.remove(path) {
            state.removed.insert(path.to_owned(), file);
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_whole()?;
        let mut state = locked(&self.0);
        let file = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        if let Some(replaced) = state.files.insert(to.to_owned(), file) {
            state.removed.insert(to.to_owned(), replaced);
        }
        Ok(())
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.change_whole()?;
        let mut state = locked(&self.0);
        state.removed.retain(|name, _| !name.starts_with(folder));
        for (_, file) in state.files.iter().filter(|(name, _)| name.starts_with(folder)) {
            locked(file).named = true;
        }
        Ok(())
    }
}

struct Handle(Memory, Arc<Mutex<Stored>>);

impl Source for Handle {
    fn length(&self) -> io::Result<u64> {
        Ok(locked(&self.1).bytes.len() as u64)
    }

    fn read_at(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let file = locked(&self.1);
        if file.unreadable {
            return Err(io::Error::other("Input/output error"));
        }
        file.bytes.read_at(at, length)
    }
}

impl Sink for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let taken = self.0.change(bytes.len())?;
        locked(&self.1).bytes.extend_from_slice(&bytes[..taken]);
        if taken < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        if locked(&self.1).bytes.len() != length {
            self.0.change_whole()?;
        }
        let mut file = locked(&self.1);
        file.bytes.truncate(length);
        file.synced = file.synced.min(length);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.change_whole()?;
        let mut file = locked(&self.1);
        file.synced = file.bytes.len();
        Ok(())
    }
}
