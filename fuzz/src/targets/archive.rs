//! Files of an archive: logs, segments, pins, records.
//!
//! Checksums keep chance from the readers behind them. So an input that begins with `s` is a script of frames, to which
//! this target gives heads and checksums that are right; any other is a file as it is.

use archive::{Archive, Query};
use std::num::NonZeroU64;
use std::ops::ControlFlow;

/// What each frame of a script begins with: kind, flags, length of the meta, and of the body in two bytes.
const HEAD: usize = 5;
/// The flag of a body that is to be compressed.
const COMPRESSED: u8 = 1;

/// Whatever the bytes are, reading them ends, and all ways to look up agree.
pub fn check(input: &[u8]) {
    let bytes = match input.split_first() {
        Some((b's', script)) => frames(script),
        _ => input.to_vec(),
    };
    let Ok(archive) = Archive::from_bytes("input", bytes) else {
        return;
    };
    for span in archive.tracks() {
        assert!(span.rows > 0);
        let schema = span.track.schema();
        assert_eq!(schema.columns.len(), span.track.columns.len());
        let query = Query {
            port: &span.track.port,
            source: span.track.source,
            columns: &[],
            from: i64::MIN,
            to: i64::MAX,
        };
        let rows = rows(&archive, &query);
        for step in [1, 1_000_000_000, u64::MAX] {
            steps(&archive, &query, NonZeroU64::new(step).expect("not zero"), rows);
        }
        let narrow = Query {
            from: span.first,
            to: span.first,
            ..query
        };
        assert!(self::rows(&archive, &narrow) <= rows);
    }
    if let Ok((records, _)) = archive.records(i64::MIN, i64::MAX) {
        assert!(records.is_sorted_by_key(|record| record.began));
    }
}

/// How many rows there are, the same both ways.
fn rows(archive: &Archive, query: &Query<'_>) -> usize {
    let mut visited = 0;
    let damages = archive.visit(query, |rows| {
        visited += rows.times.len();
        ControlFlow::Continue(())
    });
    let found = archive.rows(query);
    assert_eq!(found.damages, damages);
    for rows in &found.rows {
        for values in &rows.columns {
            assert!(values.column < rows.track.columns.len());
            assert_eq!(values.values.len(), rows.times.len());
            assert_eq!(values.extremes.len(), rows.times.len());
        }
    }
    let rows = found.rows.iter().map(|rows| rows.times.len()).sum();
    assert_eq!(visited, rows);
    rows
}

/// Every row is in one step.
fn steps(archive: &Archive, query: &Query<'_>, step: NonZeroU64, rows: usize) {
    let (stepped, _) = archive.stepped(query, step);
    let of_first = stepped.iter().filter(|stepped| stepped.column == 0);
    let counted: u64 = of_first
        .flat_map(|stepped| &stepped.steps)
        .map(|step| step.rows)
        .sum();
    if !stepped.is_empty() {
        assert_eq!(counted, rows as u64);
    }
}

/// A file of these frames (docs/archive-format.md).
fn frames(mut script: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((&[kind, flags, meta, low, high], rest)) = script.split_first_chunk::<HEAD>() {
        let (meta, rest) = rest.split_at(rest.len().min(meta.into()));
        let (body, rest) = rest.split_at(rest.len().min(u16::from_le_bytes([low, high]).into()));
        let packed = zstd::bulk::compress(body, 1).expect("memory suffices");
        frame(
            kind,
            meta,
            if flags & COMPRESSED == 0 { body } else { &packed },
            &mut out,
        );
        script = rest;
    }
    out
}

fn frame(kind: u8, meta: &[u8], body: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let length = |length: usize| u32::try_from(length).expect("inputs are small").to_le_bytes();
    out.extend_from_slice(&[0xf5, b'R', b'W', 1, kind, 0]);
    out.extend_from_slice(&length(meta.len())[..2]);
    out.extend_from_slice(&length(body.len()));
    out.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    out.extend_from_slice(meta);
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(body);
}
