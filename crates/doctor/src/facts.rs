//! What was read of a node.

use crate::dcb::Dcb;
use crate::window::PortWindow;
use catalog::{Index, Signal};
use model::{LinkLayer, NodeSetup, Port, PortSetup, Setup};
use signals::PortSignals;

/// Drivers of software, behind which there is no NIC whose settings could be wrong.
const SOFTWARE: [&str; 2] = ["rxe", "siw"];

/// What was read of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What the ports share.
    pub node: NodeSetup,
    /// Each port.
    pub ports: Vec<PortFacts>,
}

/// What was read of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortFacts {
    /// The port.
    pub port: Port,
    /// How it is set up.
    pub setup: PortSetup,
    /// Its DCB configuration.
    pub dcb: Option<Dcb>,
    /// Its link, module and temperatures.
    pub link: LinkFacts,
    /// Its traffic, where a window of it was watched.
    pub window: Option<PortWindow>,
}

/// What rows tell of a link, its module and temperatures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkFacts {
    /// Whether it has a carrier.
    pub up: Option<bool>,
    /// Speed in bits per second.
    pub speed: Option<u64>,
    /// Lanes in use.
    pub lanes: Option<u64>,
    /// Global pause is honoured when received.
    pub pause_rx: Option<bool>,
    /// Global pause is sent.
    pub pause_tx: Option<bool>,
    /// Milliseconds after which the NIC stops pausing by itself; 0 is never.
    pub storm_prevention: Option<u64>,
    /// Fatal `PCIe` errors since the device was found on the bus, of the NIC and of its slot.
    pub pcie_fatal: Option<u64>,
    /// Degrees Celsius of the module.
    pub module_celsius: Option<f64>,
    /// Degrees Celsius of the chip.
    pub chip_celsius: Option<f64>,
    /// Received optical power of each lane, in nanowatts.
    pub rx_nanowatts: Vec<u64>,
    /// Sent optical power of each lane, in nanowatts.
    pub tx_nanowatts: Vec<u64>,
}

impl LinkFacts {
    /// What the newest rows of a port tell.
    #[must_use]
    pub fn read(port: &PortSignals) -> Self {
        let value = |signal| port.reading(signal, None);
        let flag = |signal| value(signal).map(|value| value != 0);
        let celsius = |signal| {
            let slot = port
                .slots()
                .iter()
                .position(|slot| slot.signal == signal && slot.index.is_none())?;
            Some(port.slots()[slot].scale.apply(port.value(slot)? as f64))
        };
        let lanes = |signal| {
            let lane = |lane| port.reading(signal, Some(Index::Lane(lane)));
            (0..16).map_while(lane).collect()
        };
        Self {
            up: flag(Signal::LinkUp),
            speed: port.speed().map(whole),
            lanes: value(Signal::LinkLanes),
            pause_rx: flag(Signal::PauseRxEnabled),
            pause_tx: flag(Signal::PauseTxEnabled),
            storm_prevention: value(Signal::PfcStormPrevention),
            pcie_fatal: value(Signal::PcieFatal),
            module_celsius: celsius(Signal::TemperatureModule),
            chip_celsius: celsius(Signal::TemperatureChip),
            rx_nanowatts: lanes(Signal::ModuleRxPower),
            tx_nanowatts: lanes(Signal::ModuleTxPower),
        }
    }
}

/// A speed as a whole number of bits per second.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a speed is a positive number far below 2^53
fn whole(speed: f64) -> u64 {
    speed as u64
}

impl PortFacts {
    /// What is known of a port: itself, what its rows tell, how it is set up.
    #[must_use]
    pub fn read(port: &Port, rows: &PortSignals, setup: &Setup, window: Option<PortWindow>) -> Self {
        Self {
            port: port.clone(),
            setup: setup.ports.get(&port.id).cloned().unwrap_or_default(),
            dcb: Dcb::read(rows),
            link: LinkFacts::read(rows),
            window,
        }
    }

    /// True of a port with hardware that carries `RoCE`.
    #[must_use]
    pub fn is_roce(&self) -> bool {
        self.port.has_rdma()
            && self.port.link_layer == LinkLayer::Ethernet
            && !SOFTWARE.contains(&self.port.driver.as_str())
    }

    /// True unless it is known to have no carrier: a port that nobody uses need not be in order.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link.up != Some(false)
    }

    /// PFC of the port.
    pub(crate) fn pfc(&self) -> Option<u8> {
        self.dcb.as_ref()?.pfc
    }
}

/// Ports that ought to be alike: `RoCE`, in use, of one driver and board.
#[derive(Clone, Debug)]
pub struct Rails<'a>(Vec<&'a PortFacts>);

impl<'a> Rails<'a> {
    /// The groups of a node.
    #[must_use]
    pub fn of(facts: &'a Facts) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for port in facts.ports.iter().filter(|port| port.is_roce() && port.is_up()) {
            let alike = |rails: &&mut Self| {
                let other = &rails.0[0].port;
                (&other.driver, &other.board) == (&port.port.driver, &port.port.board)
            };
            match groups.iter_mut().find(alike) {
                Some(rails) => rails.0.push(port),
                None => groups.push(Self(vec![port])),
            }
        }
        groups
    }

    /// The ports of the group.
    pub fn ports(&self) -> impl Iterator<Item = &'a PortFacts> + '_ {
        self.0.iter().copied()
    }

    /// The value that most ports have (of equally common ones the first), and the ports that have another. `None` if all that
    /// are known agree.
    pub(crate) fn odd<T: PartialEq>(
        &self,
        value: impl Fn(&PortFacts) -> Option<T>,
    ) -> Option<(T, Vec<(&'a PortFacts, T)>)> {
        let known: Vec<(&PortFacts, T)> = self
            .ports()
            .filter_map(|port| Some((port, value(port)?)))
            .collect();
        let count = |wanted: &T| known.iter().filter(|(_, value)| value == wanted).count();
        let most = known.iter().map(|(_, value)| count(value)).max()?;
        if most == known.len() {
            return None;
        }
        let usual = known.iter().position(|(_, value)| count(value) == most)?;
        let mut usual_value = None;
        let mut odd = Vec::new();
        for (at, (port, value)) in known.into_iter().enumerate() {
            if at == usual {
                usual_value = Some(value);
            } else if usual_value.as_ref() != Some(&value) {
                odd.push((port, value));
            }
        }
        Some((usual_value?, odd))
    }
}
