//! Questions to `history`, all in one small archive, in every format.

use crate::cli::{History, HistoryFormat};
use crate::commands;
use crate::page;
use archive::{Archive, Epoch, Limits, Now, Writer};
use jiff::tz::TimeZone;
use model::{Host as _, Opened, SourceKind};
use ring::Window;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND.cast_signed();
/// 2026-10-25 00:20 UTC, when it is 02:20 in Berlin for the first time.
const WALL: i64 = 1_792_887_600_000_000_000;
const MINUTES: u64 = 4;

/// The input is lines: format, from, to, port, signal, step; those that are missing or empty are as if not given.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let mut lines = text.split('\n');
    let mut next = || lines.next().filter(|line| !line.is_empty());
    let (format, since, until, port, signal, step) = (next(), next(), next(), next(), next(), next());
    let format = format.unwrap_or_default();
    let options = History {
        at: format.contains('@').then(|| since.unwrap_or("now").to_owned()),
        window: Duration::from_secs(60),
        since: since.unwrap_or("-15m").to_owned(),
        until: until.unwrap_or("now").to_owned(),
        port: port.map(str::to_owned),
        signal: signal.map(str::to_owned),
        step: step.and_then(|step| humantime::parse_duration(step).ok()),
        what_moved: format.contains('w'),
        all: format.contains('a'),
        format: match format.bytes().next() {
            Some(b'c') => HistoryFormat::Csv,
            Some(b'j') => HistoryFormat::Json,
            Some(b'p') => HistoryFormat::Parquet,
            Some(b'o') => HistoryFormat::Openmetrics,
            _ => HistoryFormat::Table,
        },
        archive: PathBuf::new(),
    };
    let end = WALL + (MINUTES * 60 * SECOND).cast_signed();
    let zone = TimeZone::get("Europe/Berlin").unwrap_or(TimeZone::UTC);
    let now = jiff::Timestamp::from_nanosecond(end.into()).expect("it is a time");
    match commands::history(archive(), &options, &now.to_zoned(zone)) {
        Ok((answer, span)) => check_answer(&options, &answer, span),
        Err(failure) => assert!(!failure.to_string().is_empty()),
    }
}

fn check_answer(options: &History, answer: &[u8], (from, to): (i64, i64)) {
    if options.format == HistoryFormat::Parquet {
        assert!(answer.starts_with(b"PAR1") && answer.ends_with(b"PAR1"));
        return;
    }
    let text = std::str::from_utf8(answer).expect("it is text");
    match options.format {
        HistoryFormat::Csv => {
            for line in text.lines().skip(1) {
                let fields: Vec<_> = line.split(',').collect();
                assert_eq!(fields.len(), 11, "{line}");
                let time: jiff::Timestamp = fields[0].parse().expect("a time");
                // The archive has microseconds.
                let around = i128::from(from) - 1_000..=i128::from(to) + 1_000;
                assert!(around.contains(&time.as_nanosecond()), "{line}");
                fields[8].parse::<u64>().expect("a number");
            }
        }
        HistoryFormat::Json => {
            let all: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
            assert!(all.is_array());
        }
        HistoryFormat::Openmetrics => check_samples(text),
        _ => assert!(text.ends_with('\n')),
    }
}

/// Without its times, and with one sample of each series, it is a page; the times of a series ascend.
fn check_samples(text: &str) {
    let mut page = String::new();
    let mut last: Option<(&str, f64)> = None;
    for line in text.lines() {
        let Some((sample, time)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else {
            page.extend([line, "\n"]);
            continue;
        };
        let series = sample.rsplit_once(' ').expect("it has a value").0;
        let time: f64 = time.parse().expect("a time");
        match last.filter(|(known, _)| *known == series) {
            Some((_, before)) => assert!(time > before, "{line}"),
            None => page.extend([sample, "\n"]),
        }
        last = Some((series, time));
    }
    page::check(&page, true);
}

/// Two ports over some minutes, in the midst of which the wall clock is set back an hour, as if by hand.
fn archive() -> &'static Archive {
    static ARCHIVE: OnceLock<(tempfile::TempDir, Archive)> = OnceLock::new();
    let made = ARCHIVE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path());
        let archive = Archive::open(folder.path()).expect("it opens");
        (folder, archive)
    });
    &made.1
}

fn write(folder: &std::path::Path) {
    let clock = sim::StepClock::default();
    let host = sim::Simulator::new(sim::Scenario::PfcStorm, 2, {
        let clock = clock.clone();
        move || clock.now()
    });
    let wall = |second: u64| {
        let leapt = if second < MINUTES * 30 { 0 } else { HOUR };
        WALL + (second * SECOND).cast_signed() - leapt
    };
    let limits = Limits {
        seal: Duration::from_secs(60),
        ..Limits::default()
    };
    let start = Now {
        monotonic: 0,
        wall: wall(0),
    };
    let mut writer = Writer::open(folder, limits, Epoch([1; 16]), start).expect("it opens");
    let mut sources = Vec::new();
    for port in host.ports().expect("there are ports") {
        for kind in SourceKind::ALL {
            if let Opened::Active(source) = host.open(&port, kind) {
                let track = writer.open_track(&port, source.schema());
                sources.push((source, track));
            }
        }
    }
    for second in 0..MINUTES * 60 {
        for (source, track) in &mut sources {
            let mut row = vec![model::ABSENT; source.schema().columns.len()];
            source.read(&mut row);
            let began = second * SECOND;
            writer.row(
                *track,
                Window {
                    began,
                    ended: began + 1_000,
                },
                &row,
            );
        }
        clock.advance(Duration::from_secs(1));
        writer.tick(Now {
            monotonic: (second + 1) * SECOND,
            wall: wall(second + 1),
        });
    }
    let _ = writer.finish();
}
