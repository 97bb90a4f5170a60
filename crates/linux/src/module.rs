//! What the optical module or cable measures of itself: temperature, supply voltage, and of each lane the laser's bias and
//! the optical power sent and received.
//!
//! By its memory (`ETHTOOL_MSG_MODULE_EEPROM_GET`, 5.13 and later), which needs `CAP_NET_ADMIN`. A look is four or five
//! reads over the module's two-wire bus, some milliseconds each, all of them under rtnl: minutes apart, never seconds,
//! and only where an operator asked for it. Flags that clear when they are read, for which others may be waiting, are left
//! alone: what is read is between them.

mod kernel;
mod map;
mod plan;
#[cfg(test)]
mod tests;

use crate::{Context, why_from_errno};
use kernel::Kernel;
use map::{Quantity, Span};
use model::{ABSENT, Opened, Port, PortId, Read, Schema, Source, SourceKind, Why};
use plan::Plan;
use rustix::io::Errno;
use std::sync::Arc;

/// Opens the source of a port.
pub(crate) fn open(ctx: &Context, port: &Port) -> Opened {
    let (Some(netdev), Some(ifindex)) = (&port.netdev, port.ifindex) else {
        return Opened::NotApplicable(Why::new("no_netdev", format!("{} has no netdev", port.device)));
    };
    if !ctx.live {
        let detail = "a module is read through the running kernel only";
        return Opened::NotApplicable(Why::new("not_on_this_tree", detail));
    }
    let opened = Kernel::open(ifindex)
        .map_err(|errno| why(netdev, errno))
        .and_then(|kernel| Module::open(kernel, port, netdev));
    match opened {
        Ok(module) => Opened::Active(Box::new(module)),
        Err(why)
            if matches!(
                why.reason,
                "EOPNOTSUPP" | "ENOENT" | plan::UNKNOWN | plan::NOTHING
            ) =>
        {
            Opened::NotApplicable(why)
        }
        Err(why) => Opened::Failed(why),
    }
}

/// A module's memory.
trait Memory: Send {
    /// Reads a stretch of it into `into`, which is as long as the stretch.
    ///
    /// # Errors
    /// What the kernel or the driver answers.
    fn read(&mut self, span: Span, into: &mut [u8]) -> Result<(), Errno>;
}

struct Module<M> {
    memory: M,
    netdev: String,
    port: PortId,
    driver: String,
    plan: Plan,
    schema: Arc<Schema>,
}

impl<M: Memory> Module<M> {
    fn open(mut memory: M, port: &Port, netdev: &str) -> Result<Self, Why> {
        let plan = look(&mut memory, netdev)?;
        Ok(Self {
            memory,
            netdev: netdev.to_owned(),
            port: port.id.clone(),
            driver: port.driver.clone(),
            schema: schema(&port.id, &port.driver, plan),
            plan,
        })
    }

    /// All values of the plan, in its order.
    fn measure(&mut self, row: &mut [u64]) -> Result<(), Errno> {
        let map = self.plan.map;
        let mut module = [0; map::LONGEST];
        let module = &mut module[..map.module.len()];
        self.memory.read(map.module, module)?;
        let mut lanes = [0; map::LONGEST];
        let lanes = &mut lanes[..map.lanes.len()];
        if self.plan.has_lanes() {
            self.memory.read(map.lanes, lanes)?;
        }
        for (cell, quantity) in row.iter_mut().zip(self.plan.quantities()) {
            let (span, content) = match quantity {
                Quantity::Temperature | Quantity::Voltage => (map.module, &*module),
                _ => (map.lanes, &*lanes),
            };
            let raw = span.word(content, map.place(quantity));
            *cell = raw.map_or(ABSENT, |raw| quantity.value(raw, self.plan.bias_scale));
        }
        Ok(())
    }
}

impl<M: Memory> Source for Module<M> {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Looks first whether it is still the same kind of module: they are changed while everything runs.
    fn read(&mut self, row: &mut [u64]) -> Read {
        let plan = match look(&mut self.memory, &self.netdev) {
            Ok(plan) => plan,
            Err(why) => return Read::Missing(why),
        };
        if plan != self.plan {
            self.plan = plan;
            self.schema = schema(&self.port, &self.driver, plan);
            return Read::SchemaChanged;
        }
        match self.measure(row) {
            Ok(()) => Read::Row,
            Err(errno) => Read::Missing(why(&self.netdev, errno)),
        }
    }
}

fn look(memory: &mut impl Memory, netdev: &str) -> Result<Plan, Why> {
    Plan::of(memory).map_err(|fault| match fault {
        plan::Fault::Errno(errno) => why(netdev, errno),
        plan::Fault::Unknown(identifier) => {
            let detail = format!(
                "the module of {netdev} (identifier {identifier:#04x} of SFF-8024) is neither SFF-8636 nor CMIS"
            );
            Why::new(plan::UNKNOWN, detail)
        }
        plan::Fault::Nothing => {
            let detail = format!("the module of {netdev}, as copper cables do, measures nothing of itself");
            Why::new(plan::NOTHING, detail)
        }
    })
}

fn schema(port: &PortId, driver: &str, plan: Plan) -> Arc<Schema> {
    let names = plan.quantities().map(Quantity::name);
    Arc::new(Schema::new(port.clone(), driver, SourceKind::Module, names))
}

fn why(netdev: &str, errno: Errno) -> Why {
    let remedy = match errno {
        Errno::PERM => "; give the daemon CAP_NET_ADMIN, or set sampling.module = \"off\"",
        _ => "",
    };
    let mut why = why_from_errno(errno, &format!("reading the module of {netdev}"));
    why.detail.push_str(remedy);
    why
}
