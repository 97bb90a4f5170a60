//! Errnos as the words that labels and captures carry.

use crate::Why;

/// Errnos that sysfs, netlink and the drivers behind them answer with, by their numbers on x86-64 and arm64
/// (`include/uapi/asm-generic/errno{-base,}.h`; `ENOTSUPP`, which drivers hand out although no user space header has it:
/// include/linux/errno.h).
const NAMES: &[(i32, &str)] = &[
    (1, "EPERM"),
    (2, "ENOENT"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (9, "EBADF"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (34, "ERANGE"),
    (36, "ENAMETOOLONG"),
    (38, "ENOSYS"),
    (40, "ELOOP"),
    (61, "ENODATA"),
    (62, "ETIME"),
    (71, "EPROTO"),
    (75, "EOVERFLOW"),
    (90, "EMSGSIZE"),
    (93, "EPROTONOSUPPORT"),
    (95, "EOPNOTSUPP"),
    (97, "EAFNOSUPPORT"),
    (100, "ENETDOWN"),
    (105, "ENOBUFS"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (116, "ESTALE"),
    (121, "EREMOTEIO"),
    (125, "ECANCELED"),
    (524, "ENOTSUPP"),
];

/// The errno's name, `errno` for one that is not in the table.
#[must_use]
pub fn name(number: i32) -> &'static str {
    NAMES
        .iter()
        .find(|(known, _)| *known == number)
        .map_or("errno", |(_, name)| name)
}

/// The number of the errno of this name.
#[must_use]
pub fn number(name: &str) -> Option<i32> {
    NAMES
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(number, _)| *number)
}

/// The reason of an errno, met at `what`.
#[must_use]
pub fn why(number: i32, what: &str) -> Why {
    let said = std::io::Error::from_raw_os_error(number);
    Why::new(name(number), format!("{what}: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_named_as_the_kernel_names_it() {
        let why = why(22, "class/net/eth0/carrier");
        assert_eq!(why.reason, "EINVAL");
        assert_eq!(
            why.detail,
            "class/net/eth0/carrier: Invalid argument (os error 22)"
        );
        assert_eq!(name(524), "ENOTSUPP");
        assert_eq!(name(4000), "errno");
        assert_eq!(number("ETIMEDOUT"), Some(110));
        assert_eq!(number("errno"), None);
    }

    #[test]
    fn no_errno_has_two_names() {
        for (i, (number, name)) in NAMES.iter().enumerate() {
            let rest = &NAMES[i + 1..];
            assert!(
                rest.iter()
                    .all(|(other, other_name)| other != number && other_name != name),
                "{name}"
            );
        }
    }
}
