//! The beginning of a connection: TLS, or an answer in plain words to a client that does not speak it.

use super::Web;
use crate::http::Greeting;
use rustls::{AlertDescription, Error};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// First byte of every TLS connection (RFC 8446, 5.1: `handshake`).
const HANDSHAKE: u8 = 22;
/// What a client reads that takes the port for one of plain HTTP.
const NOT_PLAIN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\
    Content-Length: 50\r\n\r\nthis port speaks HTTPS: begin the URL with https:\n";

/// What can be read and written.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// TLS where the settings of the moment ask for it.
#[derive(Clone)]
pub(crate) struct Handshake {
    pub(crate) web: Arc<Web>,
    /// A client that takes longer is given up.
    pub(crate) limit: Duration,
}

impl Greeting for Handshake {
    type Stream = Box<dyn Stream>;

    async fn begin(self, stream: TcpStream) -> Option<Box<dyn Stream>> {
        let settings = self.web.settings().await;
        let Some(config) = settings.tls() else {
            return Some(Box::new(stream));
        };
        let acceptor = TlsAcceptor::from(Arc::clone(config));
        let refused = match tokio::time::timeout(self.limit, handshake(acceptor, stream)).await {
            Ok(Ok(stream)) => return Some(Box::new(stream)),
            Ok(Err(refused)) => refused,
            Err(_) => Refused::because("timeout", "the client took too long"),
        };
        tracing::debug!(reason = refused.reason, error = %refused.detail, "a connection was refused");
        self.web.count_refused(refused.reason);
        None
    }
}

/// Why a handshake came to nothing.
struct Refused {
    reason: &'static str,
    detail: String,
}

impl Refused {
    fn because(reason: &'static str, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }
}

async fn handshake(acceptor: TlsAcceptor, mut stream: TcpStream) -> Result<TlsStream<TcpStream>, Refused> {
    let mut first = [HANDSHAKE];
    match stream.peek(&mut first).await {
        Ok(0) | Err(_) => return Err(Refused::because("closed", "the client said nothing")),
        Ok(_) if first != [HANDSHAKE] => {
            // What is not read before the end is answered with a reset, which takes the answer away with it.
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(NOT_PLAIN).await;
            let _ = stream.shutdown().await;
            return Err(Refused::because("plain_http", "the client does not speak TLS"));
        }
        Ok(_) => {}
    }
    acceptor.accept(stream).await.map_err(|error| {
        let reason = reason(&error);
        Refused::because(reason, error.to_string())
    })
}

/// One of few words for any error: it is a label.
fn reason(error: &io::Error) -> &'static str {
    let Some(tls) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else {
        return "closed";
    };
    match tls {
        Error::NoCertificatesPresented => "no_client_certificate",
        Error::InvalidCertificate(_) => "bad_client_certificate",
        Error::PeerIncompatible(_) => "no_common_version_or_cipher",
        // The client does not like the certificate of this server.
        Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate,
        ) => "refused_by_client",
        _ => "protocol",
    }
}
