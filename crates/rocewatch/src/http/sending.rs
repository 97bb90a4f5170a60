//! Bodies that are sent a piece at a time, to clients that take them.

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_core::Stream;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// A client that has not taken a piece for so long is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a piece, roughly.
pub(super) const PIECE: usize = 64 * 1024;

/// One of the places for look-ups.
pub(super) use tokio::sync::OwnedSemaphorePermit as Place;

/// JSON that is there already.
pub(super) fn json(bytes: Vec<u8>, place: Place) -> Response {
    let mut response = Response::new(body_of(bytes, place));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A body of bytes that are there already.
pub(super) fn body_of(bytes: Vec<u8>, place: Place) -> Body {
    let mut at = 0;
    let pieces = std::iter::from_fn(move || {
        let piece = &bytes[at..bytes.len().min(at + PIECE)];
        at += piece.len();
        // A copy: a piece that a client does not take must not hold on to all the others.
        (!piece.is_empty()).then(|| Bytes::copy_from_slice(piece))
    });
    body(pieces, place)
}

/// A body of these pieces.
pub(super) fn body(pieces: impl Iterator<Item = Bytes> + Send + 'static, place: Place) -> Body {
    let (out, inbox) = Out::new();
    tokio::spawn(async move {
        // The place is free again when the last piece is on its way, or the client has been given up.
        let _place = place;
        for piece in pieces {
            if !out.send(piece).await {
                return;
            }
        }
        out.end().await;
    });
    Body::from_stream(Pieces {
        inbox,
        last_word: None,
        ended: false,
    })
}

/// A body that grows as long as `write` runs. A client that has been given up finds `last_word` when it goes on reading.
pub(super) fn live<F>(write: impl FnOnce(Out) -> F, last_word: Bytes, place: Place) -> Body
where
    F: Future<Output = ()> + Send + 'static,
{
    let (out, inbox) = Out::new();
    let writing = write(out);
    tokio::spawn(async move {
        let _place = place;
        writing.await;
    });
    Body::from_stream(Pieces {
        inbox,
        last_word: Some(last_word),
        ended: false,
    })
}

/// Where pieces are written.
pub(super) struct Out(Sender<Option<Bytes>>);

impl Out {
    fn new() -> (Self, Receiver<Option<Bytes>>) {
        let (out, inbox) = channel(1);
        (Self(out), inbox)
    }

    /// Waits until the client takes a piece. False if it does not.
    pub(super) async fn send(&self, piece: Bytes) -> bool {
        self.put(Some(piece)).await
    }

    /// Waits until the client is gone.
    pub(super) async fn unwanted(&self) {
        self.0.closed().await;
    }

    /// Says that this was all.
    async fn end(&self) {
        self.put(None).await;
    }

    async fn put(&self, piece: Option<Bytes>) -> bool {
        let sent = tokio::time::timeout(PATIENCE, self.0.send(piece)).await;
        if sent.is_err() {
            tracing::debug!("a client did not take its answer and is given up");
        }
        matches!(sent, Ok(Ok(())))
    }
}

/// The other end of [`Out`].
struct Pieces {
    inbox: Receiver<Option<Bytes>>,
    /// What is said where the pieces break off.
    last_word: Option<Bytes>,
    ended: bool,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.inbox.poll_recv(context).map(|piece| {
            self.ended = !matches!(piece, Some(Some(_)));
            match piece {
                Some(piece) => piece.map(Ok),
                // Without a word a client would take what it has for all there is.
                None => Some(
                    self.last_word
                        .take()
                        .ok_or_else(|| io::ErrorKind::TimedOut.into()),
                ),
            }
        })
    }
}
