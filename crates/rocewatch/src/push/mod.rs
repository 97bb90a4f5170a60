//! What the agent sends of its own accord, where it is asked to: events to a webhook and to Alertmanagers, metrics by remote
//! write.
//!
//! ```text
//! event log ─▶ spool of a receiver ─▶ courier ─▶ receiver
//! page, at each interval ─▶ spool ─▶ courier ─▶ receiver
//! ```
//! Nobody who samples ever waits for any of it: a spool takes what comes, and drops its oldest when it is full.

mod client;
mod counters;
mod courier;
mod herald;
mod ledger;
mod notify;
mod page;
mod proto;
mod remote_write;
mod spool;

use crate::clock::Clock;
use crate::config::{Config, Notify, RemoteWrite, Url};
use crate::failure::Failure;
use crate::files;
use crate::http::App;
use crate::metrics::{Encoding, Format, Shown};
use client::Client;
use counters::{Counters, Families};
use courier::{Courier, Mail};
use herald::{Herald, Listener};
use ledger::Ledger;
use notify::{Alerts, Teller, Webhook};
use remote_write::{Encoder, Writes};
use spool::Spool;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, sleep};

/// The folder of what waits, in the directory of the daemon's state.
const FOLDER: &str = "push";
/// At the end, how often it is looked at whether a receiver has taken everything.
const LAST_POLL: Duration = Duration::from_millis(20);

/// Everything that is needed to send, made before the daemon begins to serve, so that mistakes are told then.
pub(crate) struct Push {
    families: Families,
    notify: Vec<Receiver>,
    remote_write: Option<Receiver>,
}

/// One receiver.
struct Receiver {
    to: To,
    client: Client,
    spool: Spool,
    counters: Counters,
    /// Where it is kept what the receiver has not been told the end of.
    ledger: Option<PathBuf>,
}

/// What is sent to a receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Webhook,
    Alertmanager,
    RemoteWrite,
}

impl To {
    fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Alertmanager => "alertmanager",
            Self::RemoteWrite => "remote_write",
        }
    }
}

impl Push {
    /// What `config` asks for; `None` if that is nothing. What waits is kept in the directory `state`, if there is one.
    ///
    /// # Errors
    /// The directory cannot be used, or a file that is named cannot.
    pub(crate) fn prepare(config: &Config, state: Option<&Path>) -> Result<Option<Self>, Failure> {
        if !config.notify.is_wanted() && config.remote_write.url.is_none() {
            return Ok(None);
        }
        let families = Families::new();
        let mut notify = Vec::new();
        if let Some(url) = &config.notify.webhook {
            notify.push(told_of_events(
                To::Webhook,
                url,
                &config.notify,
                state,
                &families,
            )?);
        }
        for url in &config.notify.alertmanager {
            let url = url.join("/api/v2/alerts");
            notify.push(told_of_events(
                To::Alertmanager,
                &url,
                &config.notify,
                state,
                &families,
            )?);
        }
        let remote_write = match &config.remote_write.url {
            Some(url) => Some(written_to(url, &config.remote_write, state, &families)?),
            None => None,
        };
        Ok(Some(Self {
            families,
            notify,
            remote_write,
        }))
    }

    /// Its metrics.
    pub(crate) fn shown(&self) -> Vec<Box<dyn Shown>> {
        self.families.shown()
    }

    /// Begins to send.
    pub(crate) fn start(self, app: &Arc<App>, config: &Config, clock: Clock) -> Pushing {
        let node = files::node_name().unwrap_or_else(|| "localhost".to_owned());
        let herald = Herald {
            app: Arc::clone(app),
            clock,
            listeners: self.notify.iter().map(Receiver::listener).collect(),
        };
        let (end, ended) = oneshot::channel();
        let pushing = Pushing {
            end,
            herald: tokio::spawn(herald.run(ended)),
            webhooks: self.notify.iter().filter_map(Receiver::owed).collect(),
        };
        let teller = Teller::new(&node, &config.notify.external_labels);
        for receiver in self.notify {
            if receiver.to == To::Webhook {
                receiver.serve(Webhook(teller.clone()), clock);
            } else {
                let alerts = Alerts {
                    teller: teller.clone(),
                    app: Arc::clone(app),
                    clock,
                };
                receiver.serve(alerts, clock);
            }
        }
        if let Some(receiver) = self.remote_write {
            let encoder = Encoder::new(&node, &config.remote_write.external_labels);
            let interval = config.remote_write.interval;
            tokio::spawn(collect_pages(
                Arc::clone(app),
                receiver.mailbox(),
                encoder,
                interval,
                clock,
            ));
            receiver.serve(Writes, clock);
        }
        pushing
    }
}

/// What is being sent, until the daemon ends.
pub(crate) struct Pushing {
    end: oneshot::Sender<()>,
    herald: JoinHandle<()>,
    webhooks: Vec<Spool>,
}

impl Pushing {
    /// Tells each webhook that nobody will see the end of what goes on, and waits until it has taken that. What it does not
    /// take waits on disk, where there is a directory, for the next start.
    pub(crate) async fn end(self) {
        let _ = self.end.send(());
        let _ = self.herald.await;
        for spool in self.webhooks {
            while spool.waiting().units > 0 {
                sleep(LAST_POLL).await;
            }
        }
    }
}

fn told_of_events(
    to: To,
    url: &Url,
    config: &Notify,
    state: Option<&Path>,
    families: &Families,
) -> Result<Receiver, Failure> {
    let client = Client::new(url.clone(), config.access()).map_err(|why| cannot("notify", &why))?;
    Receiver::new(to, url, client, config.max_mib, state, families)
}

fn written_to(
    url: &Url,
    config: &RemoteWrite,
    state: Option<&Path>,
    families: &Families,
) -> Result<Receiver, Failure> {
    let client = Client::new(url.clone(), config.access()).map_err(|why| cannot("remote_write", &why))?;
    if state.is_none() {
        tracing::info!(
            "remote_write: what waits for the receiver is kept in memory, and is lost at the end; --state DIR keeps it on disk"
        );
    }
    Receiver::new(To::RemoteWrite, url, client, config.max_mib, state, families)
}

fn cannot(section: &str, why: &str) -> Failure {
    Failure::Runtime(format!("{section}: {why}"))
}

impl Receiver {
    fn new(
        to: To,
        url: &Url,
        client: Client,
        max_mib: u32,
        state: Option<&Path>,
        families: &Families,
    ) -> Result<Self, Failure> {
        let folder = state.map(|state| state.join(FOLDER).join(folder_of(to, url)));
        let ledger = folder.as_deref().map(|folder| folder.with_extension("open"));
        let spool = Spool::open(folder.clone(), u64::from(max_mib) << 20).map_err(|error| {
            let folder = folder.unwrap_or_default();
            Failure::Runtime(format!(
                "cannot keep in {} what waits to be sent: {error}",
                folder.display()
            ))
        })?;
        let counters = Counters::new(families, to.as_str(), url.receiver(), spool.waiting());
        Ok(Self {
            to,
            client,
            spool,
            counters,
            ledger,
        })
    }

    /// One that is told of events. An Alertmanager ends by itself what it hears of no more; taking that from it at each
    /// restart of an agent would be a further alert for what goes on.
    fn listener(&self) -> Listener {
        let (ledger, left) = if self.to == To::Webhook {
            let (ledger, left) = Ledger::open(self.ledger.clone());
            (Some(ledger), left)
        } else {
            (None, Vec::new())
        };
        Listener {
            mailbox: self.mailbox(),
            ledger,
            left,
        }
    }

    /// What waits for it, if it has to have it before the end.
    fn owed(&self) -> Option<Spool> {
        (self.to == To::Webhook).then(|| self.spool.clone())
    }

    fn mailbox(&self) -> Mailbox {
        Mailbox {
            spool: self.spool.clone(),
            counters: self.counters.clone(),
        }
    }

    fn serve(self, mail: impl Mail, clock: Clock) {
        let courier = Courier {
            client: self.client,
            spool: self.spool,
            mail,
            counters: self.counters,
            clock,
        };
        tokio::spawn(courier.run());
    }
}

/// A folder for each URL: what waits for one receiver is never sent to another.
fn folder_of(to: To, url: &Url) -> PathBuf {
    let mut hasher = siphasher::sip::SipHasher13::new();
    url.to_string().hash(&mut hasher);
    format!("{}-{:016x}", to.as_str(), hasher.finish()).into()
}

/// Where something is put that is to be sent.
struct Mailbox {
    spool: Spool,
    counters: Counters,
}

impl Mailbox {
    async fn put(&self, record: spool::Record) {
        let dropped = self.spool.push(record).await;
        if dropped > 0 {
            self.counters.dropped("full", dropped);
        }
        self.counters.waiting(self.spool.waiting());
    }
}

/// Takes a page at each interval.
async fn collect_pages(
    app: Arc<App>,
    mailbox: Mailbox,
    mut encoder: Encoder,
    interval: Duration,
    clock: Clock,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let page = app.exposition.page(&app.agent, Format::Text, Encoding::Identity);
        let time = clock.wall() / 1_000_000;
        let work = tokio::task::spawn_blocking(move || {
            let record = encoder.record(page, time);
            (encoder, record)
        });
        let Ok((back, record)) = work.await else {
            tracing::error!("the metrics could not be encoded; remote write has ended");
            return;
        };
        encoder = back;
        mailbox.put(record).await;
    }
}
