//! The HTTP server: `/metrics`, health, and the API.

mod api;
mod findings;
mod routes;
pub(crate) mod server;

pub(crate) use api::ports;
pub(crate) use findings::Report;
pub(crate) use routes::{App, router};
pub(crate) use server::{Greeting, Plain, bind, serve};
