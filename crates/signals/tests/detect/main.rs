//! Detectors: on the simulated server, on rows made by hand, on what others reported, and their document.

mod docs;
mod onset;
mod ports;
mod reports;
mod rows;
mod scenarios;
mod server;
mod traffic;
