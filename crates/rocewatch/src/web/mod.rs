//! TLS, client certificates and passwords, as `web.yml` asks for them.
//!
//! The files are looked at for every connection and every request, so that a renewed certificate or a changed password
//! holds from the next one on. What cannot be used, half-written files among it, leaves the former in force.

mod bucket;
mod client_cert;
pub(crate) mod der;
mod file;
mod guard;
mod handshake;
mod passwords;
mod reader;
pub(crate) mod settings;
mod tls;
mod tls_names;
mod yaml;

pub(crate) use guard::guard;
pub(crate) use handshake::Handshake;
pub(crate) use settings::check;

use crate::clock::Clock;
use crate::failure::Failure;
use crate::files;
use crate::metrics::{Counted, Shown};
use passwords::{Credentials, Passwords};
use prometheus::IntCounter;
use settings::{Settings, Stamps};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A disk that takes longer to say whether a file has changed leaves the former settings in force.
const PATIENCE: Duration = Duration::from_secs(1);

/// The settings in force, and the files that they come from.
pub(crate) struct Web {
    file: PathBuf,
    clock: Clock,
    current: Mutex<Arc<Settings>>,
    /// What the files looked like when they were last read, whatever came of it.
    seen: Arc<tokio::sync::Mutex<Stamps>>,
    passwords: Arc<Passwords>,
    reloads: Counted<IntCounter>,
    refused: Counted<IntCounter>,
}

impl Web {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// Every mistake in the file, with its line.
    pub(crate) fn open(file: &Path, clock: Clock) -> Result<Self, Failure> {
        let (settings, seen) = settings::load(file, clock);
        let settings = settings.map_err(|problems| settings::not_usable(file, &problems))?;
        settings.warn_of_expiry(clock);
        let passwords = Passwords::new()
            .map_err(|_| Failure::Runtime("the kernel gives no random numbers (getrandom)".to_owned()))?;
        Ok(Self {
            file: file.to_owned(),
            clock,
            current: Mutex::new(Arc::new(settings)),
            seen: Arc::new(tokio::sync::Mutex::new(seen)),
            passwords: Arc::new(passwords),
            reloads: Counted::new("web_config_reloads"),
            refused: Counted::new("tls_refused"),
        })
    }

    /// Its metrics.
    pub(crate) fn shown(&self) -> Vec<Box<dyn Shown>> {
        vec![Box::new(self.reloads.clone()), Box::new(self.refused.clone())]
    }

    /// The files that it is made of, as far as they are known now.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let seen = self.seen.try_lock();
        seen.map(|seen| seen.iter().map(|(path, _)| path.clone()).collect())
            .unwrap_or_default()
    }

    /// True if connections are encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.current().tls().is_some()
    }

    /// The settings as the files have them now, or had them when they were last in order.
    pub(crate) async fn settings(self: &Arc<Self>) -> Arc<Settings> {
        let web = Arc::clone(self);
        let look = async {
            let seen = Arc::clone(&self.seen).lock_owned().await;
            tokio::task::spawn_blocking(move || web.look(seen)).await
        };
        if !matches!(tokio::time::timeout(PATIENCE, look).await, Ok(Ok(()))) {
            tracing::debug!("the files of the web configuration could not be looked at; the former hold");
        }
        Arc::clone(&self.current())
    }

    fn current(&self) -> MutexGuard<'_, Arc<Settings>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again if one of them has changed.
    fn look(&self, mut seen: impl std::ops::DerefMut<Target = Stamps>) {
        if seen.iter().all(|(path, stamp)| files::Stamp::of(path) == *stamp) {
            return;
        }
        let (settings, stamps) = settings::load(&self.file, self.clock);
        *seen = stamps;
        let former = Arc::clone(&self.current());
        let settings = settings.and_then(|settings| settings.instead_of(&former));
        let result = if settings.is_ok() { "success" } else { "failure" };
        match settings {
            Ok(settings) => {
                settings.warn_of_expiry(self.clock);
                *self.current() = Arc::new(settings);
                tracing::info!(
                    "{} or a file that it names has changed and is in force",
                    self.file.display()
                );
            }
            Err(problems) => tracing::error!(
                "the web configuration {} was not taken up, the former one holds:\n{problems}",
                self.file.display()
            ),
        }
        self.reloads.with(&[result]).inc();
    }

    /// True if whoever gave these may see everything.
    async fn admits(&self, settings: &Settings, given: Option<Credentials>) -> bool {
        match given {
            _ if settings.users().is_empty() => true,
            None => false,
            Some(given) => self.passwords.are_right(settings.users(), &given).await,
        }
    }

    fn count_refused(&self, reason: &str) {
        self.refused.with(&[reason]).inc();
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }
}
