//! How many queue pairs the devices have while a command looks at them: the most flows that there can be.

use doctor::PortWindow;
use model::{Host, Port, PortId};
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often they are counted. It costs the kernel a walk over them under a lock that making one takes too, and no word to
/// the driver; what a job holds lasts as long as the job.
const INTERVAL: Duration = Duration::from_secs(1);

/// Counts on a thread of its own, for as long as it is there.
pub(super) struct Flows {
    most: Arc<Mutex<BTreeMap<PortId, u64>>>,
    _stop: Sender<()>,
}

impl Flows {
    /// Counts the queue pairs of the devices of these ports from now on.
    pub(super) fn count(host: &Arc<dyn Host>, ports: Vec<Port>) -> Self {
        let most = Arc::new(Mutex::new(BTreeMap::new()));
        let (stop, stopped) = channel();
        let (host, found) = (Arc::clone(host), Arc::clone(&most));
        let count = move || {
            loop {
                for port in &ports {
                    let counted = host.queue_pair_count(port);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(counted) = counted {
                        let most: &mut u64 = found.entry(port.id.clone()).or_default();
                        *most = counted.max(*most);
                    }
                }
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("flows".to_owned()).spawn(count) {
            tracing::warn!("queue pairs are not counted: {error}");
        }
        Self { most, _stop: stop }
    }

    /// Tells a port's window the most that there were. Few of them may be in use, so that no verdict says too much for it.
    pub(super) fn tell(&self, window: &mut PortWindow) {
        let most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        window.flows = most.get(&window.port.id).copied();
    }
}
