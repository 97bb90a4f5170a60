//! A driver's own statistics, `ethtool -S`. Under rtnl.
//!
//! How many statistics there are, their names and their values are three questions, and the set may change between
//! them. A row is given out only if, after its values were read,
//!
//! * the kernel gave as many values as there are names (a kernel since January 2026 answers 0 otherwise, an older one
//!   the new number);
//! * the names can be no others than those of the schema: [`watch`] says how that is known without asking for them;
//!   where it is not known they are asked for and compared;
//! * the interface's name still belongs to the interface.
//!
//! What remains are changes of which nothing on this host tells: a driver's own sysfs files, another host or an embedded
//! processor on the same NIC. The names are therefore also compared once a minute; the first time that finds a
//! difference, the driver is no longer trusted and its names are compared after every read. And where names are compared,
//! two changes between the values and the names would cancel out.

mod buffer;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod ioctl;
mod names;
mod nic;
#[cfg(test)]
mod tests;
mod watch;

use crate::{Context, clock, why_from_errno};
pub(crate) use ioctl::Interface;
use model::{Opened, Port, PortId, Read, Schema, Source, SourceKind, Why};
pub(crate) use names::Columns;
use nic::{Kernel, Nic};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watch::Notice;

/// The longest time for which names are believed unseen.
const NAMES_AGE: Duration = Duration::from_secs(60);
/// Reads that are begun anew within one because the settings change under them.
const ATTEMPTS: usize = 4;

/// Opens the source of a port.
pub(crate) fn open(ctx: &Context, port: &Port) -> Opened {
    if !ctx.live {
        return Opened::NotApplicable(Why::new(
            "not_on_this_tree",
            "a driver's statistics are asked of the running kernel only",
        ));
    }
    let (Some(netdev), Some(ifindex)) = (&port.netdev, port.ifindex) else {
        return Opened::NotApplicable(Why::new("no_netdev", format!("{} has no netdev", port.device)));
    };
    let about = About {
        port: port.id.clone(),
        driver: port.driver.clone(),
        netdev: netdev.clone(),
        ifindex,
        columns: ctx.columns,
        names_age: NAMES_AGE,
    };
    let kernel = Kernel::new(netdev, ifindex).map_err(|errno| about.why(errno));
    match kernel.and_then(|kernel| Statistics::open(kernel, about)) {
        Ok(statistics) => Opened::Active(Box::new(statistics)),
        Err(why) if matches!(why.reason, "EOPNOTSUPP" | NONE | UNKNOWN) => Opened::NotApplicable(why),
        Err(why) => Opened::Failed(why),
    }
}

/// Reason of an interface without statistics.
const NONE: &str = "no_statistics";
/// Reason of an interface of whose statistics none gets a column.
const UNKNOWN: &str = "not_in_catalogue";

/// What does not change about a source.
struct About {
    port: PortId,
    driver: String,
    netdev: String,
    ifindex: u32,
    columns: Columns,
    names_age: Duration,
}

impl About {
    fn why(&self, errno: Errno) -> Why {
        why_from_errno(errno, &format!("ethtool statistics of {}", self.netdev))
    }
}

/// The names that the rows are read by.
struct Known {
    /// As the kernel gave them, [`ioctl::NAME`] bytes each.
    names: Box<[u8]>,
    /// Which values get a cell, in the order of the columns.
    wanted: Box<[u32]>,
    schema: Arc<Schema>,
    /// When to look at them again at the latest.
    until: Instant,
}

impl Known {
    fn count(&self) -> usize {
        self.names.len() / ioctl::NAME
    }
}

struct Statistics<N> {
    nic: N,
    about: About,
    known: Known,
    /// Names have never been found changed without notice.
    trusted: bool,
    /// The names must be looked at before the next row, because a look failed.
    in_doubt: bool,
}

/// How the names of the schema compare with the kernel's.
#[derive(PartialEq, Eq)]
enum Names {
    Same,
    Changed,
}

impl<N: Nic> Statistics<N> {
    fn open(mut nic: N, about: About) -> Result<Self, Why> {
        let known = learn(&mut nic, &about)?;
        if known.schema.columns.is_empty() {
            let detail = format!(
                "the catalogue knows none of the {} statistics of {} (driver {})",
                known.count(),
                about.netdev,
                about.driver
            );
            return Err(Why::new(UNKNOWN, detail));
        }
        Ok(Self {
            nic,
            about,
            known,
            trusted: true,
            in_doubt: false,
        })
    }

    fn sample(&mut self, row: &mut [u64]) -> Result<Read, Why> {
        for _ in 0..ATTEMPTS {
            // Before the values: if the names are no longer those of the schema, a change back to them between values
            // and names would make the two look as if they belonged together.
            if self.in_doubt && self.compare()? == Names::Changed {
                return self.relearn();
            }
            if !self.copy(row)? {
                return self.relearn();
            }
            let notice = self.nic.notice();
            let believed = notice == Notice::Same && self.trusted;
            if believed && clock::now() < self.known.until {
                return Ok(Read::Row);
            }
            if self.compare()? == Names::Changed {
                if believed {
                    self.distrust();
                }
                return self.relearn();
            }
            // Disturbed: they may have been others for the moment of the read, so it is done again.
            if notice != Notice::Disturbed {
                return Ok(Read::Row);
            }
        }
        Err(Why::new(
            "unsteady",
            format!(
                "the settings of {} change faster than they are read",
                self.about.netdev
            ),
        ))
    }

    /// Copies the wanted values; false if the set has another size than the schema's.
    fn copy(&mut self, row: &mut [u64]) -> Result<bool, Why> {
        let Self {
            nic, about, known, ..
        } = self;
        let values = match nic.values(known.count()) {
            Ok(values) if values.len() == known.count() => values,
            // EFAULT: an old kernel wrote more than was asked for, up to the end of the buffer.
            Ok(_) | Err(Errno::FAULT) => return Ok(false),
            Err(errno) => return Err(about.why(errno)),
        };
        for (cell, &index) in row.iter_mut().zip(&known.wanted) {
            *cell = values[index as usize];
        }
        // After the read: a name that was another interface's during it and is ours again would take two renames.
        check_ifindex(nic, about)?;
        Ok(true)
    }

    /// Asks for the names and compares them with the schema's. Allocates nothing.
    fn compare(&mut self) -> Result<Names, Why> {
        let Self {
            nic,
            about,
            known,
            in_doubt,
            ..
        } = self;
        *in_doubt = true;
        let names = match nic.names(known.count()) {
            Ok(names) => names,
            Err(Errno::FAULT) => return Ok(Names::Changed),
            Err(errno) => return Err(about.why(errno)),
        };
        if *names != *known.names {
            return Ok(Names::Changed);
        }
        *in_doubt = false;
        known.until = clock::now() + about.names_age;
        Ok(Names::Same)
    }

    /// The names changed at some time since the last look, and rows since then may stand under wrong names.
    fn distrust(&mut self) {
        tracing::warn!(
            netdev = self.about.netdev,
            driver = self.about.driver,
            "statistics were renamed without notice within the last {} s; from now on names are read with every row",
            self.about.names_age.as_secs()
        );
        self.trusted = false;
    }

    fn relearn(&mut self) -> Result<Read, Why> {
        self.in_doubt = true;
        self.known = learn(&mut self.nic, &self.about)?;
        self.in_doubt = false;
        Ok(Read::SchemaChanged)
    }
}

impl<N: Nic> Source for Statistics<N> {
    fn schema(&self) -> &Arc<Schema> {
        &self.known.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        self.sample(row).unwrap_or_else(Read::Missing)
    }
}

/// Asks for the count and the names until they agree.
fn learn<N: Nic>(nic: &mut N, about: &About) -> Result<Known, Why> {
    for _ in 0..ATTEMPTS {
        // Whatever was noticed until now, the names asked for below have it.
        nic.notice();
        let count = nic.count().map_err(|errno| about.why(errno))?;
        check_ifindex(nic, about)?;
        if count == 0 {
            return Err(Why::new(
                NONE,
                format!("{} has no statistics of its driver's own", about.netdev),
            ));
        }
        match nic.names(count) {
            Ok(names) if names.len() == count * ioctl::NAME => return Ok(describe(names, about)),
            Ok(_) | Err(Errno::FAULT) => {}
            Err(errno) => return Err(about.why(errno)),
        }
    }
    Err(Why::new(
        "unsteady",
        format!(
            "the statistics of {} change faster than they are read",
            about.netdev
        ),
    ))
}

fn describe(names: &[u8], about: &About) -> Known {
    let (wanted, columns) = names::select(names, &about.driver, about.columns);
    let schema = Schema::new(about.port.clone(), &about.driver, SourceKind::Ethtool, columns);
    Known {
        names: names.into(),
        wanted,
        schema: Arc::new(schema),
        until: clock::now() + about.names_age,
    }
}

/// A name can move to another interface; its numbers are not ours.
fn check_ifindex<N: Nic>(nic: &mut N, about: &About) -> Result<(), Why> {
    match nic.ifindex() {
        Ok(ifindex) if ifindex == about.ifindex => Ok(()),
        Ok(_) => Err(about.why(Errno::NODEV)),
        Err(errno) => Err(about.why(errno)),
    }
}
