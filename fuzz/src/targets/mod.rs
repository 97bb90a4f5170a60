//! One module a target. An oracle is an assertion: libFuzzer takes a panic for a crash and keeps the input.

pub mod accept;
pub mod archive;
pub mod capture;
pub mod config;
pub mod dcb;
pub mod ethtool;
pub mod exposition;
pub mod history;
pub mod http;
pub mod moment;
pub mod netlink;
pub mod number;
pub mod pattern;
pub mod query;
pub mod rdma;
pub mod read;
pub mod settings;
pub mod sysfs;
pub mod web;
