//! A directory of counters, one to a file.

use crate::clock;
use crate::tree::{Fault, Numbers, Tree};
use model::{ABSENT, Column, Port, Read, Schema, Source, SourceKind, Why};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reason of a directory that has no counter worth reading.
pub(super) const NONE: &str = "no_counters";
/// How long the kernel may answer from its cache: a setting that lies among the counters.
const NO_COUNTER: &str = "lifespan";

/// Whose counters are kept open, and how.
pub(super) struct Kept<'a> {
    pub port: &'a Port,
    pub source: SourceKind,
    /// How long a file that failed is left alone.
    pub rest: Duration,
}

/// Counters in the driver's order, each with its file kept open.
///
/// The order matters: the kernel fetches all counters of a port at once and answers from that for `lifespan`, but mlx5
/// lets it do so only after a read of its first counter (`ib_get_hw_stats` in drivers/infiniband/hw/mlx5/counters.c fills
/// less than all counters otherwise). So the first file comes first and the rest follow at once.
pub(super) struct Files {
    schema: Arc<Schema>,
    counters: Numbers,
    /// Those that are left alone.
    failed: Vec<Failed>,
    rest: Duration,
}

/// A counter that could not be read.
struct Failed {
    at: usize,
    fault: Fault,
    since: Instant,
}

impl Files {
    /// Opens the counters in `directory` of which `wanted` says that they are worth it, and reads each once.
    ///
    /// # Errors
    /// There is no such directory, no counter in it, or none can be read.
    pub(super) fn open(
        tree: &Tree,
        directory: &str,
        kept: &Kept<'_>,
        wanted: impl Fn(&Column) -> bool,
    ) -> Result<Self, Why> {
        let mut entries = tree.list(directory)?;
        entries.retain(|entry| entry.name != NO_COUNTER);
        entries.sort_by_key(|entry| entry.inode);
        let Kept { port, source, rest } = *kept;
        let names = entries.into_iter().map(|entry| entry.name);
        let mut columns = Schema::new(port.id.clone(), &port.driver, source, names)
            .columns
            .into_vec();
        columns.retain(wanted);
        let mut refused = None;
        let mut counters = Vec::with_capacity(columns.len());
        columns.retain(
            |column| match tree.file(&format!("{directory}/{}", column.name)) {
                Ok(file) => {
                    counters.push(file);
                    true
                }
                Err(why) => {
                    refused.get_or_insert(why);
                    false
                }
            },
        );
        if columns.is_empty() {
            let none = || Why::new(NONE, format!("{directory} has no counter that is worth its cost"));
            return Err(refused.unwrap_or_else(none));
        }
        let schema = Schema {
            port: port.id.clone(),
            source,
            columns: columns.into(),
        };
        let mut row = vec![ABSENT; counters.len()];
        let mut files = Self {
            schema: Arc::new(schema),
            counters: counters.into_iter().collect(),
            failed: Vec::new(),
            rest,
        };
        match files.read(&mut row) {
            Read::Missing(why) => Err(why),
            Read::Row | Read::SchemaChanged => Ok(files),
        }
    }
}

impl Source for Files {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        let Self {
            counters,
            failed,
            rest,
            ..
        } = self;
        failed.retain(|failed| failed.since.elapsed() < *rest);
        let mut any = false;
        for (at, cell) in row.iter_mut().enumerate() {
            *cell = ABSENT;
            if failed.iter().any(|failed| failed.at == at) {
                continue;
            }
            match counters.number(at) {
                Ok(value) => {
                    *cell = value;
                    any = true;
                }
                Err(gone @ Fault::Errno(Errno::NODEV)) => return Read::Missing(counters.why(at, gone)),
                Err(fault) => failed.push(Failed {
                    at,
                    fault,
                    since: clock::now(),
                }),
            }
        }
        if any { Read::Row } else { Read::Missing(self.why()) }
    }
}

impl Files {
    /// Why no file could be read: what the first of them says.
    fn why(&self) -> Why {
        let first = self.failed.iter().min_by_key(|failed| failed.at);
        first.map_or_else(
            || Why::new(NONE, "there is no counter"),
            |first| self.counters.why(first.at, first.fault),
        )
    }
}
