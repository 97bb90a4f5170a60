//! `/api/v1/read`: Prometheus' remote read, so that `PromQL` reaches what the archive has.
//!
//! Prometheus asks for a time and for matchers, and takes what it is given for its own: names, labels and units are those
//! of `/metrics`.

mod answer;
pub(crate) mod matcher;
pub(crate) mod messages;
#[cfg(test)]
mod reader;
pub(crate) mod xor;

use super::asked;
use super::look_ups::LookUps;
use super::refusal::Refusal;
use super::sending;
use crate::past::families::Labels;
use answer::{Chunks, Samples};
use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use matcher::Matcher;
use messages::{ReadRequest, ResponseType};
use prost::Message as _;

/// Bytes of a request: hundreds of times what a dashboard asks.
const MOST_PACKED: usize = 64 * 1024;
/// Bytes of a request, unpacked.
const MOST_UNPACKED: usize = 256 * 1024;
/// Queries of a request. Prometheus sends one.
const MOST_QUERIES: usize = 64;
/// Matchers of a request, each of which may be an expression.
const MOST_MATCHERS: usize = 256;

/// Labels that are added to every series.
const MOST_LABELS: usize = 16;

/// A request, understood.
#[derive(Debug)]
pub(crate) struct Request {
    /// What every series has beside its own labels.
    labels: Labels,
    pub(crate) queries: Vec<Query>,
    kind: ResponseType,
}

/// Series, and a time in milliseconds since 1970, both ends of which belong to it.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) matchers: Vec<Matcher>,
    from: i64,
    to: i64,
}

/// Answers a request.
pub(super) async fn answer(look_ups: &LookUps, uri: &Uri, body: Body) -> Result<Response, Refusal> {
    let body = tokio::time::timeout(look_ups.limit(), to_bytes(body, MOST_PACKED)).await;
    let body = body.map_err(|_| Refusal::too_slow())?.map_err(|_| {
        Refusal::too_large(format!(
            "a request is at most {MOST_PACKED} bytes, packed: ask for fewer series at once"
        ))
    })?;
    let request = Request::parse(uri, &body)?;
    match request.kind {
        ResponseType::Samples => {
            let (body, place) = look_ups
                .find(move |archive, patience| Samples::of(archive, &request, patience))
                .await?;
            let mut response = Response::new(sending::body_of(body, place));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("snappy"));
            Ok(response)
        }
        ResponseType::StreamedXorChunks => {
            let (frames, place) = look_ups
                .find(move |archive, patience| Chunks::of(archive, &request, patience))
                .await?;
            let mut response = Response::new(sending::body(frames, place));
            let kind = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            Ok(response)
        }
    }
}

impl Request {
    /// Understands a request.
    pub(crate) fn parse(uri: &Uri, packed: &[u8]) -> Result<Self, Refusal> {
        let wrong = |what: &str| {
            Refusal::bad_request(format!(
                "{what}: this path is for the remote_read of Prometheus, which sends a prometheus.ReadRequest packed by snappy"
            ))
        };
        let length =
            snap::raw::decompress_len(packed).map_err(|_| wrong("the body is not packed by snappy"))?;
        if length > MOST_UNPACKED {
            return Err(Refusal::too_large(format!(
                "a request is at most {MOST_UNPACKED} bytes, unpacked: ask for fewer series at once"
            )));
        }
        let unpacked = snap::raw::Decoder::new()
            .decompress_vec(packed)
            .map_err(|_| wrong("the body is not packed by snappy"))?;
        let request = ReadRequest::decode(&*unpacked).map_err(|_| wrong("the body is no such message"))?;
        Self::understand(labels(uri)?, &request)
    }

    fn understand(labels: Labels, request: &ReadRequest) -> Result<Self, Refusal> {
        let matchers: usize = request.queries.iter().map(|query| query.matchers.len()).sum();
        if request.queries.len() > MOST_QUERIES || matchers > MOST_MATCHERS {
            return Err(Refusal::too_large(format!(
                "a request has at most {MOST_QUERIES} queries and {MOST_MATCHERS} matchers"
            )));
        }
        let kinds = &request.accepted_response_types;
        let known = kinds.iter().find_map(|kind| ResponseType::try_from(*kind).ok());
        let kind = match known {
            Some(kind) => kind,
            None if kinds.is_empty() => ResponseType::Samples,
            None => {
                return Err(Refusal::bad_request(
                    "none of the accepted response types is SAMPLES or STREAMED_XOR_CHUNKS",
                ));
            }
        };
        let queries = request
            .queries
            .iter()
            .map(Query::understand)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            labels,
            queries,
            kind,
        })
    }
}

/// The parameters are labels that every series gets: what a scrape adds, `job` and `instance`, and what Prometheus asks for
/// where it has external labels. So the archive continues what was scraped.
fn labels(uri: &Uri) -> Result<Labels, Refusal> {
    let labels: Vec<(String, String)> = asked::parameters(uri)?;
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let ours = |name: &str| {
        let families = catalog::FAMILIES.iter();
        name == "__name__"
            || families
                .flat_map(|family| family.labels)
                .any(|label| *label == name)
    };
    for (at, (name, _)) in labels.iter().enumerate() {
        let twice = labels[..at].iter().any(|(other, _)| other == name);
        if !is_name(name) || ours(name) || twice {
            return Err(Refusal::bad_request(format!(
                "{name:?}: the parameters are labels that every series gets beside its own, as in ?job=rocewatch&instance=node1, \
                 each once"
            )));
        }
    }
    if labels.len() > MOST_LABELS {
        return Err(Refusal::bad_request(format!(
            "at most {MOST_LABELS} labels can be added"
        )));
    }
    Ok(labels
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect())
}

impl Query {
    fn understand(query: &messages::Query) -> Result<Self, Refusal> {
        let matchers = query.matchers.iter().map(Matcher::new).collect::<Result<_, _>>();
        Ok(Self {
            matchers: matchers.map_err(Refusal::bad_request)?,
            from: query.start_timestamp_ms,
            to: query.end_timestamp_ms,
        })
    }
}
