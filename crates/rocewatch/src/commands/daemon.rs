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
use crate::push::{Push, Pushing};
use crate::sandbox::{self, Grants, Sandbox};
use crate::service;
use crate::web::{Handshake, Web};
use model::Host;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often readiness is looked at until it is there.
const READY_POLL: Duration = Duration::from_millis(50);
/// The archive's folder in the directory of the daemon's state.
pub(super) const ARCHIVE: &str = "archive";
/// How long each of the last things to do may take at the end: writing the last rows, telling whoever would wait for ever.
const LAST_WORD: Duration = Duration::from_millis(700);
/// How long it may take to change back what was changed at the devices, which is a few commands to the firmware of one after
/// the other. With the last words the daemon still ends within two seconds.
const CHANGE_BACK: Duration = Duration::from_millis(1200);

/// What `run` and `demo` have in common.
pub(super) struct Daemon {
    pub(super) host: Arc<dyn Host>,
    pub(super) config: Config,
    pub(super) config_file: Option<PathBuf>,
    pub(super) serve: Serve,
    /// Where the host reads files.
    pub(super) trees: Vec<PathBuf>,
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
        trees,
        kernel,
        uptime,
        not_live,
        clock,
    } = daemon;
    config.listen = serve.listen.unwrap_or(config.listen);
    prepare_state(serve.state.as_deref())?;
    let log = logging::start(&config.log)?;
    if let Some(file) = &serve.web_config {
        config.http.web_config.clone_from(file);
    }
    let web = config.http.web_config().map(|file| Web::open(file, clock));
    let web = web.transpose()?.map(Arc::new);
    let push = Push::prepare(&config, serve.state.as_deref())?;
    let listener = http::bind(config.listen).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::Runtime(format!("cannot listen: {error}")))?;
    let hangup = on_signal(SignalKind::hangup())?;
    let end = end_of_daemon()?;
    let sandbox = if config.sandbox {
        let files = config_file
            .iter()
            .cloned()
            .chain(web.iter().flat_map(|web| web.files()));
        sandbox::enter(&grants(trees, files, &serve, &config))
    } else {
        Sandbox::Off
    };
    let agent = start(Arc::clone(&host), &config, uptime, clock)?;
    let archivist = match &serve.state {
        Some(state) => Some(Arc::new(archive(&agent, host, state, &config.archive, clock)?)),
        None => None,
    };

    announce_address(address, web.as_deref(), not_live.as_deref());
    let started = clock
        .started_at()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    let limits = config.http.clone();
    let exposition = Exposition::new(config.metrics.clone(), started, archivist.clone());
    if let Some(web) = &web {
        exposition.own().show(web.shown());
    }
    if let Some(push) = &push {
        exposition.own().show(push.shown());
    }
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
        sandbox: sandbox.as_str(),
        web: web.clone(),
    });
    let router = http::router(Arc::clone(&app));
    let started_with = config.clone();
    let pushing = push.map(|push| push.start(&app, &config, clock));
    tokio::spawn(announce_ready(Arc::clone(&app)));
    tokio::spawn(reload_on(hangup, config_file, config, log, Arc::clone(&app)));
    match web {
        None => http::serve(listener, router, &limits, http::Plain, end).await,
        Some(web) => {
            let limit = limits.header_timeout;
            http::serve(listener, router, &limits, Handshake { web, limit }, end).await;
        }
    }
    service::stopping();
    tokio::join!(close(archivist.as_deref()), tell_the_end(pushing));
    if started_with.sampling.optional_counters {
        change_back(&app).await;
    }
    tracing::info!("ending");
    Ok(())
}

/// Starts the agent, and what looks at the configuration of the node now and then.
fn start(host: Arc<dyn Host>, config: &Config, uptime: Option<u64>, clock: Clock) -> Result<Agent, Failure> {
    let started = Agent::start(Arc::clone(&host), config, uptime, clock).and_then(|mut agent| {
        agent.examine(host, clock)?;
        Ok(agent)
    });
    started.map_err(|error| {
        Failure::Runtime(format!(
            "cannot start a thread: {error}; raise the limit on threads (TasksMax, ulimit -u)"
        ))
    })
}

fn announce_address(address: SocketAddr, web: Option<&Web>, not_live: Option<&str>) {
    if let Some(notice) = not_live {
        tracing::warn!("{notice}");
    }
    let scheme = if web.is_some_and(Web::is_tls) {
        "https"
    } else {
        "http"
    };
    tracing::info!("serving {scheme}://{address}/metrics");
    if address.ip().is_loopback() {
        tracing::info!(
            "only this machine can scrape it: to open it, listen on another address, as in --listen 0.0.0.0:{}",
            address.port()
        );
    }
}

/// What the daemon opens after it has started: the kernel's files as devices come and go, its configuration when it is to
/// be read again, its archive, and what libibverbs needs.
fn grants(
    trees: Vec<PathBuf>,
    files: impl Iterator<Item = PathBuf>,
    serve: &Serve,
    config: &Config,
) -> Grants {
    let mut grants = Grants {
        read: trees,
        write: serve.state.iter().cloned().collect(),
        devices: Vec::new(),
    };
    // Its own CPU time and descriptors.
    grants.read.push("/proc".into());
    grants.read.dedup();
    let pushes = config.notify.is_wanted() || config.remote_write.url.is_some();
    let secrets = [config.notify.access(), config.remote_write.access()]
        .into_iter()
        .flat_map(|access| [access.password_file, access.bearer_token_file, access.ca_file]);
    let secrets = secrets
        .filter(|file| pushes && !file.as_os_str().is_empty())
        .cloned();
    grants
        .read
        .extend(files.chain(secrets).flat_map(|file| sandbox::folders_of(&file)));
    let verbs = config.sampling.verbs.is_some();
    if verbs || pushes {
        // libibverbs and its providers are loaded when the first device is opened, and what looks up names when the first
        // is; both are named in /etc, as are the authorities that a receiver may be known by.
        grants
            .read
            .extend(["/usr", "/lib", "/lib64", "/etc", "/run"].map(PathBuf::from));
    }
    if verbs {
        grants.devices.push("/dev/infiniband".into());
    }
    grants
}

/// Opens the archive in the directory of the daemon's state.
fn archive(
    agent: &Agent,
    host: Arc<dyn Host>,
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
        .archive(
            host,
            folder.clone(),
            limits,
            archive::Epoch(epoch),
            describe,
            clock,
        )
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
    if !comes_true(CHANGE_BACK, || app.agent.has_ended()).await {
        tracing::warn!("a device does not answer; its optional counters may stay switched on");
    }
}

/// Has the last rows written.
async fn close(archivist: Option<&Archivist>) {
    let Some(archivist) = archivist else { return };
    archivist.end();
    if !comes_true(LAST_WORD, || archivist.has_ended()).await {
        tracing::warn!("the disk does not answer; the last rows may not be in the archive");
    }
}

/// Has those told who would wait for the end of what goes on.
async fn tell_the_end(pushing: Option<Pushing>) {
    let Some(pushing) = pushing else { return };
    if tokio::time::timeout(LAST_WORD, pushing.end()).await.is_err() {
        tracing::warn!(
            "the webhook does not take the last events; with --state it is sent them at the next start"
        );
    }
}

/// Waits until this is true, but not for long: the process is ending.
async fn comes_true(limit: Duration, is_true: impl Fn() -> bool) -> bool {
    let wait = async {
        while !is_true() {
            tokio::time::sleep(READY_POLL).await;
        }
    };
    tokio::time::timeout(limit, wait).await.is_ok()
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
                if config.http.web_config() != started_with.http.web_config() && file.is_some() {
                    tracing::warn!(
                        "http.web_config is taken up at the next start; what that file says, at once"
                    );
                }
                if config.notify != started_with.notify || config.remote_write != started_with.remote_write {
                    tracing::warn!("notify and remote_write are taken up at the next start");
                }
                if config.sampling.optional_counters != started_with.sampling.optional_counters {
                    tracing::warn!("sampling.optional_counters is taken up at the next start");
                }
                if config.sandbox != started_with.sandbox {
                    tracing::warn!("sandbox is taken up at the next start");
                }
                if config.sampling.verbs.is_some() && started_with.sampling.verbs.is_none() {
                    tracing::warn!(
                        "sampling.verbs is taken up at the next start: the sandbox has no place for it yet"
                    );
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
