//! Errnos as reasons.

use model::Why;
use rustix::io::Errno;

/// The reason of an errno, met at `what`.
pub(crate) fn why_from_errno(errno: Errno, what: &str) -> Why {
    model::errno::why(errno.raw_os_error(), what)
}
