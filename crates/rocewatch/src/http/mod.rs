//! The HTTP server: `/metrics`, health, and the API.

mod api;
mod asked;
pub(crate) mod events;
mod findings;
pub(crate) mod history;
pub(crate) mod incidents;
mod look_ups;
pub(crate) mod read;
mod refusal;
mod routes;
mod sending;
pub(crate) mod server;
mod stream;

pub(crate) use api::ports;
pub(crate) use findings::Report;
pub(crate) use look_ups::LookUps;
pub(crate) use routes::{App, router};
pub(crate) use server::{Greeting, Plain, bind, serve};
pub(crate) use stream::Streams;
