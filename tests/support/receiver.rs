//! Who gets what the daemon sends: an HTTP server that answers as the test says, and remembers what it was sent.

#![allow(dead_code)] // each test program uses a part
#![allow(unreachable_pub)] // a module of several test programs

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A request: head in small letters, and body.
#[derive(Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// What it was answered.
    pub(crate) status: u16,
}

/// The server. Its thread ends with the process.
pub(crate) struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    status: Arc<AtomicU16>,
    retry_after: Arc<AtomicBool>,
}

impl Receiver {
    /// Answers everything with this status until it is told otherwise.
    pub(crate) fn start(status: u16) -> Self {
        Self::start_with(status, None)
    }

    /// The same over TLS.
    pub(crate) fn start_with(status: u16, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let this = Self {
            address: listener.local_addr().expect("it listens"),
            received: Arc::default(),
            status: Arc::new(AtomicU16::new(status)),
            retry_after: Arc::default(),
        };
        let (received, status, retry_after) = (
            Arc::clone(&this.received),
            Arc::clone(&this.status),
            Arc::clone(&this.retry_after),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let status = status.load(Ordering::SeqCst);
                let extra = if retry_after.load(Ordering::SeqCst) {
                    "Retry-After: 1\r\n"
                } else {
                    ""
                };
                let request = match &tls {
                    None => answer(stream, status, extra),
                    Some(tls) => {
                        let connection =
                            rustls::ServerConnection::new(Arc::clone(tls)).expect("it is usable");
                        answer(rustls::StreamOwned::new(connection, stream), status, extra)
                    }
                };
                received.lock().unwrap().extend(request);
            }
        });
        this
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with this from now on.
    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// Asks for a second of patience from now on.
    pub(crate) fn ask_for_patience(&self) {
        self.retry_after.store(true, Ordering::SeqCst);
    }

    /// All requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until this holds of the requests.
    pub(crate) fn wait_for(&self, what: &str, condition: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let received = self.received();
            if condition(&received) {
                return received;
            }
            assert!(
                Instant::now() < end,
                "{what}: not with {} requests",
                received.len()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn answer(stream: impl Read + Write, status: u16, extra: &str) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1)?.lines().next()?;
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let stream = reader.get_mut();
    let text =
        format!("HTTP/1.1 {status} X\r\n{extra}Content-Length: 9\r\nConnection: close\r\n\r\nas asked\n");
    stream.write_all(text.as_bytes()).ok()?;
    stream.flush().ok()?;
    Some(Received { head, body, status })
}
