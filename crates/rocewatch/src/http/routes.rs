//! What each path answers.

use super::findings::Report;
use super::look_ups::LookUps;
use super::refusal::Refusal;
use super::stream::{self, Streams};
use super::{api, events, history, incidents, read};
use crate::agent::{Agent, Archivist};
use crate::clock::Clock;
use crate::metrics::{CountedPath, Encoding, Exposition, Format};
use crate::web::{self, Web};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Json, Response};
use axum::routing::{get, post};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;

/// Nothing that this server answers needs a body, but for what limits it by itself.
const MAX_BODY: usize = 4 * 1024;

/// What the handlers share.
pub(crate) struct App {
    pub(crate) agent: Arc<Agent>,
    pub(crate) exposition: Exposition,
    pub(crate) clock: Clock,
    /// Release of the kernel that is watched.
    pub(crate) kernel: Option<String>,
    /// Said wherever a person looks, if the numbers are not real.
    pub(crate) not_live: Option<String>,
    /// The archive, where the daemon keeps one, as it is written and as it is read.
    pub(crate) archivist: Option<Arc<Archivist>>,
    pub(crate) look_ups: Option<LookUps>,
    pub(crate) streams: Streams,
    /// How far the daemon is locked in.
    pub(crate) sandbox: &'static str,
    /// TLS and passwords, if they are asked for.
    pub(crate) web: Option<Arc<Web>>,
}

impl App {
    fn look_ups(&self) -> Result<&LookUps, Refusal> {
        self.look_ups.as_ref().ok_or_else(|| {
            Refusal::unavailable("this daemon keeps no archive: start it with --state DIR, and ask again")
        })
    }

    /// Counts an answer, and gives it.
    pub(crate) fn counted(&self, path: CountedPath, response: Response) -> Response {
        self.exposition.own().count_request(path, response.status());
        response
    }
}

/// All paths. What is in memory is answered at once; what looks into the archive has a limit of its own.
pub(crate) fn router(app: Arc<App>) -> Router {
    let long = Router::new().route("/api/v1/read", post(remote_read));
    let router = Router::new()
        .route("/", get(landing))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/api/v1/status", get(status))
        .route("/api/v1/ports", get(ports))
        .route("/api/v1/openapi.json", get(openapi))
        .route("/api/v1/findings", get(findings))
        .route("/api/v1/history", get(look_up_history))
        .route("/api/v1/events", get(look_up_events))
        .route("/api/v1/incidents", get(list_incidents))
        .route("/api/v1/incidents/{id}", get(one_incident))
        .route("/api/v1/stream", get(follow_events))
        .layer(RequestBodyLimitLayer::new(MAX_BODY))
        .merge(long)
        .fallback(unknown)
        .method_not_allowed_fallback(method_not_allowed);
    let router = router
        // Both at once: each layer of a router costs a request some allocations.
        .layer((
            CatchPanicLayer::new(),
            middleware::from_fn_with_state(Arc::clone(&app), count),
        ))
        // Outside all layers: a scrape finds the caches cold, and they would take a tenth of its time.
        .route("/metrics", get(metrics).fallback(no_metrics));
    let router = match &app.web {
        Some(web) => router.layer((
            CatchPanicLayer::new(),
            middleware::from_fn_with_state((Arc::clone(&app), Arc::clone(web)), web::guard),
        )),
        None => router,
    };
    router.with_state(app)
}

async fn method_not_allowed() -> Refusal {
    Refusal::method_not_allowed()
}

async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = CountedPath::of(request.uri().path());
    app.counted(path, next.run(request).await)
}

/// The newest exposition, with what the layers do for other paths.
async fn metrics(State(app): State<Arc<App>>, request: Request) -> Response {
    let headers = request.headers();
    let length = text_of(headers, &CONTENT_LENGTH).parse::<usize>();
    let response = if length.is_ok_and(|length| length > MAX_BODY) {
        Refusal::too_large("a scrape needs no body").into_response()
    } else {
        catch_unwind(AssertUnwindSafe(|| exposition(&app, headers)))
            .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    };
    app.counted(CountedPath::METRICS, response)
}

async fn no_metrics(State(app): State<Arc<App>>) -> Response {
    app.counted(CountedPath::METRICS, method_not_allowed().await.into_response())
}

fn exposition(app: &App, headers: &HeaderMap) -> Response {
    let format = Format::negotiate(text_of(headers, &ACCEPT));
    let encoding = Encoding::negotiate(text_of(headers, &ACCEPT_ENCODING));
    let page = app.exposition.page(&app.agent, format, encoding);
    let mut response = Response::new(Body::from(page));
    let answer = response.headers_mut();
    answer.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    answer.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    if encoding == Encoding::Gzip {
        answer.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn text_of<'a>(headers: &'a HeaderMap, name: &axum::http::HeaderName) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

async fn healthz(State(app): State<Arc<App>>) -> Response {
    match app.agent.world().sleeping_for(app.clock.now()) {
        Some(asleep) => {
            let text = format!("the thread that derives the signals has not run for {asleep:?}\n");
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
        None => "ok\n".into_response(),
    }
}

async fn readyz(State(app): State<Arc<App>>) -> Response {
    match app.agent.world().not_ready(app.clock.now()) {
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
        None => "ready\n".into_response(),
    }
}

async fn status(State(app): State<Arc<App>>) -> Json<api::Status> {
    let facts = api::AgentFacts {
        kernel: app.kernel.clone(),
        not_live: app.not_live.clone(),
        sandbox: app.sandbox,
    };
    let news = app.archivist.as_deref().map(Archivist::news);
    Json(api::Status::of(&app.agent.world(), news, app.clock, facts))
}

async fn ports(State(app): State<Arc<App>>) -> Json<Vec<api::Port>> {
    Json(api::ports(&app.agent.world()))
}

/// What every path takes and answers; `tests/api.rs` holds it against the paths.
async fn openapi() -> Response {
    (
        [(CONTENT_TYPE, "application/json")],
        include_str!("../../../../docs/openapi.json"),
    )
        .into_response()
}

async fn look_up_history(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Refusal> {
    history::answer(app.look_ups()?, &uri, app.clock.wall()).await
}

async fn look_up_events(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Refusal> {
    events::answer(&app.agent, app.look_ups.as_ref(), &uri, app.clock.wall()).await
}

async fn list_incidents(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Refusal> {
    incidents::list(app.look_ups()?, &uri, app.clock.wall()).await
}

async fn one_incident(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, Refusal> {
    incidents::one(app.look_ups()?, id).await
}

async fn follow_events(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    stream::answer(Arc::clone(&app.agent), &app.streams, app.clock, &uri, &headers)
}

async fn remote_read(State(app): State<Arc<App>>, uri: Uri, body: Body) -> Result<Response, Refusal> {
    read::answer(app.look_ups()?, &uri, body).await
}

async fn findings(State(app): State<Arc<App>>) -> Json<Report> {
    let now = app.clock.now();
    let world = app.agent.world();
    let windows: Vec<_> = world
        .ports()
        .map(|view| doctor::PortWindow::of(&view.port, &view.signals))
        .collect();
    let verdicts = doctor::verdicts(&windows, world.policy());
    let found = world.findings();
    let mut report = Report::of(&found.list, &verdicts, Vec::new());
    report.looked_seconds_ago = found.looked.map(|at| now.saturating_sub(at) as f64 / 1e9);
    Json(report)
}

async fn landing(State(app): State<Arc<App>>) -> Html<String> {
    let notice = app
        .not_live
        .as_deref()
        .map(|text| format!("<p><strong>{text}</strong></p>\n"))
        .unwrap_or_default();
    Html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Rocewatch</title></head>\n<body>\n\
         <h1>Rocewatch {}</h1>\n{notice}<p>What the RoCEv2 fabric does to this node.</p>\n<ul>\n\
         <li><a href=\"/metrics\">/metrics</a> for Prometheus</li>\n\
         <li><a href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a> all paths below, for programs</li>\n\
         <li><a href=\"/api/v1/ports\">/api/v1/ports</a> the ports, and what can be read of each</li>\n\
         <li><a href=\"/api/v1/findings\">/api/v1/findings</a> what the doctor finds</li>\n\
         <li><a href=\"/api/v1/status\">/api/v1/status</a> the agent itself</li>\n\
         <li><a href=\"/api/v1/history\">/api/v1/history</a> what the archive has, counter by counter</li>\n\
         <li><a href=\"/api/v1/events\">/api/v1/events</a> what happened, <a href=\"/api/v1/incidents\">/api/v1/incidents</a> \
         what happened together, <a href=\"/api/v1/stream\">/api/v1/stream</a> what happens, as it does</li>\n\
         <li>/api/v1/read for <code>remote_read</code> of Prometheus</li>\n\
         <li><a href=\"/healthz\">/healthz</a>, <a href=\"/readyz\">/readyz</a></li>\n</ul>\n</body></html>\n",
        env!("CARGO_PKG_VERSION"),
    ))
}

async fn unknown() -> Refusal {
    Refusal::not_found("there is nothing here; / lists what there is")
}
