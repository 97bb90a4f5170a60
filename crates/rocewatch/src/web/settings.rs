//! What is in force: a file that was read and found to be in order, with the certificates that it names.

use super::bucket::Bucket;
use super::file::{self, ClientAuth, File, PemSource};
use super::tls;
use super::yaml::Problem;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::files::{self, Stamp};
use axum::http::HeaderMap;
use rustls::ServerConfig;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What connections and requests are held to.
#[derive(Debug)]
pub(crate) struct Settings {
    tls: Option<tls::Server>,
    client_auth: ClientAuth,
    headers: HeaderMap,
    bucket: Option<Mutex<Bucket>>,
    users: BTreeMap<String, String>,
}

/// Files and what they look like.
pub(super) type Stamps = Vec<(PathBuf, Option<Stamp>)>;

/// Reads a file and all that it names. The stamps are older than what was read: a change in between is seen next time.
pub(super) fn load(path: &Path, clock: Clock) -> (Result<Settings, String>, Stamps) {
    let mut stamps = vec![(path.to_owned(), Stamp::of(path))];
    let file = match read(path) {
        Ok(file) => file,
        Err(problems) => return (Err(problems), stamps),
    };
    let named = file.tls.iter().flat_map(|tls| {
        [Some(&tls.certificate), Some(&tls.key), tls.client_ca.as_ref()]
            .into_iter()
            .flatten()
    });
    for pem in named {
        if let PemSource::File(path) = &pem.source {
            stamps.push((path.clone(), Stamp::of(path)));
        }
    }
    let settings = Settings::of(file, clock).map_err(|problem| lines(&[problem]));
    (settings, stamps)
}

fn read(path: &Path) -> Result<File, String> {
    let text = files::read_text(path)
        .map_err(|error| format!("  cannot read it: {error}; check the path and its permissions"))?;
    read_text(&text, path.parent().unwrap_or(Path::new("")))
}

/// What a file's text says; an error holds every mistake, one a line. Paths in it are relative to `folder`.
pub(crate) fn read_text(text: &str, folder: &Path) -> Result<File, String> {
    file::parse(text, folder).map_err(|problems| lines(&problems))
}

/// One problem a line, as those of the configuration are.
fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems
        .iter()
        .map(|problem| format!("  line {}: {}", problem.line, problem.what))
        .collect();
    lines.join("\n")
}

/// The message of a command that cannot go on.
pub(super) fn not_usable(path: &Path, problems: &str) -> Failure {
    Failure::Usage(format!(
        "the web configuration {} is not usable\n{problems}",
        path.display()
    ))
}

/// Reads a file and all that it names, for nothing but its mistakes.
///
/// # Errors
/// Every mistake, with its line.
pub(crate) fn check(path: &Path, clock: Clock) -> Result<(), Failure> {
    load(path, clock)
        .0
        .map(|_| ())
        .map_err(|problems| not_usable(path, &problems))
}

impl Settings {
    fn of(file: File, clock: Clock) -> Result<Self, Problem> {
        let tls = file.tls.as_ref().map(tls::server).transpose()?;
        Ok(Self {
            tls,
            client_auth: file.tls.map_or(ClientAuth::NoClientCert, |tls| tls.client_auth),
            headers: file.headers,
            bucket: file
                .rate_limit
                .map(|limit| Mutex::new(Bucket::new(limit, clock.now()))),
            users: file.users,
        })
    }

    /// These, unless they protect less than the `former`. A file that is being written reads as an empty one for a
    /// moment, and must not open the door.
    pub(super) fn instead_of(self, former: &Self) -> Result<Self, String> {
        let lost = [
            (
                former.tls.is_some() && self.tls.is_none(),
                "there is no tls_server_config any more",
            ),
            (
                !former.users.is_empty() && self.users.is_empty(),
                "there is no user under basic_auth_users any more",
            ),
            (
                former.client_auth.requires() && !self.client_auth.requires(),
                "client certificates are not required any more",
            ),
            (
                former.client_auth.verifies() && !self.client_auth.verifies(),
                "client certificates are not verified any more",
            ),
        ];
        match lost.into_iter().find(|(is_lost, _)| *is_lost) {
            Some((_, what)) => Err(format!("  {what}; if that is meant, restart rocewatch")),
            None => Ok(self),
        }
    }

    /// What connections are accepted with; `None`: plain HTTP.
    pub(crate) fn tls(&self) -> Option<&Arc<ServerConfig>> {
        self.tls.as_ref().map(|tls| &tls.config)
    }

    /// What is added to every answer.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The hashes of the users' passwords.
    pub(super) fn users(&self) -> &BTreeMap<String, String> {
        &self.users
    }

    /// True if a request may be answered now.
    pub(super) fn is_within_rate(&self, now: u64) -> bool {
        self.bucket
            .as_ref()
            .is_none_or(|bucket| bucket.lock().unwrap_or_else(PoisonError::into_inner).admits(now))
    }

    /// An expired certificate is served, since a client may take it; but its owner should know.
    pub(super) fn warn_of_expiry(&self, clock: Clock) {
        let not_after = self.tls.as_ref().and_then(|tls| tls.not_after);
        if not_after.is_some_and(|end| end < clock.wall() / 1_000_000_000) {
            tracing::warn!(
                "the certificate of this server has expired; put a new one in its place, which is taken up at once"
            );
        }
    }
}
