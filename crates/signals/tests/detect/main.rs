//! Detectors: on the simulated server, on rows made by hand, and their document.

mod docs;
mod onset;
mod ports;
mod rows;
mod scenarios;
mod server;
mod traffic;
