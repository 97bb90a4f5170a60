//! What the archive has, in the two encodings.

use super::messages::{
    Chunk, ChunkedReadResponse, ChunkedSeries, Encoding, Label, QueryResult, ReadResponse, Sample, TimeSeries,
};
use super::xor::{FULL, XorChunk};
use super::{Query, Request};
use crate::http::look_ups::Patience;
use crate::http::refusal::Refusal;
use crate::http::sending::PIECE;
use crate::past::Span;
use crate::past::families::{self, Labels, Listener, Selection};
use archive::Archive;
use axum::body::Bytes;
use prost::Message as _;
use std::ops::ControlFlow;

/// Samples of an answer that is not streamed: 36 MB before it is packed.
const MOST_SAMPLES: usize = 2_000_000;
/// Samples of a streamed answer, which take three bytes each or less.
const MOST_STREAMED: usize = 8_000_000;
/// Bytes of the chunks of a streamed answer.
const MOST_CHUNK_BYTES: usize = 64 << 20;
/// Bytes that a chunk takes beside those of its samples.
const CHUNK: usize = size_of::<Chunk>() + 16;

/// Answers with samples.
pub(super) struct Samples<'a> {
    patience: &'a Patience,
    left: usize,
    exceeded: bool,
    series: Vec<Vec<Sample>>,
}

impl<'a> Samples<'a> {
    /// The packed answer to the queries.
    pub(super) fn of(
        archive: &Archive,
        request: &Request,
        patience: &'a Patience,
    ) -> Result<Vec<u8>, Refusal> {
        let mut left = MOST_SAMPLES;
        let mut results = Vec::new();
        for query in &request.queries {
            let selection = query.select(archive, &request.labels);
            let mut found = Self {
                patience,
                left,
                exceeded: false,
                series: vec![Vec::new(); selection.series.len()],
            };
            query.play(archive, &selection, &mut found);
            if found.exceeded {
                return Err(too_many(MOST_SAMPLES));
            }
            left = found.left;
            let series = selection.series.iter().zip(found.series);
            let timeseries = series
                .filter(|(_, samples)| !samples.is_empty())
                .map(|(labels, samples)| TimeSeries {
                    labels: sent(labels),
                    samples,
                });
            results.push(QueryResult {
                timeseries: timeseries.collect(),
            });
        }
        let response = ReadResponse { results }.encode_to_vec();
        snap::raw::Encoder::new()
            .compress_vec(&response)
            .map_err(|error| Refusal::fault(format!("cannot pack the answer: {error}")))
    }
}

impl Listener for Samples<'_> {
    fn sample(&mut self, series: usize, sample: families::Sample) -> ControlFlow<()> {
        if self.left == 0 {
            self.exceeded = true;
            return ControlFlow::Break(());
        }
        self.left -= 1;
        self.series[series].push(Sample {
            value: sample.value,
            timestamp: sample.time,
        });
        ControlFlow::Continue(())
    }

    fn go_on(&mut self) -> ControlFlow<()> {
        self.patience.go_on()
    }
}

/// Answers with chunks.
pub(super) struct Chunks<'a> {
    patience: &'a Patience,
    left: Left,
    exceeded: bool,
    series: Vec<Growing>,
}

/// What an answer may still take.
#[derive(Clone, Copy)]
struct Left {
    samples: usize,
    bytes: usize,
}

/// The chunks of a series.
struct Growing {
    full: Vec<Chunk>,
    last: XorChunk,
}

impl<'a> Chunks<'a> {
    /// The frames of the answer, in the order in which Prometheus wants them: by query, by series, by time.
    pub(super) fn of(
        archive: &Archive,
        request: &Request,
        patience: &'a Patience,
    ) -> Result<impl Iterator<Item = Bytes> + Send + use<>, Refusal> {
        let mut left = Left {
            samples: MOST_STREAMED,
            bytes: MOST_CHUNK_BYTES,
        };
        let mut answers = Vec::new();
        for (index, query) in (0..).zip(&request.queries) {
            let selection = query.select(archive, &request.labels);
            let growing = || Growing {
                full: Vec::new(),
                last: XorChunk::new(),
            };
            let mut found = Self {
                patience,
                left,
                exceeded: false,
                series: std::iter::repeat_with(growing)
                    .take(selection.series.len())
                    .collect(),
            };
            query.play(archive, &selection, &mut found);
            if found.exceeded {
                return Err(too_many(MOST_STREAMED));
            }
            left = found.left;
            let chunks = found.series.into_iter().map(Growing::chunks);
            answers.extend(
                selection
                    .series
                    .into_iter()
                    .zip(chunks)
                    .map(move |one| (index, one)),
            );
        }
        let frames = answers
            .into_iter()
            .flat_map(|(index, (labels, chunks))| frames(index, &sent(&labels), chunks));
        Ok(frames)
    }
}

impl Listener for Chunks<'_> {
    fn sample(&mut self, series: usize, sample: families::Sample) -> ControlFlow<()> {
        if self.left.samples == 0 || self.left.bytes == 0 {
            self.exceeded = true;
            return ControlFlow::Break(());
        }
        self.left.samples -= 1;
        let growing = &mut self.series[series];
        growing.last.push(sample.time, sample.value);
        if growing.last.count() == FULL {
            let taken = growing.fill();
            self.left.bytes = self.left.bytes.saturating_sub(taken);
        }
        ControlFlow::Continue(())
    }

    fn go_on(&mut self) -> ControlFlow<()> {
        self.patience.go_on()
    }
}

impl Growing {
    /// Begins another chunk. Gives the bytes that the last took.
    fn fill(&mut self) -> usize {
        let chunk = std::mem::replace(&mut self.last, XorChunk::new());
        let (min_time_ms, max_time_ms) = chunk.times();
        let mut data = chunk.into_bytes();
        data.shrink_to_fit();
        let taken = data.len() + CHUNK;
        self.full.push(Chunk {
            min_time_ms,
            max_time_ms,
            kind: Encoding::Xor.into(),
            data,
        });
        taken
    }

    fn chunks(mut self) -> Vec<Chunk> {
        if self.last.count() > 0 {
            self.fill();
        }
        self.full
    }
}

/// The frames of one series.
fn frames(query_index: i64, labels: &[Label], chunks: Vec<Chunk>) -> Vec<Bytes> {
    let mut frames = Vec::new();
    let mut piece = Vec::new();
    let mut bytes = 0;
    let mut chunks = chunks.into_iter().peekable();
    while let Some(chunk) = chunks.next() {
        bytes += chunk.data.len() + CHUNK;
        piece.push(chunk);
        if bytes >= PIECE || chunks.peek().is_none() {
            let series = ChunkedSeries {
                labels: labels.to_vec(),
                chunks: std::mem::take(&mut piece),
            };
            let response = ChunkedReadResponse {
                chunked_series: vec![series],
                query_index,
            };
            frames.push(frame(&response.encode_to_vec()));
            bytes = 0;
        }
    }
    frames
}

/// A message behind its length and its checksum (`storage/remote/chunked.go` of Prometheus).
fn frame(message: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(message.len() + 14);
    prost::encoding::encode_varint(message.len() as u64, &mut frame);
    frame.extend_from_slice(&crc32c::crc32c(message).to_be_bytes());
    frame.extend_from_slice(message);
    frame.into()
}

fn sent(labels: &Labels) -> Vec<Label> {
    let sent = labels.iter().map(|(name, value)| Label {
        name: name.to_string(),
        value: value.to_string(),
    });
    sent.collect()
}

fn too_many(most: usize) -> Refusal {
    Refusal::too_large(format!(
        "the answer has more than {most} samples: ask for a shorter time or for fewer series"
    ))
}

impl Query {
    fn select(&self, archive: &Archive, more: &Labels) -> Selection {
        Selection::of(archive, more, |labels| {
            self.matchers.iter().all(|matcher| matcher.takes(labels))
        })
    }

    fn play(&self, archive: &Archive, selection: &Selection, listener: &mut impl Listener) {
        const MILLISECOND: i64 = 1_000_000;
        let span = Span {
            from: self.from.saturating_mul(MILLISECOND),
            to: self
                .to
                .saturating_mul(MILLISECOND)
                .saturating_add(MILLISECOND - 1),
        };
        for damage in selection.play(archive, span, listener) {
            tracing::warn!("left out: {damage}");
        }
    }
}
