//! Where this crate takes the time.

use std::time::Instant;

/// Now, monotonic.
#[allow(clippy::disallowed_methods)] // the one place
pub(crate) fn now() -> Instant {
    Instant::now()
}
