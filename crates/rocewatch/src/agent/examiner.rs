//! The thread that has the doctor look at the node: at start, when something changed, and every hour.

use super::World;
use crate::clock::{Clock, nanos};
use doctor::{Dcb, Facts, Finding, LinkFacts, Look, PortFacts, PortName, PortWindow};
use model::{Host, Port, PortId, Setup};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it is looked for changes, and for how long traffic is watched.
const POLL: Duration = Duration::from_secs(10);
/// The same until every port is known.
const FIRST_POLL: Duration = Duration::from_millis(500);
/// How the node is set up is read anew after so long at the latest.
const HOUR: Duration = Duration::from_secs(3600);

/// What the doctor found.
#[derive(Default)]
pub(crate) struct Findings {
    /// What is wrong now.
    pub(crate) list: Vec<Finding>,
    /// When it was looked, in nanoseconds of the agent's clock; `None` before the first time.
    pub(crate) looked: Option<u64>,
}

impl Findings {
    /// Takes in what was found. What was found before and depends on traffic may not show at every look; it stays until the
    /// node is looked at `anew`. True if other findings than before have to be shown.
    pub(super) fn take(&mut self, mut found: Vec<Finding>, anew: bool, now: u64) -> bool {
        let key = |finding: &Finding| (finding.check.id, finding.port.clone());
        if !anew {
            let has = |finding: &Finding| found.iter().any(|other| key(other) == key(finding));
            let stay: Vec<_> = self
                .list
                .iter()
                .filter(|finding| !has(finding))
                .cloned()
                .collect();
            found.extend(stay);
        }
        let changed = !found.iter().map(key).eq(self.list.iter().map(key));
        self.list = found;
        self.looked = Some(now);
        changed
    }

    /// The findings as series: each check of a port once.
    pub(crate) fn distinct(&self) -> Vec<&Finding> {
        let mut found: Vec<&Finding> = Vec::new();
        for finding in &self.list {
            let again = |other: &&Finding| other.check == finding.check && other.port == finding.port;
            if !found.iter().any(again) {
                found.push(finding);
            }
        }
        found
    }
}

/// Looks at each port's totals, to be compared later.
pub(crate) fn looks(world: &World, now: u64) -> BTreeMap<PortId, Look> {
    let look = |view: &super::PortView| (view.port.id.clone(), Look::at(now, &view.port, &view.signals));
    world.ports().map(look).collect()
}

/// All that is known of the node: its ports and their rows, how it is set up, and the traffic since `earlier`.
pub(crate) fn facts(world: &World, setup: &Setup, earlier: &BTreeMap<PortId, Look>, now: u64) -> Facts {
    let port = |view: &super::PortView| {
        let later = Look::at(now, &view.port, &view.signals);
        let mut window = earlier
            .get(&view.port.id)
            .and_then(|earlier| PortWindow::between(earlier, &later));
        let mut facts = PortFacts::read(&view.port, &view.signals, setup, None);
        if let Some(window) = &mut window {
            window.cnp_interval = facts.setup.ecn.cnp_interval.map(|us| f64::from(us) / 1e6);
        }
        facts.window = window;
        facts
    };
    Facts {
        node: setup.node.clone(),
        ports: world.ports().map(port).collect(),
    }
}

/// The examination's thread.
pub(super) struct Examiner {
    pub(super) host: Arc<dyn Host>,
    pub(super) world: Arc<Mutex<World>>,
    pub(super) clock: Clock,
}

/// What is known from the last time that the node was read.
struct Known {
    setup: Setup,
    state: Vec<State>,
    read: u64,
}

/// What of a port, if it changes, calls for another look.
#[derive(PartialEq)]
struct State {
    port: Arc<Port>,
    dcb: Option<Dcb>,
    link: LinkFacts,
}

impl Examiner {
    /// Looks until nobody is left to give it a sign. A sign has it look at once.
    pub(super) fn run(self, signs: &Receiver<()>) {
        let mut known = None;
        let mut earlier = BTreeMap::new();
        let mut wait = FIRST_POLL;
        loop {
            match signs.recv_timeout(wait) {
                Ok(()) => known = None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.now();
            if self.lock().not_ready(now).is_none() {
                wait = POLL;
                let before = known.take();
                known = Some(self.look(before, &earlier, now));
                earlier = looks(&self.lock(), now);
            }
        }
    }

    fn look(&self, known: Option<Known>, earlier: &BTreeMap<PortId, Look>, now: u64) -> Known {
        let state = states(&self.lock());
        let is_due = |known: &Known| known.state != state || now.saturating_sub(known.read) >= nanos(HOUR);
        let (known, anew) = match known {
            Some(known) if !is_due(&known) => (known, false),
            _ => {
                let ports: Vec<Port> = state.iter().map(|state| Port::clone(&state.port)).collect();
                // Without the lock: the kernel may take its time.
                let setup = self.host.setup(&ports);
                (
                    Known {
                        setup,
                        state,
                        read: now,
                    },
                    true,
                )
            }
        };
        let mut world = self.lock();
        let facts = facts(&world, &known.setup, earlier, now);
        let found = doctor::findings(&facts, world.policy());
        report(&found, &world.findings().list);
        world.take_findings(found, anew, now);
        known
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn states(world: &World) -> Vec<State> {
    let state = |view: &super::PortView| State {
        port: Arc::clone(&view.port),
        dcb: Dcb::read(&view.signals),
        // Temperature and light change all the time.
        link: LinkFacts {
            module_celsius: None,
            chip_celsius: None,
            rx_nanowatts: Vec::new(),
            tx_nanowatts: Vec::new(),
            ..LinkFacts::read(&view.signals)
        },
    };
    world.ports().map(state).collect()
}

/// A line in the log for what was not found before.
fn report(found: &[Finding], before: &[Finding]) {
    let is_new = |finding: &&Finding| {
        let same = |other: &Finding| other.check == finding.check && other.port == finding.port;
        !before.iter().any(same)
    };
    for finding in found.iter().filter(is_new) {
        let device = finding.port.as_ref().map(|port: &PortName| port.device.as_str());
        let evidence: Vec<_> = finding
            .evidence
            .iter()
            .map(|evidence| format!("{}: {}", evidence.what, evidence.says))
            .collect();
        tracing::warn!(
            check = finding.check.id,
            severity = finding.severity().as_str(),
            device,
            "doctor: {} ({})",
            finding.check.title,
            evidence.join("; ")
        );
    }
}
