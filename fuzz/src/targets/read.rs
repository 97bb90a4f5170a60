//! Requests of Prometheus' remote read. The first byte says whether the rest is a message that is still to be packed: few
//! inputs of libFuzzer's making are what snappy made.

use crate::http::read::Request;
use crate::http::read::messages::ReadRequest;
use crate::http::read::xor::XorChunk;
use crate::past::families::Labels;
use axum::http::Uri;
use prost::Message as _;

/// Any body is understood or refused. What is understood reads back the same when it is written, and every series is
/// either wanted or not.
pub fn check(input: &[u8]) {
    let Some((packed, body)) = input.split_first() else {
        return;
    };
    let uri = Uri::from_static("/api/v1/read?job=a");
    if packed % 2 == 0 {
        let _ = Request::parse(&uri, body);
        return;
    }
    let body = snap::raw::Encoder::new()
        .compress_vec(body)
        .expect("an input is small");
    let understood = Request::parse(&uri, &body);
    let unpacked = snap::raw::Decoder::new()
        .decompress_vec(&body)
        .expect("it was packed here");
    let message = ReadRequest::decode(&*unpacked);
    let Ok(message) = message else {
        assert!(understood.is_err(), "what is no message is refused");
        return;
    };
    assert_eq!(
        ReadRequest::decode(&*message.encode_to_vec()).as_ref(),
        Ok(&message)
    );
    if let Ok(request) = understood {
        let labels: Labels = vec![
            ("__name__".into(), "rocewatch_cnp_sent_total".into()),
            ("device".into(), "mlx5_0".into()),
        ];
        for matcher in request.queries.iter().flat_map(|query| &query.matchers) {
            let _ = matcher.takes(&labels);
        }
    }
    // Times as odd as a client may ask for.
    let mut chunk = XorChunk::new();
    for query in message.queries.iter().take(100) {
        chunk.push(
            query.start_timestamp_ms,
            f64::from_bits(query.end_timestamp_ms.cast_unsigned()),
        );
    }
    assert!(chunk.into_bytes().len() <= 2 + 100 * 19 + 10);
}
