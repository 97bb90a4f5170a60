//! What a client is told that does not get what it asked for: a status, and JSON that says what to do.

use super::api;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};

/// An answer that is none.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: String,
}

impl Refusal {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
        }
    }

    /// The request is wrong.
    pub(crate) fn bad_request(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// There is no such thing.
    pub(crate) fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// The thing is there, but not to be used in this way.
    pub(crate) fn method_not_allowed() -> Self {
        let error = "this path does not take this method; /api/v1/openapi.json says which it takes";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, error)
    }

    /// The request, or the answer to it, is larger than any.
    pub(crate) fn too_large(error: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, error)
    }

    /// The request was not there in time.
    pub(crate) fn too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "the request took too long to come; send it again",
        )
    }

    /// It cannot be answered now, or not by this daemon.
    pub(crate) fn unavailable(error: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    /// A fault of this program.
    pub(crate) fn fault(error: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(api::Error { error: self.error })).into_response()
    }
}
