//! What stands before every answer: the rate limit, the headers, the password. The order is exporter-toolkit's.

use super::{Credentials, Web};
use crate::http::App;
use crate::metrics::CountedPath;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// Lets a request through to its answer, which counts it, or counts it and gives the reason why not.
pub(crate) async fn guard(
    State((app, web)): State<(Arc<App>, Arc<Web>)>,
    request: Request,
    next: Next,
) -> Response {
    let path = CountedPath::of(request.uri().path());
    let settings = web.settings().await;
    if !settings.is_within_rate(web.now()) {
        let why = "too many requests (rate_limit of the web configuration)\n";
        return app.counted(path, (StatusCode::TOO_MANY_REQUESTS, why).into_response());
    }
    let given = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|header| Credentials::from_header(header.as_bytes()));
    let mut response = if web.admits(&settings, given).await {
        next.run(request).await
    } else {
        app.counted(path, unauthorized())
    };
    for (name, value) in settings.headers() {
        response.headers_mut().insert(name, value.clone());
    }
    response
}

fn unauthorized() -> Response {
    let mut response = (
        StatusCode::UNAUTHORIZED,
        "a user name and a password are needed\n",
    )
        .into_response();
    response.headers_mut().insert(
        WWW_AUTHENTICATE,
        HeaderValue::from_static("Basic realm=\"rocewatch\", charset=\"UTF-8\""),
    );
    response
}
