//! What a check says.

use crate::check::{Check, Severity};
use model::{Port, PortId};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The check that says it.
    pub check: &'static Check,
    /// Of which port; `None` of the node.
    pub port: Option<PortName>,
    /// What was read.
    pub evidence: Vec<Evidence>,
    /// Commands that mend it, with the names of this port.
    pub commands: Vec<String>,
}

/// How people call a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortName {
    /// What it is, whatever it is called.
    pub id: PortId,
    /// The RDMA device, or the netdev where there is none.
    pub device: String,
    /// The netdev.
    pub netdev: Option<String>,
}

impl PortName {
    /// The name of a port.
    #[must_use]
    pub fn of(port: &Port) -> Self {
        Self {
            id: port.id.clone(),
            device: port.device.clone(),
            netdev: port.netdev.clone(),
        }
    }
}

/// One thing that was read, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What was read.
    pub what: String,
    /// What it said.
    pub says: String,
}

impl Evidence {
    /// Puts the two together.
    pub fn new(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            says: says.into(),
        }
    }
}

impl Finding {
    /// What `check` says of a port.
    pub(crate) fn of(check: &'static Check, port: &Port, evidence: Vec<Evidence>) -> Self {
        let netdev = port.netdev.as_deref().unwrap_or("NETDEV");
        let pci = port.pci.as_ref().map_or("PCI", |pci| &pci.address);
        let fill = |command: &&str| {
            command
                .replace("{netdev}", netdev)
                .replace("{device}", &port.device)
                .replace("{pci}", pci)
        };
        Self {
            check,
            port: Some(PortName::of(port)),
            evidence,
            commands: check.commands.iter().map(fill).collect(),
        }
    }

    /// What `check` says of the node.
    pub(crate) fn of_node(check: &'static Check, evidence: Vec<Evidence>) -> Self {
        Self {
            check,
            port: None,
            evidence,
            commands: check.commands.iter().map(|&command| command.to_owned()).collect(),
        }
    }

    /// The same with a value for a blank of its commands, as `{priority}`.
    pub(crate) fn with(mut self, blank: &str, value: &impl ToString) -> Self {
        let value = value.to_string();
        for command in &mut self.commands {
            *command = command.replace(blank, &value);
        }
        self
    }

    /// How much it matters.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.check.severity
    }
}
