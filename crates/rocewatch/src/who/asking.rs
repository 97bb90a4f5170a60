//! Asking devices on threads of their own: a driver may hold whoever asks it for as long as it likes.

use super::Answer;
use model::{Host, Port, Why};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

/// Questions that have not been answered yet.
#[derive(Default)]
pub(crate) struct Asking {
    inboxes: BTreeMap<String, Receiver<Answer>>,
}

impl Asking {
    /// Asks about every RDMA device of `ports`, all at once, and gives their names. One that has not answered yet since it
    /// was asked before is not asked again: of each at most one thread hangs.
    pub(crate) fn ask(&mut self, host: &Arc<dyn Host>, ports: &[Arc<Port>]) -> Vec<String> {
        let mut devices: BTreeMap<&str, &Arc<Port>> = BTreeMap::new();
        for port in ports.iter().filter(|port| port.has_rdma()) {
            devices.entry(&port.device).or_insert(port);
        }
        for (device, port) in &devices {
            if !self.is_hanging(device) {
                self.inboxes.insert((*device).to_owned(), start(host, port));
            }
        }
        devices.into_keys().map(str::to_owned).collect()
    }

    fn is_hanging(&self, device: &str) -> bool {
        let inbox = self.inboxes.get(device);
        inbox.is_some_and(|inbox| matches!(inbox.try_recv(), Err(TryRecvError::Empty)))
    }

    /// What a device that was asked answers within `limit`; `None` if it does not, and may yet.
    pub(crate) fn answer(&mut self, device: &str, limit: Duration) -> Option<Answer> {
        let answer = match self.inboxes.get(device)?.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {
                let detail = format!("whoever asked {device} was ended by an error of this program");
                Err(Why::new("thread", detail))
            }
        };
        self.inboxes.remove(device);
        Some(answer)
    }
}

fn start(host: &Arc<dyn Host>, port: &Arc<Port>) -> Receiver<Answer> {
    let (host, port) = (Arc::clone(host), Arc::clone(port));
    let (answer, inbox) = channel();
    let refused = answer.clone();
    // Nobody waits for its end.
    let ask = move || drop(answer.send(host.queue_pairs(&port)));
    if let Err(error) = std::thread::Builder::new().name("who".to_owned()).spawn(ask) {
        let _ = refused.send(Err(Why::new("thread", error.to_string())));
    }
    inbox
}

/// Why there is no answer.
pub(super) fn silent(device: &str) -> Why {
    Why::new(
        "ETIMEDOUT",
        format!("{device} does not answer: its driver or firmware hangs"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Changes, DeviceId, Opened, PortId, QueuePairs, SourceKind};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const SOON: Duration = Duration::from_secs(10);

    /// Answers as often as it is let.
    struct Held {
        let_go: Mutex<Receiver<()>>,
        asked: AtomicUsize,
    }

    impl Host for Held {
        fn ports(&self) -> Result<Vec<Port>, String> {
            Ok(Vec::new())
        }

        fn open(&self, _: &Port, _: SourceKind) -> Opened {
            Opened::NotApplicable(Why::new("test", "nothing to read"))
        }

        fn queue_pairs(&self, _: &Port) -> Answer {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let _ = self.let_go.lock().unwrap().recv();
            Ok(QueuePairs::default())
        }

        fn changes(&self) -> Result<Box<dyn Changes>, Why> {
            Err(Why::new("test", "nothing changes"))
        }
    }

    #[test]
    fn a_device_that_hangs_is_asked_once_and_answers_when_it_goes_on() {
        let (sender, let_go) = channel();
        let held = Arc::new(Held {
            let_go: Mutex::new(let_go),
            asked: AtomicUsize::new(0),
        });
        let host: Arc<dyn Host> = Arc::clone(&held) as Arc<dyn Host>;
        let id = PortId {
            device: DeviceId::pci("0000:1a:00.0"),
            number: 1,
        };
        let mut port = Port::bare(id, "mlx5_0", "mlx5_core");
        port.rdma_index = Some(0);
        let ports = [Arc::new(port)];
        let mut asking = Asking::default();
        for _ in 0..3 {
            assert_eq!(asking.ask(&host, &ports), ["mlx5_0"]);
            assert_eq!(asking.answer("mlx5_0", Duration::ZERO), None);
        }
        sender.send(()).unwrap();
        assert_eq!(asking.answer("mlx5_0", SOON), Some(Ok(QueuePairs::default())));
        assert_eq!(held.asked.load(Ordering::SeqCst), 1);
        // Nothing is owed any more, so that it is asked anew.
        assert_eq!(asking.answer("mlx5_0", Duration::ZERO), None);
        asking.ask(&host, &ports);
        sender.send(()).unwrap();
        assert!(asking.answer("mlx5_0", SOON).is_some());
        assert_eq!(held.asked.load(Ordering::SeqCst), 2);
    }
}
