//! Serves a file from memory, for `scripts/bench-peers`: by the daemon's own HTTP server (`--same`), or by the least that
//! speaks HTTP over a kept connection (`--bare`).
#![allow(clippy::disallowed_methods)] // a program beside the daemon reads its one file itself

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

#[allow(dead_code)] // the rest is for commands
#[path = "../src/failure.rs"]
mod failure;
#[path = "../src/http/server.rs"]
mod server;

/// What the server asks of the daemon's configuration.
mod config {
    pub(crate) struct Http {
        pub(crate) max_connections: u32,
        pub(crate) header_timeout: std::time::Duration,
    }
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, page, address] = arguments.as_slice() else {
        return Err("usage: static_page --same|--bare PAGE ADDRESS:PORT".into());
    };
    let page = Bytes::from(std::fs::read(page)?);
    let address: SocketAddr = address.parse()?;
    match how.as_str() {
        "--same" => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(same(page, address)),
        _ => Ok(bare(&page, address)?),
    }
}

async fn same(page: Bytes, address: SocketAddr) -> Result<()> {
    let listener = server::bind(address)
        .await
        .map_err(|failure| failure.to_string())?;
    let limits = config::Http {
        max_connections: 64,
        header_timeout: Duration::from_secs(30),
    };
    let router = Router::new().route("/metrics", get(move || std::future::ready(page.clone())));
    server::serve(listener, router, &limits, server::Plain, std::future::pending()).await;
    Ok(())
}

fn bare(page: &Bytes, address: SocketAddr) -> io::Result<()> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len()).into_bytes();
    answer.extend_from_slice(page);
    for stream in TcpListener::bind(address)?.incoming() {
        let (stream, answer) = (stream?, answer.clone());
        std::thread::spawn(move || answer_all(&stream, &answer));
    }
    Ok(())
}

fn answer_all(stream: &TcpStream, answer: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut requests = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if requests.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            let mut stream = stream;
            stream.write_all(answer)?;
        }
    }
}
