//! Look-ups in the archive: on threads of their own, few at a time, and no longer than an answer may take.

use super::refusal::Refusal;
use super::sending::Place;
use archive::{Archive, OpenError};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Look-ups at once, from the question to the last byte of the answer. Further ones wait, as long as an answer may take:
/// one takes up to 64 MiB, and a processor.
const AT_ONCE: usize = 2;

/// The archive as the API sees it.
pub(crate) struct LookUps {
    folder: PathBuf,
    limit: Duration,
    places: Arc<Semaphore>,
}

/// Whether anybody waits for the answer still.
#[derive(Clone, Default)]
pub(super) struct Patience(Arc<AtomicBool>);

impl Patience {
    /// To break off where nobody does.
    pub(super) fn go_on(&self) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Ends a patience when the request is dropped.
struct Waiting(Patience);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl LookUps {
    /// Look-ups in the archive of this folder, which take no longer than `limit` each.
    pub(crate) fn new(folder: PathBuf, limit: Duration) -> Self {
        Self {
            folder,
            limit,
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Where the archive is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How long an answer may take.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// What `work` finds in the archive, and the place that it takes up until it is sent.
    pub(super) async fn find<T, W>(&self, work: W) -> Result<(T, Place), Refusal>
    where
        T: Send + 'static,
        W: FnOnce(&Archive, &Patience) -> Result<T, Refusal> + Send + 'static,
    {
        let found = tokio::time::timeout(self.limit, self.find_in_time(work)).await;
        found.unwrap_or_else(|_| {
            Err(Refusal::unavailable(format!(
                "looking this up took longer than {} (http.request_timeout): ask for a shorter time, for one port or for \
                 one counter, or again when less is going on",
                humantime::format_duration(self.limit)
            )))
        })
    }

    async fn find_in_time<T, W>(&self, work: W) -> Result<(T, Place), Refusal>
    where
        T: Send + 'static,
        W: FnOnce(&Archive, &Patience) -> Result<T, Refusal> + Send + 'static,
    {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_| Refusal::unavailable("the daemon is ending"))?;
        let patience = Patience::default();
        let waiting = Waiting(patience.clone());
        let folder = self.folder.clone();
        let thread = tokio::task::spawn_blocking(move || {
            let archive = Archive::open(&folder).map_err(|error| cannot_open(&error))?;
            Ok((work(&archive, &patience)?, place))
        });
        let found = thread.await;
        drop(waiting);
        found.unwrap_or_else(|_| {
            Err(Refusal::fault(
                "looking this up failed by a fault of rocewatch: please report it, with the request and the log",
            ))
        })
    }
}

fn cannot_open(error: &OpenError) -> Refusal {
    Refusal::unavailable(format!("the archive cannot be read: {error}"))
}
