//! Numbers in the kernel's files, against the standard library's reader.

use linux::fuzzing::number::{decimal, hexadecimal, total};

/// `decimal`, `hexadecimal` and `total` take what the kernel prints, all of it and nothing else.
pub fn check(content: &[u8]) {
    let line = content.strip_suffix(b"\n").unwrap_or(content);
    let text = std::str::from_utf8(line).ok();
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    assert_eq!(
        decimal(content).ok(),
        digits.and_then(|digits| digits.parse().ok())
    );

    let hex = text.and_then(|text| text.strip_prefix("0x"));
    let hex = hex.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let zero = digits.is_some_and(|digits| digits.parse() == Ok(0u64));
    let right = match hex {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => zero.then_some(0),
    };
    assert_eq!(hexadecimal(content).ok(), right);

    let mut lines = content.split(|byte| *byte == b'\n');
    let count = lines.find_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        line.starts_with(b"TOTAL_ERR_").then(|| &line[at + 1..])
    });
    assert_eq!(total(content).ok(), count.and_then(|count| decimal(count).ok()));
}
