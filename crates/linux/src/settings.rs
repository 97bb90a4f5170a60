//! Speed, lanes, pause, FEC and PFC storm prevention of a netdev. Under rtnl.
//!
//! By ethtool netlink on the kernel's own tree: one prepared request per question, on one socket, because the kernel has
//! no message that answers them together. Elsewhere, and on a kernel before 5.6, the speed alone, by file.

mod answer;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub(crate) mod genl;
#[cfg(test)]
mod tests;

use crate::ethtool::Interface;
use crate::netlink::{ANSWER, Request, Socket};
use crate::{Context, Tree, why_from_errno};
use answer::{Fact, Facts};
use genl::{Ethtool, Question};
use model::{ABSENT, Opened, Port, PortId, Read, Schema, Source, SourceKind, Why};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::sync::Arc;

/// Looks for which a question is left out that the driver says it does not support: most mean it for good, but some say it
/// during a reset. Ten minutes at the default interval.
const REST: u32 = 20;

/// Opens the source of a port.
pub(crate) fn open(ctx: &Context, port: &Port) -> Opened {
    let (Some(netdev), Some(ifindex)) = (&port.netdev, port.ifindex) else {
        return Opened::NotApplicable(Why::new("no_netdev", format!("{} has no netdev", port.device)));
    };
    let asked: Result<Box<dyn Ask>, Errno> = if ctx.live {
        Kernel::new(netdev, ifindex).map(|kernel| Box::new(kernel) as _)
    } else {
        Err(Errno::NOENT)
    };
    let opened = match asked {
        Ok(ask) => Settings::open(ask, port),
        // No ethtool netlink: a copy of a tree, or a kernel before 5.6.
        Err(Errno::NOENT) => Settings::open(Box::new(SpeedFile::new(ctx, netdev)), port),
        Err(errno) => Err(why_from_errno(
            errno,
            &format!("opening netlink sockets for {netdev}"),
        )),
    };
    match opened {
        Ok(Some(settings)) => Opened::Active(Box::new(settings)),
        Ok(None) => {
            let detail = format!("{netdev} tells neither speed, pause nor FEC");
            Opened::NotApplicable(Why::new("EOPNOTSUPP", detail))
        }
        Err(why) if matches!(why.reason, "ENOENT" | "EOPNOTSUPP") => Opened::NotApplicable(why),
        Err(why) => Opened::Failed(why),
    }
}

/// Where facts come from.
trait Ask: Send {
    /// All that can be learned now.
    fn facts(&mut self) -> Result<Facts, Why>;
}

struct Settings {
    ask: Box<dyn Ask>,
    port: PortId,
    driver: String,
    columns: Vec<Fact>,
    schema: Arc<Schema>,
}

impl Settings {
    /// `None` if there is nothing to learn.
    fn open(mut ask: Box<dyn Ask>, port: &Port) -> Result<Option<Self>, Why> {
        let facts = ask.facts()?;
        let (id, driver) = (port.id.clone(), port.driver.clone());
        let columns = told(|fact| facts.get(fact).is_some());
        let schema = schema(&id, &driver, &columns);
        let settings = Self {
            ask,
            port: id,
            driver,
            columns,
            schema,
        };
        Ok((!settings.columns.is_empty()).then_some(settings))
    }

    /// Takes in what a driver tells only since now, such as lanes and FEC once the link is up. What it no longer tells
    /// keeps its column.
    fn grow(&mut self, facts: &Facts) {
        self.columns = told(|fact| facts.get(fact).is_some() || self.columns.contains(&fact));
        self.schema = schema(&self.port, &self.driver, &self.columns);
    }
}

fn told(is: impl Fn(Fact) -> bool) -> Vec<Fact> {
    Fact::ALL.into_iter().filter(|&fact| is(fact)).collect()
}

fn schema(port: &PortId, driver: &str, columns: &[Fact]) -> Arc<Schema> {
    let names = columns.iter().map(|fact| fact.as_str());
    Arc::new(Schema::new(port.clone(), driver, SourceKind::Settings, names))
}

impl Source for Settings {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        let facts = match self.ask.facts() {
            Ok(facts) => facts,
            Err(why) => return Read::Missing(why),
        };
        let is_new = |fact| facts.get(fact).is_some() && !self.columns.contains(&fact);
        if Fact::ALL.into_iter().any(is_new) {
            self.grow(&facts);
            return Read::SchemaChanged;
        }
        for (cell, &fact) in row.iter_mut().zip(&self.columns) {
            *cell = facts.get(fact).unwrap_or(ABSENT);
        }
        Read::Row
    }
}

/// The running kernel.
struct Kernel {
    name: String,
    ifindex: u32,
    socket: Socket,
    asked: [Asked; 4],
    interface: Option<Interface>,
}

struct Asked {
    question: Question,
    request: Request,
    /// Looks for which the question is left out.
    rest: u32,
}

impl Kernel {
    fn new(name: &str, ifindex: u32) -> Result<Self, Errno> {
        let mut socket = Socket::open(NlFamily::Generic, &[], ANSWER)?;
        let ethtool = Ethtool::resolve(&mut socket)?;
        let questions = [
            Question::LinkModes,
            Question::LinkState,
            Question::Pause,
            Question::Fec,
        ];
        Ok(Self {
            name: name.to_owned(),
            ifindex,
            socket,
            asked: questions.map(|question| Asked {
                question,
                request: ethtool.request(question, ifindex),
                rest: 0,
            }),
            interface: Some(Interface::new(name)?),
        })
    }

    fn why(&self, errno: Errno) -> Why {
        why_from_errno(errno, &format!("ethtool netlink about {}", self.name))
    }

    /// Asks for what netlink lacks, by name; `None` if the driver does not tell or the name is another interface's now.
    fn storm_prevention(&mut self) -> Option<u64> {
        let interface = self.interface.as_ref()?;
        let answer = interface.pfc_prevention_timeout();
        if answer == Err(Errno::OPNOTSUPP) {
            self.interface = None;
            return None;
        }
        let ours = interface.ifindex() == Ok(self.ifindex);
        answer.ok().filter(|_| ours).map(Into::into)
    }
}

impl Ask for Kernel {
    /// A question that the driver does not support is left out for a while. One that fails costs its own facts only.
    fn facts(&mut self) -> Result<Facts, Why> {
        let mut facts = Facts::default();
        let (mut answered, mut failed) = (false, None);
        for asked in &mut self.asked {
            if asked.rest > 0 {
                asked.rest -= 1;
                continue;
            }
            match self.socket.ask(&mut asked.request) {
                Ok(payload) => {
                    facts.learn(asked.question, payload);
                    answered = true;
                }
                Err(Errno::OPNOTSUPP) => asked.rest = REST,
                Err(Errno::NODEV) => return Err(self.why(Errno::NODEV)),
                Err(errno) => failed = Some(errno),
            }
        }
        facts.set(Fact::PfcStormPrevention, self.storm_prevention());
        match failed {
            Some(errno) if !answered => Err(self.why(errno)),
            _ => Ok(facts),
        }
    }
}

/// `class/net/NETDEV/speed`.
struct SpeedFile {
    tree: Arc<Tree>,
    path: String,
}

impl SpeedFile {
    fn new(ctx: &Context, netdev: &str) -> Self {
        Self {
            tree: ctx.tree.clone(),
            path: format!("class/net/{netdev}/speed"),
        }
    }
}

impl Ask for SpeedFile {
    fn facts(&mut self) -> Result<Facts, Why> {
        let speed = match self.tree.read_string(&self.path) {
            // -1 is the driver's "unknown".
            Ok(text) => text.trim().parse::<u32>().map_or(ABSENT, answer::known_speed),
            // While the netdev is down.
            Err(why) if why.reason == "EINVAL" => ABSENT,
            Err(why) => return Err(why),
        };
        let mut facts = Facts::default();
        facts.set(Fact::Speed, Some(speed));
        Ok(facts)
    }
}
