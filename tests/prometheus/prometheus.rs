//! A real Prometheus scrapes the real binary, and a query gives the right rate.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/rocewatch/src/http/read/messages.rs"]
mod messages;
#[path = "../support/prometheus.rs"]
mod prometheus;
#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/rocewatch/src/http/read/reader.rs"]
mod reader;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tree.rs"]
mod tree;
#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/rocewatch/src/http/read/xor.rs"]
mod xor;

use messages::{ChunkedReadResponse, LabelMatcher, MatcherType, Query, ReadRequest, ResponseType};
use prometheus::Prometheus;
use prost::Message as _;
use std::fs::OpenOptions;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{Daemon, request};

/// Adds to a counter's file 100 times a second, by the clock, so that its rate is known.
fn advance(file: &Path, from: u64, per_second: u64, end: &AtomicBool) {
    let mut file = OpenOptions::new()
        .write(true)
        .open(file)
        .expect("the counter is there");
    let began = Instant::now();
    while !end.load(Ordering::Relaxed) {
        let elapsed = u64::try_from(began.elapsed().as_micros()).expect("a test is short");
        let value = from + elapsed * per_second / 1_000_000;
        file.rewind()
            .and_then(|()| file.write_all(format!("{value}\n").as_bytes()))
            .expect("the counter can be written");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "needs Debian's prometheus: ./x test"]
fn prometheus_sees_the_right_rate() {
    let tree = tree::lay_out("mlx5");
    let counter = tree
        .path()
        .join("class/infiniband/mlx5_1/ports/1/hw_counters/np_cnp_sent");
    let end = Arc::new(AtomicBool::new(false));
    let writer = {
        let end = Arc::clone(&end);
        // As many digits from the first to the last value: a reader never sees half of an old one.
        std::thread::spawn(move || advance(&counter, 1_000_000, 5_000, &end))
    };
    let daemon = Daemon::start(&["run", "--sysfs", tree.path().to_str().expect("paths are text")]);
    daemon.wait_until_ready();
    let prometheus = Prometheus::scraping(daemon.address());
    prometheus.wait_for("count_over_time(rocewatch_cnp_sent_total[30s])", |samples| {
        samples.iter().any(|(_, n)| *n >= 20.0)
    });
    let rates = prometheus.query("rate(rocewatch_cnp_sent_total{device=\"mlx5_1\"}[15s])");
    end.store(true, Ordering::Relaxed);
    writer.join().expect("the writer ends");
    assert_eq!(rates.len(), 1, "{rates:?}");
    assert!((rates[0].1 - 5_000.0).abs() < 150.0, "{rates:?}");
    let still = prometheus.query("rate(rocewatch_cnp_sent_total{device=\"mlx5_0\"}[15s])");
    assert_eq!(still.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(), [0.0]);
}

#[test]
#[ignore = "needs Debian's prometheus: ./x test"]
fn prometheus_takes_every_line_of_the_demo() {
    let daemon = Daemon::start(&["demo"]);
    daemon.wait_until_ready();
    let prometheus = Prometheus::scraping(daemon.address());
    prometheus.wait_for("up", |samples| samples.iter().any(|(_, up)| *up > 0.5));
    let scraped = prometheus.wait_for("scrape_samples_scraped", |samples| {
        samples.iter().any(|(_, n)| *n > 1000.0)
    });
    let shown = daemon.scrape().len() as f64;
    assert!(
        (scraped[0].1 - shown).abs() < shown * 0.05,
        "{} taken, {shown} shown",
        scraped[0].1
    );
    prometheus.wait_for(
        "histogram_quantile(0.99, rate(rocewatch_sampled_utilization_ratio_bucket[10s]))",
        |samples| samples.len() == 16 && samples.iter().all(|(_, quantile)| (0.0..=1.0).contains(quantile)),
    );
}

/// What the daemon archived is what `PromQL` finds, sample by sample, under the names that a scrape gives them.
#[test]
#[ignore = "needs Debian's prometheus: ./x test"]
fn prometheus_reads_the_archive() {
    let state = tempfile::tempdir().expect("a temporary folder can be made");
    let daemon = Daemon::hurried(state.path(), "tour");
    daemon.wait_for_rows(3_000.0);
    let address = daemon.address();
    // As a site has it: external labels, and the labels of the scrape.
    let config = format!(
        "global: {{external_labels: {{cluster: east}}}}\nremote_read:\n- url: http://{address}/api/v1/read?cluster=east&job=rocewatch&instance=node1\n  read_recent: true\n"
    );
    let prometheus = Prometheus::start(
        &config,
        tempfile::tempdir().expect("a temporary folder can be made"),
    );
    let page = daemon.text("/api/v1/history?since=-4m&until=-1m&port=mlx5_1&signal=bytes.rx&limit=5000");
    let page: serde_json::Value = serde_json::from_str(&page).expect("it is JSON");
    let series = page["series"].as_array().expect("series");
    let whole = series
        .iter()
        .find(|series| series["counter"] == "rx_bytes_phy")
        .expect("the port's bytes");
    let points = whole["points"].as_array().expect("points");
    assert!(points.len() > 20, "{} seconds of three minutes", points.len());
    let time = |point: &serde_json::Value| -> jiff::Timestamp {
        point["time"].as_str().expect("a time").parse().expect("a time")
    };
    let (first, last) = (time(&points[0]), time(&points[points.len() - 1]));
    // Milliseconds, and both ends belong to it.
    let span = last.as_millisecond() - first.as_millisecond() + 1;
    let query = format!(
        "rocewatch_port_bytes_total{{device=~\"mlx5_[1]\",direction=\"rx\",instance=\"node1\"}}[{span}ms]"
    );
    let at = |time: jiff::Timestamp| format!("{}.{:03}", time.as_second(), time.subsec_millisecond());
    let result = prometheus.ask("query", &query, &[("time", at(last))]);
    assert_eq!(result.len(), 1, "{result:?}");
    let labels = &result[0]["metric"];
    assert_eq!(labels["job"], "rocewatch");
    assert!(
        labels.get("cluster").is_none(),
        "Prometheus takes its external labels away: {labels}"
    );
    let mut found: Vec<(i64, f64)> = result[0]["values"]
        .as_array()
        .expect("values")
        .iter()
        .map(|value| {
            let time = (value[0].as_f64().expect("a time") * 1e3).round();
            #[allow(clippy::cast_possible_truncation)] // milliseconds of this century
            let time = time as i64;
            (
                time,
                value[1]
                    .as_str()
                    .and_then(|text| text.parse().ok())
                    .expect("a number"),
            )
        })
        .collect();
    let right: Vec<(i64, f64)> = points
        .iter()
        .map(|point| {
            (
                time(point).as_millisecond(),
                point["value"].as_f64().expect("a number"),
            )
        })
        .collect();
    // The archive has a row in each second since the agent's start, of which two may be in one second of the wall's clock. There
    // history tells the later.
    found.reverse();
    found.dedup_by_key(|(time, _)| *time / 1_000);
    found.reverse();
    assert_eq!(found, right);
    // And what an operator asks: how fast it was, a minute long.
    let rate = prometheus.ask(
        "query",
        "rate(rocewatch_port_bytes_total{device=\"mlx5_1\",direction=\"rx\"}[1m])",
        &[("time", at(last))],
    );
    let rate: f64 = rate[0]["value"][1]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("a rate");
    let lows = points.iter().filter_map(|point| point["low"].as_f64());
    let highs = points.iter().filter_map(|point| point["high"].as_f64());
    let (low, high) = (lows.fold(f64::MAX, f64::min), highs.fold(0.0, f64::max));
    assert!((low * 0.95..=high * 1.05).contains(&rate), "{low} {rate} {high}");
}

/// The chunks that Prometheus itself makes of samples are, bit for bit, those that the daemon makes of them.
#[test]
#[ignore = "needs Debian's prometheus: ./x test"]
fn chunks_are_those_of_prometheus() {
    let daemon = Daemon::start(&["demo", "--ports", "1"]);
    daemon.wait_until_ready();
    let prometheus = Prometheus::scraping(daemon.address());
    prometheus.wait_for("count_over_time(up[1m])", |samples| {
        samples.iter().any(|(_, n)| *n >= 10.0)
    });
    let matcher = |name: &str, value: &str| LabelMatcher {
        kind: MatcherType::Regex.into(),
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let asked = ReadRequest {
        queries: vec![Query {
            start_timestamp_ms: 0,
            end_timestamp_ms: 1 << 52,
            matchers: vec![matcher(
                "__name__",
                "rocewatch_.+|scrape_duration_seconds|process_.+",
            )],
        }],
        accepted_response_types: vec![ResponseType::StreamedXorChunks.into()],
    };
    let asked = snap::raw::Encoder::new()
        .compress_vec(&asked.encode_to_vec())
        .expect("it is small");
    let (head, body) = request(prometheus.address(), "POST /api/v1/read", &[], &asked);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (mut chunks, mut samples) = (0, 0);
    let mut rest = &body[..];
    while !rest.is_empty() {
        let length = prost::encoding::decode_varint(&mut rest).expect("a length");
        let (sum, more) = rest.split_at(4);
        let (message, more) = more.split_at(usize::try_from(length).expect("it is short"));
        rest = more;
        assert_eq!(
            sum,
            crc32c::crc32c(message).to_be_bytes(),
            "Prometheus has the same checksum"
        );
        let response = ChunkedReadResponse::decode(message).expect("it is a response");
        for chunk in response
            .chunked_series
            .into_iter()
            .flat_map(|series| series.chunks)
        {
            let read = reader::read(&chunk.data);
            let mut made = xor::XorChunk::new();
            for (time, bits) in &read {
                made.push(*time, f64::from_bits(*bits));
            }
            assert_eq!((chunk.min_time_ms, chunk.max_time_ms), made.times());
            // Where the last number ended with a byte, Prometheus has begun the next one.
            let made = made.into_bytes();
            let same = chunk.data.strip_prefix(&*made);
            assert!(
                same.is_some_and(|rest| rest.is_empty() || rest == [0]),
                "{made:?} {:?}",
                chunk.data
            );
            chunks += 1;
            samples += read.len();
        }
    }
    assert!(
        chunks > 250 && samples > 5 * chunks,
        "{chunks} chunks of {samples} samples"
    );
}
