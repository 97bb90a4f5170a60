//! The messages of Prometheus' remote read, by the numbers that `prompb/remote.proto` and `prompb/types.proto` of
//! Prometheus give their fields. What is not needed here is passed over.

use prost::{Enumeration, Message};

/// What a Prometheus asks.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) queries: Vec<Query>,
    /// The first that is known counts; none stands for samples.
    #[prost(enumeration = "ResponseType", repeated, tag = "2")]
    pub(crate) accepted_response_types: Vec<i32>,
}

/// Series and a time, both ends of which belong to it, in milliseconds since 1970.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Query {
    #[prost(int64, tag = "1")]
    pub(crate) start_timestamp_ms: i64,
    #[prost(int64, tag = "2")]
    pub(crate) end_timestamp_ms: i64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) matchers: Vec<LabelMatcher>,
}

/// A condition on one label.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LabelMatcher {
    #[prost(enumeration = "MatcherType", tag = "1")]
    pub(crate) kind: i32,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "3")]
    pub(crate) value: String,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(crate) enum MatcherType {
    Equal = 0,
    NotEqual = 1,
    Regex = 2,
    NotRegex = 3,
}

/// How an answer is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(crate) enum ResponseType {
    Samples = 0,
    StreamedXorChunks = 1,
}

/// An answer of samples.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReadResponse {
    /// In the order of the queries.
    #[prost(message, repeated, tag = "1")]
    pub(crate) results: Vec<QueryResult>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryResult {
    #[prost(message, repeated, tag = "1")]
    pub(crate) timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Label {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    #[prost(int64, tag = "2")]
    pub(crate) timestamp: i64,
}

/// A piece of a streamed answer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ChunkedReadResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) chunked_series: Vec<ChunkedSeries>,
    /// Which query it answers.
    #[prost(int64, tag = "2")]
    pub(crate) query_index: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ChunkedSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) chunks: Vec<Chunk>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Chunk {
    #[prost(int64, tag = "1")]
    pub(crate) min_time_ms: i64,
    #[prost(int64, tag = "2")]
    pub(crate) max_time_ms: i64,
    #[prost(enumeration = "Encoding", tag = "3")]
    pub(crate) kind: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(crate) enum Encoding {
    Unknown = 0,
    Xor = 1,
}
