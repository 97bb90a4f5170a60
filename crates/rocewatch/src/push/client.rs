//! One request to one receiver: HTTP/1.1, encrypted where the URL says so.

use crate::config::{Access, Url};
use crate::files;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, DATE, HOST, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// From the look-up of the name to the end of the answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// As much of an answer as is read: the reason of a refusal.
const MOST_ANSWER: usize = 4096;
/// As much of a reason as is logged.
const MOST_REASON: usize = 200;
/// No receiver can ask for more patience than this.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// A receiver, and how to get to it.
pub(super) struct Client {
    url: Url,
    tls: Option<TlsConnector>,
    secret: Secret,
}

/// How a client shows who it is. Files are read for each request, so that a renewed one is taken up.
enum Secret {
    None,
    Password { username: String, file: PathBuf },
    Token { file: PathBuf },
}

/// What a receiver says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    /// Its beginning, in one line.
    pub(super) text: String,
}

impl Client {
    /// A way to `url`.
    ///
    /// # Errors
    /// The authorities' certificates cannot be read, or there are none.
    pub(super) fn new(url: Url, access: Access<'_>) -> Result<Self, String> {
        let secret = if !access.password_file.as_os_str().is_empty() {
            Secret::Password {
                username: access.username.to_owned(),
                file: access.password_file.clone(),
            }
        } else if !access.bearer_token_file.as_os_str().is_empty() {
            Secret::Token {
                file: access.bearer_token_file.clone(),
            }
        } else {
            Secret::None
        };
        let tls = if url.is_tls() {
            Some(connector(access.ca_file)?)
        } else {
            None
        };
        Ok(Self { url, tls, secret })
    }

    /// Sends a body, with these headers.
    ///
    /// # Errors
    /// There was no answer.
    pub(super) async fn post(
        &self,
        headers: &[(&'static str, &'static str)],
        body: Bytes,
    ) -> Result<Answer, String> {
        match tokio::time::timeout(PATIENCE, self.exchange(headers, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {PATIENCE:?}")),
        }
    }

    async fn exchange(
        &self,
        headers: &[(&'static str, &'static str)],
        body: Bytes,
    ) -> Result<Answer, String> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.path().parse().map_err(text)?;
        let length = HeaderValue::from(request.body().clone().into_inner().map_or(0, |body| body.len()));
        let fields = request.headers_mut();
        fields.insert(HOST, HeaderValue::from_str(self.url.authority()).map_err(text)?);
        fields.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("rocewatch/", env!("CARGO_PKG_VERSION"))),
        );
        fields.insert(CONTENT_LENGTH, length);
        for (name, value) in headers {
            fields.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(value) = self.authorization().await? {
            fields.insert(AUTHORIZATION, value);
        }
        let stream = TcpStream::connect((self.url.host(), self.url.port()))
            .await
            .map_err(text)?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => send(stream, request).await,
            Some(connector) => {
                let name = ServerName::try_from(self.url.host().to_owned()).map_err(text)?;
                let stream = connector.connect(name, stream).await.map_err(text)?;
                send(stream, request).await
            }
        }
    }

    async fn authorization(&self) -> Result<Option<HeaderValue>, String> {
        let (prefix, file) = match &self.secret {
            Secret::None => return Ok(None),
            Secret::Password { username, file } => (Some(username), file.clone()),
            Secret::Token { file } => (None, file.clone()),
        };
        let shown = file.display().to_string();
        let content = tokio::task::spawn_blocking(move || files::read_text(&file))
            .await
            .map_err(text)?
            .map_err(|error| format!("cannot read {shown}: {error}"))?;
        let secret = content.trim_end_matches(['\r', '\n']);
        let value = match prefix {
            Some(username) => format!("Basic {}", STANDARD.encode(format!("{username}:{secret}"))),
            None => format!("Bearer {secret}"),
        };
        let mut value =
            HeaderValue::from_str(&value).map_err(|_| format!("{shown} is not one line of text"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(text)?;
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let body = Limited::new(response.into_body(), MOST_ANSWER).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Ok(Answer {
            status,
            retry_after,
            text: one_line(&body),
        })
    };
    // The connection is of use only while it is waited for: it ends with this function.
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(text(error)),
        },
    }
}

/// Seconds, or a time (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds).min(LONGEST_WAIT));
    }
    // By the receiver's own clock, which stands in the same answer.
    let now = headers.get(DATE)?.to_str().ok()?;
    let time = |text| jiff::fmt::rfc2822::parse(text).ok();
    let wait = time(value)?.timestamp().duration_since(time(now)?.timestamp());
    Some(Duration::try_from(wait).ok()?.min(LONGEST_WAIT))
}

fn one_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MOST_REASON).collect()
}

fn connector(ca_file: &Path) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    if ca_file.as_os_str().is_empty() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err("this system has no certificates of authorities (package ca-certificates); name some with ca_file".to_owned());
        }
    } else {
        let name = ca_file.display();
        let content = files::read(ca_file).map_err(|error| format!("cannot read ca_file {name}: {error}"))?;
        for certificate in CertificateDer::pem_slice_iter(&content) {
            let certificate = certificate.map_err(|error| format!("ca_file {name} is not PEM: {error}"))?;
            roots
                .add(certificate)
                .map_err(|error| format!("ca_file {name}: {error}"))?;
        }
        if roots.is_empty() {
            return Err(format!("there is no certificate in ca_file {name}"));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(text)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(pairs: &[(HeaderName, &'static str)]) -> Option<Duration> {
        let headers = pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect();
        retry_after(&headers)
    }

    #[test]
    fn a_receiver_can_ask_for_patience_in_both_ways() {
        assert_eq!(wait(&[(RETRY_AFTER, "7")]), Some(Duration::from_secs(7)));
        assert_eq!(wait(&[(RETRY_AFTER, "86400")]), Some(LONGEST_WAIT));
        assert_eq!(wait(&[(RETRY_AFTER, "soon")]), None);
        assert_eq!(wait(&[]), None);
        let date = (DATE, "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(
            wait(&[(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:40 GMT"), date.clone()]),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            wait(&[(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:30 GMT"), date]),
            None
        );
    }

    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(
            one_line(b" out of\n order \xff sample\n"),
            "out of order \u{fffd} sample"
        );
        assert_eq!(one_line(&[b'a'; 900]).len(), MOST_REASON);
    }
}
