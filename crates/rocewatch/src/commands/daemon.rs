//! The daemon: samples, serves, reloads, ends.

use crate::agent::{Agent, Archivist, World};
use crate::cli::Serve;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::failure::Failure;
use crate::files;
use crate::http::{self, App, LookUps, Streams};
use crate::logging;
use crate::metrics::Exposition;
use crate::service;
use model::Host;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often readiness is looked at until it is there.
const READY_POLL: Duration = Duration::from_millis(50);
/// The archive's folder in the directory of the daemon's state.
pub(super) const ARCHIVE: &str = "archive";
/// How long each of the last things to do may take at the end: changing back what was changed at the devices, writing the
/// last rows.
const LAST_WORD: Duration = Duration::from_millis(700);

/// What `run` and `demo` have in common.
pub(super) struct Daemon {
    pub(super) host: Arc<dyn Host>,
    pub(super) config: Config,
    pub(super) config_file: Option<PathBuf>,
    pub(super) serve: Serve,
    /// Release of the kernel that is watched.
    pub(super) kernel: Option<String>,
    /// For how long the node that is watched has been up, in nanoseconds.
    pub(super) uptime: Option<u64>,
    /// Said wherever a person looks, if the numbers are not real.
    pub(super) not_live: Option<String>,
    pub(super) clock: Clock,
}

/// Runs until SIGTERM or SIGINT.
///
/// The process ends without joining the lanes: one may be held in the kernel by a firmware that does not answer. Only where
/// something was changed at the devices are the lanes waited for, for a moment, so that it is changed back.
pub(super) fn run(daemon: Daemon) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Runtime(format!("cannot start: {error}")))?;
    let result = runtime.block_on(serve(daemon));
    runtime.shutdown_background();
    result
}

async fn serve(daemon: Daemon) -> Result<(), Failure> {
    let Daemon {
        host,
        mut config,
        config_file,
        serve,
        kernel,
        uptime,
        not_live,
        clock,
    } = daemon;
    config.listen = serve.listen.unwrap_or(config.listen);
    prepare_state(serve.state.as_deref())?;
    let log = logging::start(&config.log)?;
    let listener = http::bind(config.listen).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::Runtime(format!("cannot listen: {error}")))?;
    let hangup = on_signal(SignalKind::hangup())?;
    let end = end_of_daemon()?;
    let agent = Agent::start(host, &config, uptime, clock).map_err(|error| {
        Failure::Runtime(format!(
            "cannot start a thread: {error}; raise the limit on threads (TasksMax, ulimit -u)"
        ))
    })?;

    let archivist = match &serve.state {
        Some(state) => Some(Arc::new(archive(&agent, state, &config.archive, clock)?)),
        None => None,
    };

    if let Some(notice) = &not_live {
        tracing::warn!("{notice}");
    }
    tracing::info!("serving http://{address}/metrics");
    if address.ip().is_loopback() {
        tracing::info!(
            "only this machine can scrape it: to open it, listen on another address, as in --listen 0.0.0.0:{}",
            address.port()
        );
    }

    let started = clock
        .started_at()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    let limits = config.http.clone();
    let exposition = Exposition::new(config.metrics.clone(), started, archivist.clone());
    let app = Arc::new(App {
        agent: Arc::new(agent),
        exposition,
        clock,
        kernel,
        not_live,
        archivist: archivist.clone(),
        look_ups: serve
            .state
            .as_deref()
            .map(|state| LookUps::new(state.join(ARCHIVE), limits.request_timeout)),
        streams: Streams::new(),
    });
    let router = http::router(Arc::clone(&app), &limits);
    let started_with = config.clone();
    tokio::spawn(announce_ready(Arc::clone(&app)));
    tokio::spawn(reload_on(hangup, config_file, config, log, Arc::clone(&app)));
    http::serve(listener, router, &limits, end).await;
    service::stopping();
    if let Some(archivist) = &archivist {
        close(archivist).await;
    }
    if started_with.sampling.optional_counters {
        change_back(&app).await;
    }
    tracing::info!("ending");
    Ok(())
}

/// Opens the archive in the directory of the daemon's state.
fn archive(
    agent: &Agent,
    state: &Path,
    wanted: &config::Archive,
    clock: Clock,
) -> Result<Archivist, Failure> {
    let limits = archive::Limits {
        bytes: u64::from(wanted.max_mib) << 20,
        recorded: wanted.keep,
        pin_bytes: u64::from(wanted.incidents_max_mib) << 20,
        ..archive::Limits::default()
    };
    let folder = state.join(ARCHIVE);
    let cannot =
        |error: String| Failure::Runtime(format!("cannot keep an archive in {}: {error}", folder.display()));
    let epoch = files::unique_number().map_err(|error| cannot(error.to_string()))?;
    agent
        .archive(folder.clone(), limits, archive::Epoch(epoch), describe, clock)
        .map_err(|error| cannot(error.to_string()))
}

/// The ports as the API tells them.
fn describe(world: &World) -> serde_json::Value {
    serde_json::to_value(http::ports(world)).unwrap_or_default()
}

fn prepare_state(directory: Option<&Path>) -> Result<(), Failure> {
    let Some(directory) = directory else { return Ok(()) };
    files::make_directory(directory).map_err(|error| {
        Failure::Runtime(format!(
            "cannot use {} to keep state in: {error}; give the user that runs rocewatch a directory with --state",
            directory.display()
        ))
    })
}

/// Waits until the lanes have changed back what they changed at the devices.
async fn change_back(app: &App) {
    app.agent.end();
    if !comes_true(|| app.agent.has_ended()).await {
        tracing::warn!("a device does not answer; its optional counters may stay switched on");
    }
}

/// Has the last rows written.
async fn close(archivist: &Archivist) {
    archivist.end();
    if !comes_true(|| archivist.has_ended()).await {
        tracing::warn!("the disk does not answer; the last rows may not be in the archive");
    }
}

/// Waits until this is true, but not for long: the process is ending.
async fn comes_true(is_true: impl Fn() -> bool) -> bool {
    let wait = async {
        while !is_true() {
            tokio::time::sleep(READY_POLL).await;
        }
    };
    tokio::time::timeout(LAST_WORD, wait).await.is_ok()
}

/// Tells the service manager when everything that can be sampled is being sampled.
async fn announce_ready(app: Arc<App>) {
    loop {
        let missing = app.agent.world().not_ready(app.clock.now());
        if missing.is_none() {
            break;
        }
        tokio::time::sleep(READY_POLL).await;
    }
    let ports = app.agent.world().ports().count();
    let status = format!("watching {ports} ports");
    tracing::info!("{status}");
    service::ready(&status);
}

async fn reload_on(
    mut hangup: Signal,
    file: Option<PathBuf>,
    started_with: Config,
    log: logging::Handle,
    app: Arc<App>,
) {
    while hangup.recv().await.is_some() {
        service::reloading();
        match Config::load(file.as_deref()) {
            Ok(config) => {
                if file.is_some() && config.listen != started_with.listen {
                    tracing::warn!(
                        "the address {} of the configuration is taken up at the next start; still serving {}",
                        config.listen,
                        started_with.listen
                    );
                }
                if config.sampling.optional_counters != started_with.sampling.optional_counters {
                    tracing::warn!("sampling.optional_counters is taken up at the next start");
                }
                log.set_level(config.log.level);
                app.agent.reconfigure(&config);
                app.exposition.reconfigure(config.metrics);
                app.exposition.own().count_reload(true);
                tracing::info!("configuration reloaded");
            }
            Err(failure) => {
                app.exposition.own().count_reload(false);
                tracing::error!("the configuration was not reloaded, the former one holds: {failure}");
            }
        }
        service::ready("configuration read again");
    }
}

fn on_signal(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::Runtime(format!("cannot wait for signals: {error}")))
}

fn end_of_daemon() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminate = on_signal(SignalKind::terminate())?;
    let mut interrupt = on_signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
