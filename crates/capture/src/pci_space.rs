//! Configuration space of PCI functions: as text that lspci(8) prints and reads, and without what tells a machine apart.

use crate::BadLine;
use std::fmt::Write as _;

/// Bytes of a line.
const LINE: usize = 16;
/// Longest space.
const EXTENDED: usize = 0x1000;
/// The header, which is kept; the list of capabilities begins behind it, the one of extended capabilities at 0x100.
const HEADER: usize = 0x40;
const CONVENTIONAL: usize = 0x100;
/// Status register, its bit that says that there is a list, and where the list begins.
const STATUS: usize = 0x06;
const HAS_LIST: u8 = 0x10;
const LIST: usize = 0x34;
/// What is kept of capabilities, by identity and length: `PCI_CAP_ID_*` and `PCI_EXT_CAP_ID_*` of
/// `include/uapi/linux/pci_regs.h`. Power management and PCI Express; AER without its log of headers, ACS, ARI, ATS, SR-IOV,
/// lanes at 8 and 16 GT/s. Of all others there is nothing but that they are there: what a vendor's own hold nobody knows, and the
/// data register of VPD has whatever was read last.
const KEPT: [(u16, usize); 2] = [(0x01, 8), (0x10, 0x3c)];
const KEPT_EXTENDED: [(u16, usize); 8] = [
    (0x01, 0x1c),
    (SERIAL, 12),
    (0x0d, 8),
    (0x0e, 8),
    (0x0f, 8),
    (0x10, 0x40),
    (0x19, 0x2c),
    (0x26, 0x30),
];
/// `PCI_EXT_CAP_ID_DSN`: an EUI-64 behind the capability's header, the lower half first.
const SERIAL: u16 = 0x03;
const SERIAL_AT: usize = 4;

/// The file `config` of a PCI function below `devices/`: the function's address.
pub(crate) fn function_of(path: &str) -> Option<&str> {
    let folder = path.strip_prefix("devices/")?.strip_suffix("/config")?;
    let name = folder.rsplit('/').next()?;
    is_address(name).then_some(name)
}

/// True of `0000:1a:00.0`; domains may have more digits.
pub(crate) fn is_address(name: &str) -> bool {
    let digits =
        |text: &str, least: usize| text.len() >= least && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut parts = name.split([':', '.']);
    let mut next = |least| parts.next().is_some_and(|part| digits(part, least));
    let is_whole = next(4) && next(2) && next(2) && next(1);
    is_whole && parts.next().is_none()
}

/// The text, which `lspci -F FILE -vv` decodes.
pub(crate) fn print(address: &str, space: &[u8]) -> String {
    let mut out = format!("{address} configuration space\n");
    for (line, bytes) in space.chunks(LINE).enumerate() {
        let _ = write!(out, "{:02x}:", line * LINE);
        for byte in bytes {
            let _ = write!(out, " {byte:02x}");
        }
        out.push('\n');
    }
    out
}

/// The bytes of a text as [`print`] and lspci write it.
///
/// # Errors
/// The first line that is wrong.
pub(crate) fn parse(text: &str) -> Result<Vec<u8>, BadLine> {
    let mut space = Vec::new();
    for (at, line) in text.lines().enumerate().skip(1) {
        if line.is_empty() {
            continue;
        }
        let wrong = |what: String| BadLine { line: at + 1, what };
        let bytes = bytes_of(line, space.len()).ok_or_else(|| {
            wrong(format!(
                "{line:?} is not bytes from {:02x} on, as lspci -xxxx has them",
                space.len()
            ))
        })?;
        space.extend(bytes);
        if space.len() > EXTENDED {
            return Err(wrong(format!("no space has more than {EXTENDED} bytes")));
        }
    }
    Ok(space)
}

fn bytes_of(line: &str, from: usize) -> Option<Vec<u8>> {
    let (offset, bytes) = line.split_once(':')?;
    if usize::from_str_radix(offset, 16).ok()? != from {
        return None;
    }
    let byte = |word: &str| {
        let is_byte = word.len() == 2 && word.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(word, 16).ok().filter(|_| is_byte)
    };
    bytes.split_ascii_whitespace().map(byte).collect()
}

/// The space with a pseudonym for the serial number, and without what is not known to be harmless.
pub(crate) fn hide(space: &[u8], pseudonym: impl Fn([u8; 8]) -> [u8; 8]) -> Vec<u8> {
    let mut hidden = vec![0; space.len()];
    let mut keep = |from: usize, length: usize| {
        let to = (from + length).min(space.len());
        if from < to {
            hidden[from..to].copy_from_slice(&space[from..to]);
        }
    };
    keep(0, HEADER);
    let mut serials = Vec::new();
    for Capability { at, id, header } in capabilities(space) {
        let known: &[(u16, usize)] = if at < CONVENTIONAL { &KEPT } else { &KEPT_EXTENDED };
        let kept = known.iter().find(|(known, _)| *known == id);
        keep(at, kept.map_or(header, |(_, length)| *length));
        if at >= CONVENTIONAL && id == SERIAL {
            serials.push(at + SERIAL_AT);
        }
    }
    for at in serials {
        if let Some(place) = hidden.get_mut(at..at + 8) {
            // As an EUI-64 is written: the upper half first, and of each the highest byte.
            let mut number: [u8; 8] = std::array::from_fn(|byte| place[7 - byte]);
            number = pseudonym(number);
            number.reverse();
            place.copy_from_slice(&number);
        }
    }
    hidden
}

struct Capability {
    at: usize,
    id: u16,
    /// Bytes that say what it is and where the next one is.
    header: usize,
}

/// Both lists. Each byte of a space is in them once at most, so that one that leads in a circle ends.
fn capabilities(space: &[u8]) -> Vec<Capability> {
    let mut found: Vec<Capability> = Vec::new();
    let has_list = space.get(STATUS).is_some_and(|status| status & HAS_LIST != 0);
    let mut at = space
        .get(LIST)
        .filter(|_| has_list)
        .map_or(0, |at| usize::from(at & 0xfc));
    while (HEADER..CONVENTIONAL).contains(&at)
        && let Some([id, next]) = space.get(at..).and_then(|rest| rest.first_chunk())
        && found.iter().all(|known| known.at != at)
    {
        found.push(Capability {
            at,
            id: u16::from(*id),
            header: 2,
        });
        at = usize::from(next & 0xfc);
    }
    at = CONVENTIONAL;
    while at >= CONVENTIONAL
        && let Some(&[low, high, next, last]) = space.get(at..).and_then(|rest| rest.first_chunk())
        && found.iter().all(|known| known.at != at)
    {
        // A device without any answers zeros, one that is off the bus all ones.
        if [[0; 4], [0xff; 4]].contains(&[low, high, next, last]) {
            break;
        }
        found.push(Capability {
            at,
            id: u16::from_le_bytes([low, high]),
            header: 4,
        });
        at = usize::from(u16::from_le_bytes([next, last]) >> 4) & 0xffc;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: [u8; 8] = *b"serialno";

    /// PCI Express, VPD and a capability of the vendor's; AER, the serial number, ACS and one of the vendor's.
    fn space() -> Vec<u8> {
        let mut space = vec![0xa5; EXTENDED];
        space[STATUS] = HAS_LIST;
        space[LIST] = 0x60;
        for (at, id, next) in [(0x60, 0x10, 0x48), (0x48, 0x03, 0xc0), (0xc0, 0x09, 0)] {
            space[at..at + 2].copy_from_slice(&[id, next]);
        }
        for (at, id, next) in [
            (0x100, 0x01, 0x150),
            (0x150, 0x03, 0x160),
            (0x160, 0x0d, 0x200),
            (0x200, 0x0b, 0),
        ] {
            let header: u32 = id | 1 << 16 | next << 20;
            space[at..at + 4].copy_from_slice(&header.to_le_bytes());
        }
        space[0x154..0x15c].copy_from_slice(&SECRET);
        space
    }

    #[test]
    fn what_is_known_stays_and_all_else_is_gone() {
        let space = space();
        let hidden = hide(&space, |mut number| {
            let mut right = SECRET;
            right.reverse();
            assert_eq!(number, right);
            number[5..].copy_from_slice(b"new");
            number
        });
        assert_eq!(hidden.len(), space.len());
        for kept in [0..0x48, 0x60..0x9c, 0x100..0x11c, 0x160..0x168, 0x200..0x204] {
            // Behind the header nothing is kept before a capability is known.
            let kept = if kept.start == 0 { 0..HEADER } else { kept };
            assert_eq!(hidden[kept.clone()], space[kept.clone()], "{kept:x?}");
        }
        assert_eq!(hidden[0x48..0x4c], [0x03, 0xc0, 0, 0], "VPD");
        assert_eq!(hidden[0xc0..0xc4], [0x09, 0, 0, 0], "the vendor's");
        assert_eq!(hidden[0x204..0x208], [0; 4], "the vendor's");
        assert_eq!(hidden[0x154..0x15c], *b"wenialno");
        let secret = |space: &[u8]| space.windows(4).any(|bytes| bytes == [0xa5; 4]);
        assert!(secret(&space) && !secret(&hidden[0x120..0x150]) && !secret(&hidden[0x208..]));
    }

    #[test]
    fn a_list_that_leads_in_a_circle_ends() {
        let mut space = vec![0; 0x100];
        space[STATUS] = HAS_LIST;
        space[LIST] = 0x40;
        space[0x40..0x42].copy_from_slice(&[0x10, 0x50]);
        space[0x50..0x52].copy_from_slice(&[0x09, 0x40]);
        assert_eq!(capabilities(&space).len(), 2);
    }

    #[test]
    fn lspci_s_text_is_read() {
        let text = "1a:00.0 Ethernet controller: Mellanox Technologies MT2910\n00: b3 15 21 10\n\n";
        assert_eq!(parse(text), Ok(vec![0xb3, 0x15, 0x21, 0x10]));
        for wrong in ["x\n10: 00", "x\n00: 0", "x\n00: +1", "x\n00 00", "x\nzz: 00"] {
            assert_eq!(parse(wrong).unwrap_err().line, 2, "{wrong}");
        }
    }

    #[test]
    fn a_function_is_known_by_its_address() {
        let path = "devices/pci0000:00/0000:00:01.0/0000:1a:00.0/config";
        assert_eq!(function_of(path), Some("0000:1a:00.0"));
        for other in [
            "class/net/eth0/config",
            "devices/pci0000:00/config",
            "devices/0000:1a:00.0/mtu",
        ] {
            assert_eq!(function_of(other), None);
        }
        assert!(is_address("10000:e1:00.0") && !is_address("1a:00.0") && !is_address("0000:1a:00.0.1"));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(space in prop::collection::vec(any::<u8>(), 0..EXTENDED)) {
            prop_assert_eq!(parse(&print("0000:1a:00.0", &space)).unwrap(), space);
        }

        #[test]
        fn any_space_is_hidden_at_its_length(space in prop::collection::vec(any::<u8>(), 0..EXTENDED + 1)) {
            prop_assert_eq!(hide(&space, |number| number).len(), space.len());
        }

        #[test]
        fn no_text_is_a_crash(text in "\\PC{0,200}\n[0-9a-f :]{0,100}") {
            let _ = parse(&text);
        }
    }
}
