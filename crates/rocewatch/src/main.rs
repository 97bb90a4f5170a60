//! Watches what the `RoCEv2` fabric does to a GPU server.

mod agent;
mod cli;
mod clock;
mod commands;
mod config;
mod event;
mod failure;
mod files;
mod http;
mod incident;
mod logging;
mod metrics;
mod past;
mod push;
mod report;
mod sandbox;
mod service;
mod shown;
mod usual;
mod web;
mod who;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse().and_then(commands::execute) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
