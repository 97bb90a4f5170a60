//! Bodies that are sent a piece at a time, to clients that take them.

use axum::body::{Body, Bytes};
use futures_core::Stream;
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

/// A body of these pieces. The place is free again when the last is on its way, or the client has been given up.
pub(super) fn body(pieces: impl Iterator<Item = Bytes> + Send + 'static, place: Place) -> Body {
    let (out, inbox) = channel(1);
    tokio::spawn(async move {
        send(pieces, &out).await;
        drop(place);
    });
    Body::from_stream(Pieces { inbox, whole: false })
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

/// Sends all pieces and `None`.
async fn send(pieces: impl Iterator<Item = Bytes>, out: &Sender<Option<Bytes>>) {
    for piece in pieces.map(Some).chain([None]) {
        match tokio::time::timeout(PATIENCE, out.send(piece)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                tracing::debug!("a client did not take its answer and is given up");
                return;
            }
        }
    }
}

/// The other end of [`send`].
struct Pieces {
    inbox: Receiver<Option<Bytes>>,
    whole: bool,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.whole {
            return Poll::Ready(None);
        }
        self.inbox.poll_recv(context).map(|piece| match piece {
            Some(Some(piece)) => Some(Ok(piece)),
            Some(None) => {
                self.whole = true;
                None
            }
            // Without this a client would take what it has for all there is.
            None => {
                self.whole = true;
                Some(Err(io::ErrorKind::TimedOut.into()))
            }
        })
    }
}
