//! The metrics as Prometheus remote write 1.0: at each interval what a scrape would have found then.

use super::courier::{Headers, Mail};
use super::page;
use super::proto::{Label, Sample, TimeSeries, WriteRequest};
use super::spool::Record;
use crate::config;
use bytes::Bytes;
use prost::Message as _;
use std::collections::HashSet;

/// The value that says that a series has ended (`StaleNaN` of Prometheus' `model/value`).
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// What a record is sent as.
pub(super) struct Writes;

impl Mail for Writes {
    fn headers(&self) -> Headers {
        &[
            ("content-encoding", "snappy"),
            ("content-type", "application/x-protobuf"),
            ("x-prometheus-remote-write-version", "0.1.0"),
        ]
    }

    fn body(&self, record: &Record) -> Bytes {
        record.body.clone()
    }
}

/// Turns pages into records.
pub(super) struct Encoder {
    /// What all series get: `job` and `instance`, as a scrape would have given them, and those of the configuration.
    labels: Vec<Label>,
    /// The page before, of which a series may have ended.
    former: Bytes,
}

impl Encoder {
    /// For the node of this name.
    pub(super) fn new(node: &str, external: &[config::Label]) -> Self {
        let mut labels = vec![label("job", "rocewatch"), label("instance", node)];
        for config::Label { name, value } in external {
            labels.retain(|known| known.name != *name);
            labels.push(label(name, value));
        }
        Self {
            labels,
            former: Bytes::new(),
        }
    }

    /// The record of a page and the time at which it was made, in milliseconds since 1970. Series of the page before that
    /// are not in it any more are marked as ended.
    pub(super) fn record(&mut self, page: Bytes, time: i64) -> Record {
        let former = std::mem::replace(&mut self.former, page);
        let now: Vec<_> = page::lines(text(&self.former)).collect();
        let known: HashSet<&str> = now.iter().map(|line| line.series).collect();
        let ended = page::lines(text(&former))
            .filter(|line| !known.contains(line.series))
            .map(|line| self.series(line.series, f64::from_bits(STALE), time));
        let timeseries: Vec<_> = now
            .iter()
            .map(|line| self.series(line.series, line.value, time))
            .chain(ended)
            .collect();
        let units = timeseries.len() as u64;
        let plain = WriteRequest { timeseries }.encode_to_vec();
        let body = snap::raw::Encoder::new()
            .compress_vec(&plain)
            .expect("a page is far smaller than the 4 GiB that snappy takes");
        Record {
            time,
            units,
            body: body.into(),
        }
    }

    fn series(&self, series: &str, value: f64, timestamp: i64) -> TimeSeries {
        let (name, own) = page::labels(series);
        let mut labels: Vec<Label> = own.into_iter().map(|(name, value)| label(name, &value)).collect();
        labels.push(label("__name__", name));
        // What a series says of itself is not overruled.
        let further = self
            .labels
            .iter()
            .filter(|external| labels.iter().all(|known| known.name != external.name))
            .cloned()
            .collect::<Vec<_>>();
        labels.extend(further);
        labels.retain(|label| !label.value.is_empty());
        labels.sort_by(|a, b| a.name.cmp(&b.name));
        TimeSeries {
            labels,
            samples: vec![Sample { value, timestamp }],
        }
    }
}

fn label(name: &str, value: &str) -> Label {
    Label {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

/// Pages are made of text.
fn text(page: &Bytes) -> &str {
    std::str::from_utf8(page).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(record: &Record) -> WriteRequest {
        let plain = snap::raw::Decoder::new().decompress_vec(&record.body).unwrap();
        WriteRequest::decode(plain.as_slice()).unwrap()
    }

    fn named(series: &TimeSeries) -> Vec<(&str, &str)> {
        series
            .labels
            .iter()
            .map(|label| (label.name.as_str(), label.value.as_str()))
            .collect()
    }

    #[test]
    fn series_have_sorted_labels_values_and_an_end() {
        let external = [
            config::Label {
                name: "cluster".to_owned(),
                value: "alpha".to_owned(),
            },
            config::Label {
                name: "instance".to_owned(),
                value: "gpu-7".to_owned(),
            },
        ];
        let mut encoder = Encoder::new("node", &external);
        let first = encoder.record(
            Bytes::from("# HELP x y\nx{port=\"1\",device=\"mlx5_0\",netdev=\"\"} 2.5\ny 3\n"),
            1000,
        );
        assert_eq!((first.units, first.time), (2, 1000));
        let request = decode(&first);
        assert_eq!(
            named(&request.timeseries[0]),
            [
                ("__name__", "x"),
                ("cluster", "alpha"),
                ("device", "mlx5_0"),
                ("instance", "gpu-7"),
                ("job", "rocewatch"),
                ("port", "1")
            ]
        );
        assert_eq!(
            request.timeseries[0].samples,
            [Sample {
                value: 2.5,
                timestamp: 1000
            }]
        );
        let second = decode(&encoder.record(Bytes::from("y 4\n"), 2000));
        assert_eq!(second.timeseries.len(), 2);
        let ended = &second.timeseries[1];
        assert_eq!(named(ended)[0], ("__name__", "x"));
        assert_eq!(ended.samples[0].value.to_bits(), STALE);
        // It ends once.
        assert_eq!(encoder.record(Bytes::from("y 5\n"), 3000).units, 1);
    }
}
