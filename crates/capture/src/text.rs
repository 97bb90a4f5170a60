//! The text form of a tree of files, `sys.txt`: one line for each file, made to be read, compared and written by hand.
//!
//! ```text
//! # a comment
//! class/net/eth0 -> ../../devices/…/net/eth0
//! devices/…/net/eth0/mtu = 9000
//! devices/…/net/eth0/speed ! EINVAL
//! class/infiniband/
//! ```

use crate::files::{Files, Node};
use std::fmt::Write as _;

/// The newline at the end of a file's content, which nearly every file of sysfs has, is left out in the text. A file
/// without one is written with this at its end, as `echo -e` has it.
const NO_NEWLINE: &str = "\\c";

/// A line that is none of the forms.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadLine {
    /// Which, from 1.
    pub line: usize,
    /// What is wrong with it, and what is right.
    pub what: String,
}

/// The tree that `text` describes. The order of its lines is the order of inodes.
///
/// # Errors
/// The first line that is wrong.
pub(crate) fn parse(text: &str) -> Result<Files, BadLine> {
    let mut files = Files::new();
    for (at, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (path, node) = parse_line(line).map_err(|what| BadLine { line: at + 1, what })?;
        files.put(&path, node);
    }
    Ok(files)
}

fn parse_line(line: &str) -> Result<(String, Node), String> {
    let found = [" = ", " -> ", " ! "]
        .into_iter()
        .filter_map(|sign| Some((line.find(sign)?, sign)))
        .min();
    let Some((at, sign)) = found else {
        return match line.strip_suffix('/').or(line.strip_suffix(" =")) {
            Some(path) if line.ends_with('/') => Ok((checked(path)?, Node::Folder)),
            // An empty line is all that the file holds, and an editor has taken the space away.
            Some(path) => Ok((checked(path)?, Node::File(b"\n".to_vec()))),
            None => Err(format!(
                "{line:?} is neither PATH = CONTENT, PATH -> TARGET, PATH ! ERRNO nor PATH/"
            )),
        };
    };
    let path = checked(&line[..at])?;
    let value = &line[at + sign.len()..];
    let node = match sign {
        " = " => Node::File(content(value)?),
        " -> " => Node::Link(text_of(unescape(value)?)?),
        _ => {
            let errno = model::errno::number(value)
                .ok_or_else(|| format!("{value:?} is the name of no errno: write it as in EINVAL"))?;
            Node::Fault(errno)
        }
    };
    Ok((path, node))
}

/// The path, which stays inside the tree.
fn checked(path: &str) -> Result<String, String> {
    let path = text_of(unescape(path)?)?;
    let inside = path
        .split('/')
        .all(|part| !part.is_empty() && part != "." && part != "..");
    if inside {
        Ok(path)
    } else {
        Err(format!(
            "the path {path:?} must be relative and without empty parts, \".\" and \"..\""
        ))
    }
}

fn content(value: &str) -> Result<Vec<u8>, String> {
    // An escaped backslash before a c is no sign.
    let backslashes = value
        .strip_suffix('c')
        .map_or(0, |value| value.len() - value.trim_end_matches('\\').len());
    if backslashes % 2 == 1 {
        return unescape(&value[..value.len() - NO_NEWLINE.len()]);
    }
    let mut content = unescape(value)?;
    content.push(b'\n');
    Ok(content)
}

fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "a path has to be UTF-8".to_owned())
}

fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let (byte, tail) = escaped(rest)
            .ok_or_else(|| format!("{text:?} has a backslash before what is not n, t, xNN or a backslash"))?;
        out.push(byte);
        rest = tail;
    }
    Ok(out)
}

fn escaped(rest: &[u8]) -> Option<(u8, &[u8])> {
    match rest {
        [b'n', tail @ ..] => Some((b'\n', tail)),
        [b't', tail @ ..] => Some((b'\t', tail)),
        [b'\\', tail @ ..] => Some((b'\\', tail)),
        [b'x', high, low, tail @ ..] => {
            let digits = [*high, *low];
            let digits = std::str::from_utf8(&digits).ok()?;
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
            Some((byte, tail))
        }
        _ => None,
    }
}

/// The text of a tree, which [`parse`] reads back.
#[must_use]
pub(crate) fn print(files: &Files) -> String {
    let mut out = String::new();
    for (path, node) in files.ordered() {
        escape_path(path, &mut out);
        match node {
            Node::Folder => out.push('/'),
            Node::File(content) => {
                out.push_str(" = ");
                let line = content.strip_suffix(b"\n");
                escape(line.unwrap_or(content), &mut out);
                if line.is_none() {
                    out.push_str(NO_NEWLINE);
                }
            }
            Node::Fault(errno) => {
                out.push_str(" ! ");
                out.push_str(model::errno::name(*errno));
            }
            Node::Link(target) => {
                out.push_str(" -> ");
                escape(target.as_bytes(), &mut out);
            }
        }
        out.push('\n');
    }
    out
}

/// A path whose parts could be taken for a sign, or for the end of a line, has its spaces escaped.
fn escape_path(path: &str, out: &mut String) {
    let mut plain = String::new();
    escape(path.as_bytes(), &mut plain);
    let ambiguous = [" =", " ->", " !"].iter().any(|sign| plain.contains(sign)) || plain.starts_with('#');
    if ambiguous {
        plain = plain.replace(' ', "\\x20").replacen('#', "\\x23", 1);
    }
    out.push_str(&plain);
}

fn escape(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\\' => out.push_str("\\\\"),
                control if control.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in control.encode_utf8(&mut bytes).bytes() {
                        let _ = write!(out, "\\x{byte:02x}");
                    }
                }
                other => out.push(other),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_form_is_read() {
        let text = "# comment\n\na/b = 1\na/c ! EINVAL\na/d -> ../x\ne/\na/f = two\\nlines\na/g = none\\c\na/h =\n\
                    a/Pio Reserved 30 = 7\n";
        let files = parse(text).unwrap();
        assert_eq!(files.read("a/b"), Ok(&b"1\n"[..]));
        assert_eq!(files.read("a/c"), Err(crate::Miss::Errno(22)));
        assert_eq!(files.read("a/f"), Ok(&b"two\nlines\n"[..]));
        assert_eq!(files.read("a/g"), Ok(&b"none"[..]));
        assert_eq!(files.read("a/h"), Ok(&b"\n"[..]));
        assert_eq!(files.read("a/Pio Reserved 30"), Ok(&b"7\n"[..]));
        assert_eq!(files.list("e"), Ok(Vec::new()));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = |text: &str| parse(text).unwrap_err();
        assert_eq!(wrong("a = 1\nb\n").line, 2);
        assert!(wrong("a ! EFOO").what.contains("EFOO"));
        assert!(wrong("/a = 1").what.contains("relative"));
        assert!(wrong("a/../b = 1").what.contains("relative"));
        assert!(wrong("a = \\q").what.contains("backslash"));
        assert!(wrong("a = \\x+1").what.contains("backslash"));
    }

    fn part() -> impl Strategy<Value = String> {
        "[a-zA-Z0-9_,#!=>\\- ]{1,12}".prop_filter("no dots", |part| part != "." && part != "..")
    }

    fn node() -> impl Strategy<Value = Node> {
        prop_oneof![
            Just(Node::Folder),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(Node::File),
            prop::sample::select(vec![5, 22, 95, 110, 524]).prop_map(Node::Fault),
            "[a-z./ ]{1,20}".prop_map(Node::Link),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            nodes in prop::collection::vec((prop::collection::vec(part(), 1..4), node()), 0..20)
        ) {
            let mut files = Files::new();
            for (parts, node) in nodes {
                files.put(&parts.join("/"), node);
            }
            let read = parse(&print(&files)).unwrap();
            let (a, b): (Vec<_>, Vec<_>) = (files.ordered().collect(), read.ordered().collect());
            prop_assert_eq!(a, b);
        }

        #[test]
        fn no_text_is_a_crash(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }
    }
}
