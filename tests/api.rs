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
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Daemon, request};

/// The file, held against the paths.
fn openapi() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let text = std::fs::read_to_string(path).expect("docs/openapi.json is there");
    serde_json::from_str(&text).expect("it is JSON")
}

fn demo(state: &Path) -> Daemon {
    let daemon = Daemon::storm(state);
    daemon.wait_for_rows(3_000.0);
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
    assert!(all.len() > 20, "{} values in three minutes", all.len());
    let mut pages = BTreeMap::new();
    let first = format!("/api/v1/history?{span}&port=mlx5_1&signal=rx_packets_phy&limit=8");
    let mut path = first.clone();
    let mut count = 0;
    loop {
        let (status, page) = json(&daemon, &path);
        assert_eq!(status, 200, "{page}");
        let more = points(&page);
        assert!(more.len() <= 8);
        pages.extend(more);
        count += 1;
        let Some(next) = page["next"].as_str() else { break };
        path = format!("{first}&cursor={next}");
    }
    assert!(count > 2);
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

/// A series' labels, and its samples by time; none where the series ended.
type Found = BTreeMap<BTreeMap<String, String>, Vec<(i64, Option<f64>)>>;

fn value(bits: u64) -> Option<f64> {
    (bits != 0x7ff0_0000_0000_0002).then(|| f64::from_bits(bits))
}

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
            .map(|sample| (sample.timestamp, value(sample.value.to_bits())));
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
                samples.extend(read.into_iter().map(|(time, bits)| (time, value(bits))));
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
        let last = archived.iter().rev().find_map(|(_, value)| *value);
        let last = last.expect("no series is empty");
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
    let end = Instant::now() + Duration::from_secs(90);
    let (chunks, samples) = loop {
        let both = (streamed(&daemon, &matchers), samples(&daemon, &matchers));
        // More than a chunk holds. On a busy machine a simulated second may have no row.
        if !both.0.is_empty() && both.0.values().all(|samples| samples.len() > 120) {
            break both;
        }
        assert!(Instant::now() < end, "not within 90 s: 120 samples");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!(
        samples.len(),
        1,
        "the lossless priority of one direction of one port"
    );
    assert!(samples.keys().eq(chunks.keys()));
    for (labels, samples) in &samples {
        assert_eq!((&*labels["device"], &*labels["direction"]), ("mlx5_1", "rx"));
        assert!(samples.is_sorted_by(|a, b| a.0 < b.0));
        assert!(samples.iter().filter_map(|(_, value)| *value).is_sorted());
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
    for (query, words) in [
        ("?device=x", "beside its own"),
        ("?job=a&job=b", "each once"),
        ("?a-b=c", "labels"),
    ] {
        let what = format!("POST /api/v1/read{query}");
        let asked = read_request(&[], ResponseType::Samples);
        let (head, body) = request(daemon.address(), &what, &[], &asked);
        let text = String::from_utf8_lossy(&body);
        assert!(
            head.starts_with("HTTP/1.1 400") && text.contains(words),
            "{head}{text}"
        );
    }
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

/// Until the storm of the scenario has been seen to its end and its rows are kept.
fn demo_with_an_incident(state: &Path) -> Daemon {
    let daemon = demo(state);
    let end = Instant::now() + Duration::from_secs(90);
    loop {
        let (status, page) = json(&daemon, "/api/v1/incidents");
        assert_eq!(status, 200, "{page}");
        let ended = json(&daemon, "/api/v1/events?kind=pfc_storm").1;
        let over = |event: &Value| event.get("ended").is_some() && event.get("incident").is_some();
        let ended = ended["events"].as_array().expect("events").iter().any(over);
        if ended
            && page["incidents"]
                .as_array()
                .is_some_and(|found| !found.is_empty())
        {
            return daemon;
        }
        assert!(Instant::now() < end, "no incident in 90 s:\n{}", daemon.log());
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn events_come_in_pages_the_newest_first() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo_with_an_incident(state.path());
    let ids = |path: &str| -> Vec<String> {
        let (status, page) = json(&daemon, path);
        assert_eq!(status, 200, "{page}");
        let events = page["events"].as_array().expect("events").clone();
        events
            .iter()
            .map(|event| event["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    // Up to a time that is over, so that no event comes in between.
    let (_, newest) = json(&daemon, "/api/v1/events?limit=1");
    let until = newest["events"][0]["began"].as_str().expect("a time").to_owned();
    let all = ids(&format!("/api/v1/events?until={until}"));
    assert!(all.is_sorted_by(|a, b| a > b), "ids begin with the time: {all:?}");
    assert!(all.len() > 1, "{all:?}");
    let mut pages = Vec::new();
    let mut path = format!("/api/v1/events?until={until}&limit=1");
    loop {
        let (_, page) = json(&daemon, &path);
        pages.extend(
            page["events"]
                .as_array()
                .unwrap()
                .iter()
                .map(|event| event["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/events?until={until}&limit=1&cursor={next}");
    }
    assert_eq!(pages, all);
    let storms = ids("/api/v1/events?kind=pfc_storm&severity=critical");
    assert!(
        !storms.is_empty() && storms.iter().all(|id| id.contains("pfc_storm")),
        "{storms:?}"
    );
    assert_eq!(ids("/api/v1/events?port=mlx5_7"), Vec::<String>::new());
    assert_eq!(ids("/api/v1/events?since=-2h&until=-90m"), Vec::<String>::new());
    for (path, words) in [
        ("/api/v1/events?kind=storm", "there are pfc_storm, "),
        ("/api/v1/events?severity=bad", "none of info, warning, critical"),
        ("/api/v1/events?cursor=7", "take it from `next`"),
        ("/api/v1/events?limit=5000", "limit is 1 to 1000"),
        ("/api/v1/stream?since=-1h", "unknown field `since`"),
    ] {
        let (status, error) = refused(&daemon, path);
        assert_eq!(status, 400, "{path}");
        assert!(error.contains(words), "{path}: {error}");
    }
    drop(daemon);
    // What the agent before kept is there after the next start.
    let daemon = demo(state.path());
    let (_, page) = json(&daemon, "/api/v1/events?since=-24h&until=2100-01-01T00:00:00Z");
    let again: Vec<_> = page["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["id"].as_str().unwrap())
        .collect();
    assert!(
        all.iter().all(|id| again.contains(&id.as_str())),
        "{all:?} {again:?}"
    );
}

#[test]
fn an_incident_is_told_with_its_events_ports_and_rows() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo_with_an_incident(state.path());
    let (_, page) = json(&daemon, "/api/v1/incidents");
    let id = page["incidents"].as_array().unwrap().last().unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let (status, incident) = json(&daemon, &format!("/api/v1/incidents/{id}"));
    assert_eq!(status, 200, "{incident}");
    assert_eq!(incident["id"], *id);
    assert!(!incident["events"].as_array().unwrap().is_empty());
    assert_eq!(incident["ports"].as_array().unwrap().len(), 2);
    assert_eq!(incident["holders"]["devices"][0]["queue_pairs"], 9);
    let rows = incident["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|track| track["rows"].as_u64() > Some(0)),
        "{rows:?}"
    );
    for path in ["/api/v1/incidents/none", "/api/v1/incidents/..%2Fsecret"] {
        assert_eq!(refused(&daemon, path).0, 404, "{path}");
    }
}

/// Reads the events of a stream: name, id and data.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(daemon: &Daemon, path: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(daemon.address()).expect("the daemon listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let last = last
            .map(|id| format!("Last-Event-ID: {id}\r\n"))
            .unwrap_or_default();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n{last}\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        Self(reader)
    }

    fn next(&mut self) -> (String, String, Value) {
        let (mut name, mut id) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert!(
                self.0.read_line(&mut line).expect("the stream goes on") > 0,
                "the stream ended"
            );
            match line.trim_end().split_once(": ") {
                Some(("event", text)) => text.clone_into(&mut name),
                Some(("id", text)) => text.clone_into(&mut id),
                Some(("data", text)) => return (name, id, serde_json::from_str(text).expect("data is JSON")),
                _ => {}
            }
        }
    }
}

#[test]
fn a_stream_tells_events_as_they_come_and_goes_on_where_it_broke_off() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path());
    let mut stream = Events::of(&daemon, "/api/v1/stream?kind=pfc_storm", None);
    let (first, second) = (stream.next(), stream.next());
    for (name, _, event) in [&first, &second] {
        assert_eq!(event["event"], "pfc_storm");
        assert_eq!(name == "closed", event.get("ended").is_some(), "{name}: {event}");
    }
    assert_ne!(first.0, second.0, "a storm begins and ends in turn");
    drop(stream);
    let mut stream = Events::of(&daemon, "/api/v1/stream?kind=pfc_storm", Some(&first.1));
    assert_eq!(stream.next(), second);
    drop(stream);
    // An id of an agent that has ended since: all that is remembered comes.
    let mut stream = Events::of(&daemon, "/api/v1/stream", Some("1-7"));
    let (_, id, _) = stream.next();
    assert!(id.ends_with("-1"), "{id}");
    // The places of those that ended are free again, as soon as the daemon knows.
    drop(stream);
    std::thread::sleep(Duration::from_secs(1));
    let others: Vec<_> = (0..16)
        .map(|_| Events::of(&daemon, "/api/v1/stream", None))
        .collect();
    let (status, error) = refused(&daemon, "/api/v1/stream");
    assert_eq!(status, 503);
    assert!(error.contains("16 clients"), "{error}");
    drop(others);
}

/// What a path with parameters answers, held against the file.
fn hold(daemon: &Daemon, openapi: &Value, path: &str, operation: &Value, url: &str) {
    let (head, body) = daemon.get(url, &[]);
    let status = head.split(' ').nth(1).expect("a status");
    let response = &operation["responses"][status];
    let response = match response["$ref"].as_str() {
        Some(reference) => openapi.pointer(&reference[1..]).expect("the reference is right"),
        None => response,
    };
    assert!(
        response.is_object(),
        "{url}: {status} is not among the answers of {path}"
    );
    let line = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    let kind = line.unwrap_or_else(|| panic!("{url}: no kind of content"));
    let content = response["content"].as_object().expect("an answer has content");
    let (_, content) = content
        .iter()
        .find(|(known, _)| known.to_lowercase() == kind || format!("{known}; charset=utf-8") == kind)
        .unwrap_or_else(|| panic!("{url}: {kind} is not among the kinds of {path}"));
    if kind == "application/json" {
        let answer: Value = serde_json::from_slice(&body).expect("it is JSON");
        let errors = errors(openapi, &content["schema"], &answer);
        assert!(errors.is_empty(), "{url}: {errors:#?}");
    }
}

/// Where a value is not as a schema of the file says.
fn errors(openapi: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut schema = schema.clone();
    schema["components"] = openapi["components"].clone();
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .expect("the schema is one");
    let errors = validator.iter_errors(value);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .take(5)
        .collect()
}

#[test]
fn the_server_answers_as_its_openapi_file_says() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo_with_an_incident(state.path());
    let openapi = openapi();
    let (_, served) = json(&daemon, "/api/v1/openapi.json");
    assert!(served == openapi, "the daemon was built with another file");
    let (_, incidents) = json(&daemon, "/api/v1/incidents");
    let id = incidents["incidents"][0]["id"].as_str().unwrap();
    for (path, item) in openapi["paths"].as_object().expect("paths") {
        let Some(get) = item.get("get") else { continue };
        if path == "/api/v1/stream" {
            continue; // It does not end: the next test.
        }
        let url = path.replace("{id}", id);
        hold(&daemon, &openapi, path, get, &url);
        hold(&daemon, &openapi, path, get, &path.replace("{id}", "none"));
        for parameter in get["parameters"].as_array().into_iter().flatten() {
            assert!(
                parameter["description"].is_string(),
                "{path}: a parameter says what it is for"
            );
            let name = parameter["name"].as_str().expect("a parameter has a name");
            let example = match &parameter["example"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            // `window` goes with `at`; a cursor is not guessed.
            let with = if name == "window" { "at=-1m&" } else { "" };
            hold(
                &daemon,
                &openapi,
                path,
                get,
                &format!("{url}?{with}{name}={example}"),
            );
            hold(&daemon, &openapi, path, get, &format!("{url}?{name}=%00"));
        }
    }
    // Without parameters all of them answer what was asked for.
    for path in openapi["paths"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|path| !path.ends_with("/stream"))
    {
        if openapi["paths"][path].get("get").is_some() && !path.contains("{id}") && path != "/api/v1/history"
        {
            daemon.text(path);
        }
    }
}

#[test]
fn a_stream_carries_events_of_the_openapi_file() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo_with_an_incident(state.path());
    let openapi = openapi();
    let mut stream = Events::of(&daemon, "/api/v1/stream", Some("0-0"));
    let schema = serde_json::json!({ "$ref": "#/components/schemas/Event" });
    for _ in 0..2 {
        let (_, _, event) = stream.next();
        assert_eq!(errors(&openapi, &schema, &event), Vec::<String>::new());
    }
}

/// The router's paths stand in its source, one behind each `.route(`.
#[test]
fn every_path_of_the_router_is_in_the_openapi_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/routes.rs");
    let source = std::fs::read_to_string(path).expect("the router is there");
    let routed = source.split(".route(\"").skip(1).map(|rest| {
        let (path, rest) = rest.split_once("\", ").expect("a path ends");
        let (method, _) = rest.split_once('(').expect("a method");
        (path.to_owned(), method.to_owned())
    });
    let mut routed: Vec<_> = routed.collect();
    let openapi = openapi();
    let mut described = Vec::new();
    for (path, item) in openapi["paths"].as_object().expect("paths") {
        described.extend(
            item.as_object()
                .unwrap()
                .keys()
                .map(|method| (path.clone(), method.clone())),
        );
    }
    routed.sort();
    described.sort();
    assert_eq!(routed, described);
}

/// A kind of event that is added is added to the file.
#[test]
fn every_kind_of_event_is_in_the_openapi_file() {
    let openapi = openapi();
    let listed = openapi["components"]["schemas"]["EventKind"]["enum"]
        .as_array()
        .expect("kinds")
        .clone();
    let kinds = signals::detect::EventKind::ALL.map(signals::detect::EventKind::as_str);
    assert_eq!(listed, kinds);
}
