//! The HTTP server: `/metrics`, health, and the API.

mod api;
pub(crate) mod history;
mod look_ups;
pub(crate) mod read;
mod refusal;
mod routes;
mod sending;
pub(crate) mod server;

pub(crate) use api::ports;
pub(crate) use look_ups::LookUps;
pub(crate) use routes::{App, router};
pub(crate) use server::{bind, serve};
