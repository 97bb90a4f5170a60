//! Errnos as the words that labels carry.

use model::Why;
use rustix::io::Errno;

/// `ENOTSUPP`, which no user space header has: drivers hand it out all the same (include/linux/errno.h).
const ENOTSUPP: Errno = Errno::from_raw_os_error(524);

/// Errnos that sysfs, netlink and the drivers behind them answer with.
const NAMES: &[(Errno, &str)] = &[
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::BADF, "EBADF"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::FAULT, "EFAULT"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::RANGE, "ERANGE"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::LOOP, "ELOOP"),
    (Errno::NODATA, "ENODATA"),
    (Errno::TIME, "ETIME"),
    (Errno::PROTO, "EPROTO"),
    (Errno::OVERFLOW, "EOVERFLOW"),
    (Errno::MSGSIZE, "EMSGSIZE"),
    (Errno::PROTONOSUPPORT, "EPROTONOSUPPORT"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::AFNOSUPPORT, "EAFNOSUPPORT"),
    (Errno::NETDOWN, "ENETDOWN"),
    (Errno::NOBUFS, "ENOBUFS"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::CONNREFUSED, "ECONNREFUSED"),
    (Errno::CANCELED, "ECANCELED"),
    (Errno::STALE, "ESTALE"),
    (Errno::REMOTEIO, "EREMOTEIO"),
    (ENOTSUPP, "ENOTSUPP"),
];

/// The errno's name, `errno` for one that is not in the table.
pub(crate) fn name(errno: Errno) -> &'static str {
    NAMES
        .iter()
        .find(|(known, _)| *known == errno)
        .map_or("errno", |(_, name)| name)
}

/// The reason of an errno, met at `what`.
pub(crate) fn why_from_errno(errno: Errno, what: &str) -> Why {
    Why::new(name(errno), format!("{what}: {}", std::io::Error::from(errno)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_named_as_the_kernel_names_it() {
        let why = why_from_errno(Errno::INVAL, "class/net/eth0/carrier");
        assert_eq!(why.reason, "EINVAL");
        assert_eq!(
            why.detail,
            "class/net/eth0/carrier: Invalid argument (os error 22)"
        );
        assert_eq!(name(Errno::from_raw_os_error(524)), "ENOTSUPP");
        assert_eq!(name(Errno::from_raw_os_error(4000)), "errno");
    }

    #[test]
    fn no_errno_has_two_names() {
        for (i, (errno, _)) in NAMES.iter().enumerate() {
            assert!(
                NAMES[i + 1..].iter().all(|(other, _)| other != errno),
                "{errno:?}"
            );
        }
    }
}
