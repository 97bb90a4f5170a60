//! Accepts connections within limits, and stops when told to.

use crate::config::Http;
use crate::failure::Failure;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// After the end was asked for, answers under way have this long.
const GRACE: Duration = Duration::from_secs(1);
/// When the process has no descriptor left, the next try to accept waits this long.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// Opens the address.
///
/// # Errors
/// Says who may hold the port, or what else to do.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("another program has it (`ss -ltnp 'sport = :{}'` shows which); choose another with --listen", address.port())
            }
            io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege; choose a higher one with --listen".to_owned(),
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address; `ip address` lists those it has".to_owned(),
            _ => "choose another with --listen".to_owned(),
        };
        Failure::Runtime(format!("cannot listen on {address}: {error}; {remedy}"))
    })
}

/// Serves until `end` is ready, then gives answers under way a moment.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: &Http,
    greeting: impl Greeting,
    end: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.max_connections as usize));
    let protocol = protocol(limits);
    let graceful = GracefulShutdown::new();
    tokio::pin!(end);
    loop {
        // A connection takes its place before it is accepted: those beyond the limit wait in the kernel's queue.
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = &mut end => break,
        };
        let stream = tokio::select! {
            stream = accept(&listener) => stream,
            () = &mut end => break,
        };
        let connection = Connection {
            protocol: protocol.clone(),
            service: TowerToHyperService::new(router.clone()),
            watcher: graceful.watcher(),
        };
        let greeting = greeting.clone();
        tokio::spawn(async move {
            if let Some(stream) = greeting.begin(stream).await {
                connection.serve(stream).await;
            }
            drop(place);
        });
    }
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}

/// How a connection begins, before the first request.
pub(crate) trait Greeting: Clone + Send + 'static {
    /// What requests come on.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Makes a connection ready for requests; `None` if there is nothing to come of it.
    fn begin(self, stream: TcpStream) -> impl Future<Output = Option<Self::Stream>> + Send;
}

/// Nothing comes before the first request.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Greeting for Plain {
    type Stream = TcpStream;

    async fn begin(self, stream: TcpStream) -> Option<TcpStream> {
        Some(stream)
    }
}

/// What a connection is served with.
struct Connection {
    protocol: http1::Builder,
    service: TowerToHyperService<Router>,
    watcher: Watcher,
}

impl Connection {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
        let connection = self.protocol.serve_connection(TokioIo::new(stream), self.service);
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// HTTP/1 with its limits.
pub(crate) fn protocol(limits: &Http) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(16 * 1024);
    builder
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}
