//! Watches what the RoCEv2 fabric does to a GPU server.

fn main() {}
