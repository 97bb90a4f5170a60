//! Passwords of basic authentication (RFC 7617), against bcrypt hashes.
//!
//! A bcrypt hash is slow to check by intent, so a password that was right once is remembered, as a keyed digest. Only right
//! ones are: what strangers try can neither fill the memory nor push anybody out of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring_crypto::{hmac, rand};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// As many passwords as are remembered. There are few users, each with one password, and one more while it is changed.
const REMEMBERED: usize = 64;

type Digest = [u8; 32];

/// Checks passwords, one at a time: wrong ones may cost a core, but never more.
pub(super) struct Passwords {
    key: hmac::Key,
    verified: Mutex<VecDeque<Digest>>,
    turn: Arc<Semaphore>,
}

impl Passwords {
    /// None remembered.
    ///
    /// # Errors
    /// If the kernel gives no random numbers.
    pub(super) fn new() -> Result<Self, ring_crypto::error::Unspecified> {
        Ok(Self {
            key: hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new())?,
            verified: Mutex::default(),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    /// True if these are the name and the password of one of `users`.
    pub(super) async fn are_right(
        self: &Arc<Self>,
        users: &BTreeMap<String, String>,
        given: &Credentials,
    ) -> bool {
        // For a name that there is not the hash of another is checked all the same: how long it takes must not tell.
        let known = users.get(&given.user);
        let Some(hash) = known.or_else(|| users.values().next()).cloned() else {
            return false;
        };
        let known = known.is_some();
        let digest = self.digest(given, &hash);
        if known && self.remembers(&digest) {
            return true;
        }
        let Ok(turn) = Arc::clone(&self.turn).acquire_owned().await else {
            return false;
        };
        // The one before may have asked the same.
        if known && self.remembers(&digest) {
            return true;
        }
        let password = given.password.clone();
        let this = Arc::clone(self);
        // To its end, even if whoever asked goes away: a scraper with less patience than this takes would otherwise never
        // become known, and the next check would begin beside this one.
        let check = tokio::task::spawn_blocking(move || {
            let is_right = bcrypt::verify(password, &hash).unwrap_or(false) && known;
            if is_right {
                this.remember(digest);
            }
            drop(turn);
            is_right
        });
        check.await.unwrap_or(false)
    }

    /// Of name, hash and password: a changed hash is another user.
    fn digest(&self, given: &Credentials, hash: &str) -> Digest {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [given.user.as_bytes(), hash.as_bytes(), &given.password] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }

    fn remembers(&self, digest: &Digest) -> bool {
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        // All of each: nobody outside can make digests, and nothing is told of those inside either.
        verified
            .iter()
            .fold(false, |found, other| found | is_same(digest, other))
    }

    fn remember(&self, digest: Digest) {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.len() == REMEMBERED {
            verified.pop_front();
        }
        verified.push_back(digest);
    }
}

fn is_same(one: &Digest, other: &Digest) -> bool {
    one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// What a client says that it is.
pub(super) struct Credentials {
    user: String,
    password: Vec<u8>,
}

impl Credentials {
    /// Of an `Authorization` header; `None` if it is not one of basic authentication.
    pub(super) fn from_header(header: &[u8]) -> Option<Self> {
        let (scheme, encoded) = header.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") {
            return None;
        }
        let plain = STANDARD.decode(encoded.trim_ascii()).ok()?;
        let colon = plain.iter().position(|byte| *byte == b':')?;
        Some(Self {
            user: String::from_utf8(plain[..colon].to_vec()).ok()?,
            password: plain[colon + 1..].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn users(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let hashed = |(name, password): &(&str, &str)| {
            let hash = bcrypt::hash(password, 4).unwrap();
            ((*name).to_owned(), hash)
        };
        pairs.iter().map(hashed).collect()
    }

    fn given(user: &str, password: &str) -> Credentials {
        Credentials {
            user: user.to_owned(),
            password: password.into(),
        }
    }

    fn remembered(passwords: &Passwords) -> usize {
        passwords.verified.lock().unwrap().len()
    }

    #[tokio::test]
    async fn only_the_right_password_of_the_right_user_is_taken_and_remembered() {
        let passwords = Arc::new(Passwords::new().unwrap());
        let users = users(&[("alice", "secret"), ("bob", "other")]);
        for (user, password) in [
            ("alice", "other"),
            ("bob", "secret"),
            ("carol", "other"),
            ("carol", "secret"),
            ("alice", ""),
            ("", "secret"),
        ] {
            assert!(
                !passwords.are_right(&users, &given(user, password)).await,
                "{user} {password}"
            );
        }
        assert_eq!(remembered(&passwords), 0);
        for _ in 0..3 {
            assert!(passwords.are_right(&users, &given("alice", "secret")).await);
        }
        assert_eq!(remembered(&passwords), 1);
    }

    #[tokio::test]
    async fn a_changed_password_holds_at_once() {
        let passwords = Arc::new(Passwords::new().unwrap());
        assert!(
            passwords
                .are_right(&users(&[("alice", "old")]), &given("alice", "old"))
                .await
        );
        let changed = users(&[("alice", "new")]);
        assert!(!passwords.are_right(&changed, &given("alice", "old")).await);
        assert!(passwords.are_right(&changed, &given("alice", "new")).await);
        assert!(
            !passwords
                .are_right(&users(&[("bob", "x")]), &given("alice", "new"))
                .await
        );
    }

    #[tokio::test]
    async fn a_check_that_nobody_waits_for_is_remembered_all_the_same() {
        let passwords = Arc::new(Passwords::new().unwrap());
        let users = users(&[("alice", "secret")]);
        let given = given("alice", "secret");
        let asked = passwords.are_right(&users, &given);
        // Polled once, which begins the check, and given up, unless the check was as quick as that.
        let _ = tokio::time::timeout(Duration::ZERO, asked).await;
        let _turn = passwords.turn.acquire().await.unwrap();
        assert_eq!(remembered(&passwords), 1);
    }

    #[tokio::test]
    async fn without_users_nobody_is_right() {
        let passwords = Arc::new(Passwords::new().unwrap());
        assert!(
            !passwords
                .are_right(&BTreeMap::new(), &given("alice", "secret"))
                .await
        );
    }

    #[tokio::test]
    async fn memory_is_bounded() {
        let passwords = Arc::new(Passwords::new().unwrap());
        // The prefix of 72 bytes is all that bcrypt takes, so that one user has any number of right passwords.
        let prefix = "x".repeat(72);
        let users = users(&[("alice", &prefix)]);
        for number in 0..REMEMBERED + 10 {
            let password = format!("{prefix}{number}");
            assert!(passwords.are_right(&users, &given("alice", &password)).await);
        }
        assert_eq!(remembered(&passwords), REMEMBERED);
    }

    #[test]
    fn headers_are_read_as_rfc_7617_says() {
        // The example of RFC 7617, 2.
        let given = Credentials::from_header(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").unwrap();
        assert_eq!(
            (given.user.as_str(), given.password.as_slice()),
            ("Aladdin", &b"open sesame"[..])
        );
        let given = Credentials::from_header(b"bASIC dTphOmI=").unwrap();
        assert_eq!(
            (given.user.as_str(), given.password.as_slice()),
            ("u", &b"a:b"[..])
        );
        for header in [
            &b""[..],
            b"Basic",
            b"Basic ",
            b"Basic !!!!",
            b"Basic dQ==",
            b"Bearer dTpi",
        ] {
            assert!(Credentials::from_header(header).is_none(), "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_survived(header: Vec<u8>) {
            Credentials::from_header(&header);
        }
    }
}
