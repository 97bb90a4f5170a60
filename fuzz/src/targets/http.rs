//! Requests as they come over a connection, to the daemon's own server and router.

use crate::agent::Agent;
use crate::clock::Clock;
use crate::config::{Config, Http};
use crate::http::server::protocol;
use crate::http::{App, Streams, router};
use crate::metrics::Exposition;
use crate::page;
use axum::Router;
use flate2::read::GzDecoder;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// More than a page, so that the server never waits for room.
const PIPE: usize = 4 * 1024 * 1024;
/// A client that has said all it has to say is answered long before this.
const PATIENCE: Duration = Duration::from_secs(5);
/// What can be the answer to a request, whatever it is: never 500, and never a timeout.
const STATUSES: [u16; 8] = [200, 400, 404, 405, 413, 414, 431, 503];

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
}

/// The daemon on one port of the simulated node: its pages are read here far more often than they are written anywhere.
static APP: LazyLock<Arc<App>> = LazyLock::new(|| {
    let config = Config::parse("devices.include = [\"mlx5_0\"]").expect("this is a configuration");
    let clock = Clock::start();
    let host = sim::Simulator::new(sim::Scenario::Incast, 1, move || clock.now());
    let agent = Agent::start(Arc::new(host), &config, None, clock).expect("threads can be started");
    while agent.world().not_ready(clock.now()).is_some() {
        std::thread::yield_now();
    }
    Arc::new(App {
        agent: Arc::new(agent),
        exposition: Exposition::new(config.metrics, 0.0, None),
        clock,
        kernel: None,
        not_live: None,
        archivist: None,
        look_ups: None,
        streams: Streams::new(),
        sandbox: "off",
        web: None,
    })
});

static ROUTER: LazyLock<Router> = LazyLock::new(|| router(Arc::clone(&APP)));

/// A connection ends once its requests are answered, and the first answer is a proper one.
pub fn check(requests: &[u8]) {
    let answer = answer_within(&Http::default(), ROUTER.clone(), requests);
    if !answer.is_empty() {
        // Before a request line empty lines are passed over (RFC 9112, 2.2).
        let start = requests
            .iter()
            .position(|byte| !b"\r\n".contains(byte))
            .unwrap_or(0);
        check_answer(&answer, requests[start..].starts_with(b"HEAD "));
    }
}

/// True if a server with these limits answers a plain request.
pub(super) fn serves(limits: &Http) -> bool {
    let request = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    answer_within(limits, router(Arc::clone(&APP)), request).starts_with(b"HTTP/1.1 ")
}

fn answer_within(limits: &Http, router: Router, requests: &[u8]) -> Vec<u8> {
    let talk = async { timeout(PATIENCE, talk(limits, router, requests)).await };
    RUNTIME
        .with(|runtime| runtime.block_on(talk))
        .expect("the connection ends")
}

async fn talk(limits: &Http, router: Router, requests: &[u8]) -> Vec<u8> {
    let (mut client, server) = duplex(PIPE);
    let service = TowerToHyperService::new(router);
    // The client has nothing more to say but listens; the daemon itself hangs up on one that closes its side.
    let connection = protocol(limits)
        .half_close(true)
        .serve_connection(TokioIo::new(server), service);
    let serve = tokio::spawn(connection);
    // Either may fail: the server is free to hang up on what is no request.
    let _ = client.write_all(requests).await;
    let _ = client.shutdown().await;
    let mut answer = Vec::new();
    client
        .read_to_end(&mut answer)
        .await
        .expect("a pipe can be read to its end");
    let _ = serve.await.expect("a connection does not panic");
    answer
}

fn check_answer(answer: &[u8], is_head: bool) {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let parsed = head.parse(answer).expect("the answer is HTTP");
    let httparse::Status::Complete(length) = parsed else {
        panic!("the head is cut off")
    };
    let status = head.code.expect("an answer has a status");
    assert!(STATUSES.contains(&status), "status {status}");
    let header = |name: &str| {
        let found = head
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| std::str::from_utf8(header.value).expect("headers are text"))
    };
    let content_length = header("content-length").map(|length| length.parse::<usize>().expect("a number"));
    if is_head {
        return;
    }
    let body = &answer[length..];
    let body = content_length.map_or(body, |length| body.get(..length).expect("the body is all there"));
    if is_new(body) {
        check_body(
            body,
            header("content-encoding"),
            header("content-type").unwrap_or_default(),
        );
    }
}

/// True the first time: the daemon gives out each page again and again until its values change.
fn is_new(body: &[u8]) -> bool {
    thread_local! {
        static SEEN: RefCell<HashSet<u64>> = RefCell::default();
    }
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    SEEN.with_borrow_mut(|seen| seen.insert(hasher.finish()))
}

fn check_body(body: &[u8], encoding: Option<&str>, kind: &str) {
    let mut unpacked = Vec::new();
    let body = match encoding {
        Some("gzip") => {
            GzDecoder::new(body)
                .read_to_end(&mut unpacked)
                .expect("the body is gzip");
            &unpacked
        }
        Some(other) => panic!("encoding {other}"),
        None => body,
    };
    let text = std::str::from_utf8(body).expect("every body is text");
    match kind {
        "application/json" => {
            drop(serde_json::from_str::<serde_json::Value>(text).expect("the body is JSON"))
        }
        "text/plain; version=0.0.4; charset=utf-8" => page::check(text, false),
        "application/openmetrics-text; version=1.0.0; charset=utf-8" => page::check(text, true),
        _ => {}
    }
}
