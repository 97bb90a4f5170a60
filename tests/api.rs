//! The HTTP API of the whole binary: what it answers, and that `docs/openapi.json` says so.

#![allow(clippy::disallowed_methods)] // tests wait and look at files

#[allow(dead_code, unreachable_pub)]
#[path = "../crates/rocewatch/src/http/read/messages.rs"]
mod messages;
#[allow(dead_code, unreachable_pub)]
#[path = "../crates/rocewatch/src/http/read/reader.rs"]
mod reader;
mod support;

use catalog::Origin;
use messages::{
    ChunkedReadResponse, LabelMatcher, MatcherType, Query, ReadRequest, ReadResponse, ResponseType,
};
use prost::Message as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use support::{Daemon, request};

/// A simulated minute in a second.
const SPEED: &str = "60";

fn demo(state: &Path) -> Daemon {
    let daemon = Daemon::start(&[
        "demo",
        "--scenario",
        "pfc-storm",
        "--ports",
        "2",
        "--speed",
        SPEED,
        "--state",
        state.to_str().expect("paths are text"),
    ]);
    daemon.wait_until_ready();
    daemon.wait_for("rows are archived", Duration::from_secs(60), |metrics| {
        metrics
            .get("rocewatch_archive_rows_total", &[])
            .is_some_and(|found| found >= 3_000.0)
    });
    daemon
}

#[track_caller]
fn json(daemon: &Daemon, path: &str) -> (u16, Value) {
    let (head, body) = daemon.get(path, &[]);
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    assert!(head.contains("content-type: application/json"), "{path}: {head}");
    let value = serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{path}: {error}"));
    (status.expect("an answer has a status"), value)
}

#[track_caller]
fn refused(daemon: &Daemon, path: &str) -> (u16, String) {
    let (status, answer) = json(daemon, path);
    let error = answer["error"].as_str().expect("it says why").to_owned();
    (status, error)
}

/// Every value of a history, by series and time.
fn points(page: &Value) -> BTreeMap<(String, String), Value> {
    let mut found = BTreeMap::new();
    for series in page["series"].as_array().expect("series") {
        let name = format!("{} {} {}", series["device"], series["source"], series["counter"]);
        for point in series["points"].as_array().expect("points") {
            let time = point["time"].as_str().expect("a time").to_owned();
            assert_eq!(
                found.insert((name.clone(), time), point.clone()),
                None,
                "no value comes twice"
            );
        }
    }
    found
}

#[test]
fn pages_put_together_are_the_answer_in_one() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path());
    let (_, all) = json(
        &daemon,
        "/api/v1/history?since=-5m&until=-2m&port=mlx5_1&signal=rx_packets_phy&limit=1000",
    );
    assert_eq!(all["next"], Value::Null);
    assert_eq!(all["damages"], serde_json::json!([]));
    let series = &all["series"][0];
    assert_eq!(series["device"], "mlx5_1");
    assert_eq!(series["signal"], "packets.rx");
    let span = format!(
        "since={}&until={}",
        all["from"].as_str().unwrap(),
        all["to"].as_str().unwrap()
    );
    let all = points(&all);
    assert!(all.len() > 100, "{} values in three minutes", all.len());
    let mut pages = BTreeMap::new();
    let first = format!("/api/v1/history?{span}&port=mlx5_1&signal=rx_packets_phy&limit=40");
    let mut path = first.clone();
    let mut count = 0;
    loop {
        let (status, page) = json(&daemon, &path);
        assert_eq!(status, 200, "{page}");
        let more = points(&page);
        assert!(more.len() <= 40);
        pages.extend(more);
        count += 1;
        let Some(next) = page["next"].as_str() else { break };
        path = format!("{first}&cursor={next}");
    }
    assert!(count > 3);
    assert!(
        pages == all,
        "{count} pages of {} values, not {}",
        pages.len(),
        all.len()
    );
}

#[test]
fn what_cannot_be_answered_says_what_to_do() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path());
    for (path, status, words) in [
        ("/api/v1/history?port=mlx5_9", 404, "/api/v1/ports"),
        ("/api/v1/history?signal=no.such", 404, "rocewatch counters"),
        ("/api/v1/history?since=soon", 400, "since: \"soon\" is no time"),
        (
            "/api/v1/history?since=now&until=-1h",
            400,
            "since is not before until",
        ),
        ("/api/v1/history?at=now&since=-1h", 400, "at goes with window"),
        ("/api/v1/history?window=1h", 400, "window goes with at"),
        ("/api/v1/history?step=10ms", 400, "a step is at least 1s"),
        ("/api/v1/history?limit=0", 400, "limit is 1 to 100000"),
        ("/api/v1/history?limit=1", 400, "name a port or a signal"),
        ("/api/v1/history?cursor=x", 400, "cursor: take it from `next`"),
        ("/api/v1/history?colour=red", 400, "unknown field `colour`"),
        ("/api/v1/read", 405, "does not take this method"),
        ("/api/v2", 404, "/ lists what there is"),
    ] {
        let (found, error) = refused(&daemon, path);
        assert_eq!(found, status, "{path}: {error}");
        assert!(error.contains(words), "{path}: {error}");
    }
}

#[test]
fn without_an_archive_it_says_how_to_have_one() {
    let daemon = Daemon::start(&["demo", "--ports", "1"]);
    let (status, error) = refused(&daemon, "/api/v1/history");
    assert_eq!(status, 503);
    assert!(error.contains("--state DIR"), "{error}");
    let (head, _) = request(daemon.address(), "POST /api/v1/read", &[], b"");
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
}

/// A series' labels, and its samples by time.
type Found = BTreeMap<BTreeMap<String, String>, Vec<(i64, f64)>>;

fn labels(labels: &[messages::Label]) -> BTreeMap<String, String> {
    assert!(labels.is_sorted_by(|a, b| a.name < b.name), "labels are in order");
    labels
        .iter()
        .map(|label| (label.name.clone(), label.value.clone()))
        .collect()
}

fn read_request(matchers: &[(MatcherType, &str, &str)], kind: ResponseType) -> Vec<u8> {
    let matcher = |(kind, name, value): &(MatcherType, &str, &str)| LabelMatcher {
        kind: (*kind).into(),
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    let request = ReadRequest {
        queries: vec![Query {
            start_timestamp_ms: 0,
            end_timestamp_ms: i64::MAX,
            matchers: matchers.iter().map(matcher).collect(),
        }],
        accepted_response_types: vec![kind.into()],
    };
    snap::raw::Encoder::new()
        .compress_vec(&request.encode_to_vec())
        .expect("it is small")
}

fn remote_read(
    daemon: &Daemon,
    matchers: &[(MatcherType, &str, &str)],
    kind: ResponseType,
) -> (String, Vec<u8>) {
    let (head, body) = request(
        daemon.address(),
        "POST /api/v1/read",
        &[],
        &read_request(matchers, kind),
    );
    assert!(
        head.starts_with("HTTP/1.1 200"),
        "{head}\n{}",
        String::from_utf8_lossy(&body)
    );
    (head, body)
}

fn samples(daemon: &Daemon, matchers: &[(MatcherType, &str, &str)]) -> Found {
    let (head, body) = remote_read(daemon, matchers, ResponseType::Samples);
    assert!(
        head.contains("content-type: application/x-protobuf") && head.contains("content-encoding: snappy"),
        "{head}"
    );
    let body = snap::raw::Decoder::new()
        .decompress_vec(&body)
        .expect("it is packed");
    let response = ReadResponse::decode(&*body).expect("it is a response");
    assert_eq!(response.results.len(), 1);
    let found = response.results[0].timeseries.iter().map(|series| {
        let samples = series
            .samples
            .iter()
            .map(|sample| (sample.timestamp, sample.value));
        (labels(&series.labels), samples.collect())
    });
    found.collect()
}

fn streamed(daemon: &Daemon, matchers: &[(MatcherType, &str, &str)]) -> Found {
    let (head, body) = remote_read(daemon, matchers, ResponseType::StreamedXorChunks);
    assert!(
        head.contains("application/x-streamed-protobuf; proto=prometheus.chunkedreadresponse"),
        "{head}"
    );
    let mut found = Found::new();
    let mut rest = &body[..];
    while !rest.is_empty() {
        let length = prost::encoding::decode_varint(&mut rest).expect("a length");
        let (sum, more) = rest.split_at(4);
        let (message, more) = more.split_at(usize::try_from(length).unwrap());
        rest = more;
        assert_eq!(sum, crc32c::crc32c(message).to_be_bytes());
        let response = ChunkedReadResponse::decode(message).expect("it is a response");
        assert_eq!(response.query_index, 0);
        for series in response.chunked_series {
            let samples = found.entry(labels(&series.labels)).or_default();
            for chunk in series.chunks {
                let read = reader::read(&chunk.data);
                assert_eq!(
                    (chunk.min_time_ms, chunk.max_time_ms),
                    (read[0].0, read[read.len() - 1].0)
                );
                samples.extend(
                    read.into_iter()
                        .map(|(time, value)| (time, f64::from_bits(value))),
                );
            }
        }
    }
    found
}

/// The values of a scrape, by labels, of families that show counters.
fn scraped(daemon: &Daemon) -> BTreeMap<BTreeMap<String, String>, f64> {
    let metrics = daemon.scrape();
    let mut found = BTreeMap::new();
    for family in catalog::FAMILIES
        .iter()
        .filter(|family| matches!(family.origin, Origin::Counters | Origin::Raw))
    {
        for (series, value) in metrics.all(&family.exposed_name(), &[]) {
            let (name, rest) = series.split_once('{').expect("every counter has labels");
            let pairs = rest
                .trim_end_matches("\"}")
                .split("\",")
                .filter_map(|pair| pair.split_once("=\""));
            let labels = pairs
                .chain([("__name__", name)])
                .filter(|(_, value)| !value.is_empty());
            found.insert(
                labels
                    .map(|(label, value)| (label.to_owned(), value.to_owned()))
                    .collect(),
                value,
            );
        }
    }
    found
}

/// What is scraped is archived under the same name, with the same labels and in the same unit.
#[test]
fn remote_read_goes_on_where_a_scrape_stands() {
    use MatcherType::{NotRegex, Regex};
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path());
    let before = scraped(&daemon);
    assert!(before.len() > 300, "{} series", before.len());
    // Each second of the archive is written in the second after it: sixtieths of a second here.
    std::thread::sleep(Duration::from_secs(2));
    let all = [
        (Regex, "__name__", "rocewatch_.+"),
        (NotRegex, "device", "mlx5_[2-9]"),
    ];
    let found = samples(&daemon, &all);
    let after = scraped(&daemon);
    for (labels, value) in &before {
        let archived = found
            .get(labels)
            .unwrap_or_else(|| panic!("not archived: {labels:?}"));
        assert!(archived.is_sorted_by(|a, b| a.0 < b.0), "{labels:?}");
        let (_, last) = *archived.last().expect("no series is empty");
        if labels["__name__"].ends_with("_total") {
            let now = after[labels];
            assert!(
                (*value..=now).contains(&last),
                "{labels:?}: {value}, then {last}, then {now}"
            );
        }
    }
    let raw = |labels: &BTreeMap<String, String>| labels.contains_key("counter");
    for labels in found.keys().filter(|labels| !raw(labels)) {
        assert!(before.contains_key(labels), "not scraped: {labels:?}");
    }
}

#[test]
fn both_encodings_of_remote_read_say_the_same() {
    use MatcherType::{Equal, NotEqual, NotRegex, Regex};
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path());
    let name = "rocewatch_pfc_pause_seconds_total";
    let matchers = [
        (Equal, "__name__", name),
        (Regex, "device", "mlx5_[1-7]"),
        (NotRegex, "direction", "tx|"),
        (NotEqual, "priority", "4"),
    ];
    let chunks = streamed(&daemon, &matchers);
    let samples = samples(&daemon, &matchers);
    assert_eq!(
        samples.len(),
        7,
        "priorities of one direction of one port but one"
    );
    assert!(samples.keys().eq(chunks.keys()));
    for (labels, samples) in &samples {
        assert_eq!((&*labels["device"], &*labels["direction"]), ("mlx5_1", "rx"));
        assert!(samples.len() > 100 && samples.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        // More may have been archived since.
        let chunks = &chunks[labels];
        assert_eq!(samples[..chunks.len()], chunks[..]);
    }
}

#[test]
fn a_remote_read_that_is_none_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path());
    let post = |body: &[u8]| {
        let (head, body) = request(daemon.address(), "POST /api/v1/read", &[], body);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let answer: Value = serde_json::from_slice(&body).expect("it is JSON");
        let error = answer["error"].as_str().expect("it says why").to_owned();
        (status.unwrap_or(0), error)
    };
    let pack = |bytes: &[u8]| snap::raw::Encoder::new().compress_vec(bytes).unwrap();
    let expression = read_request(&[(MatcherType::Regex, "device", "(")], ResponseType::Samples);
    let other = ReadRequest {
        queries: Vec::new(),
        accepted_response_types: vec![9],
    };
    for (body, status, words) in [
        (b"hello".to_vec(), 400, "remote_read of Prometheus"),
        (pack(b"hello"), 400, "no such message"),
        (vec![b'x'; 65 * 1024], 413, "at most 65536 bytes"),
        (pack(&vec![0; 300 * 1024]), 413, "at most 262144 bytes"),
        (expression, 400, "no regular expression"),
        (pack(&other.encode_to_vec()), 400, "STREAMED_XOR_CHUNKS"),
    ] {
        let (found, error) = post(&body);
        assert_eq!(found, status, "{error}");
        assert!(error.contains(words), "{error}");
    }
}
