//! What comes from outside and goes out as text: label values and numbers.

// The modules that write it, which their parent keeps to itself.
#[allow(dead_code)]
#[path = "../../../crates/rocewatch/src/metrics/gzip.rs"]
mod gzip;
#[allow(dead_code)]
#[path = "../../../crates/rocewatch/src/metrics/number.rs"]
mod number;
#[allow(dead_code)]
#[path = "../../../crates/rocewatch/src/metrics/text.rs"]
mod text;

use crate::page::{self, Sample};
use catalog::{FamilyKind, Scale};
use flate2::read::GzDecoder;
use gzip::Gzip;
use number::Number;
use std::cell::RefCell;
use std::io::Read as _;
use text::Format;

const NAME: &str = "rocewatch_a";
const LABELS: [&str; 4] = ["device", "netdev", "firmware", "counter"];

thread_local! {
    /// Used again and again, as the daemon does.
    static GZIP: RefCell<Gzip> = RefCell::new(Gzip::new());
}

/// Whatever the labels hold and whatever the number is, one line comes out that says it, packed or not.
///
/// The input is a number and a scale, nine bytes, and then the text of the help and of the labels, a NUL between them.
pub fn check(input: &[u8]) {
    let Some((&value, rest)) = input.split_first_chunk::<8>() else {
        return;
    };
    let Some((&decimals, rest)) = rest.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    let mut texts = text.split('\0');
    let help = texts.next().unwrap_or_default();
    let labels: Vec<_> = LABELS.into_iter().zip(texts).collect();
    let count = u64::from_le_bytes(value);
    let float = f64::from_le_bytes(value);
    let scale = Scale {
        multiply: 4,
        decimals: decimals % 10,
    };
    let scaled = count as f64 * 4.0 / 10f64.powi(scale.decimals.into());
    for format in [Format::Text, Format::OpenMetrics] {
        round_trip(format, help, &labels, Number::Float(float), float);
        let page = round_trip(format, help, &labels, Number::Scaled(count, scale), scaled);
        check_packing(&page);
    }
}

fn round_trip(format: Format, help: &str, labels: &[(&str, &str)], number: Number, right: f64) -> Vec<u8> {
    let mut out = String::new();
    text::header(format, NAME, FamilyKind::Gauge, "", help, &mut out);
    text::prefix(NAME, "", labels.iter().copied(), &mut out);
    let mut out = out.into_bytes();
    number.write(&mut out);
    out.push(b'\n');
    let line = out.len();
    if format == Format::OpenMetrics {
        out.extend_from_slice(b"# EOF\n");
    }
    let page = std::str::from_utf8(&out).expect("an exposition is text");
    page::check(page, format == Format::OpenMetrics);

    let last = page[..line].lines().next_back().expect("a line was written");
    let Sample {
        labels: read, value, ..
    } = page::sample(last);
    assert!(
        read.iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .eq(labels.iter().copied())
    );
    let is_right =
        value == right || (value - right).abs() <= right.abs() * 1e-15 || (value.is_nan() && right.is_nan());
    assert!(is_right, "{last} is not {right}");
    out
}

fn check_packing(page: &[u8]) {
    let mut unpacked = Vec::new();
    let packed = GZIP.with_borrow_mut(|gzip| gzip.pack(page));
    GzDecoder::new(&*packed)
        .read_to_end(&mut unpacked)
        .expect("what was packed can be unpacked");
    assert_eq!(unpacked, page);
}
