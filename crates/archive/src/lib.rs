//! What happened, on disk: every counter once a second for days, events, and full-rate rows around incidents.
//!
//! One [`Writer`] takes in rows as fast as they are read, thins them out to one a second with the extremes inside it,
//! and has them in a log within a second; minutes later they become compressed blocks by track and column, in segments of
//! which the oldest go. Any number of [`Archive`]s look things up meanwhile, in the same process, in another, or on a
//! copy. `kill -9` costs the current second, a power loss the last few; a damaged block costs itself.
//!
//! `docs/archive-format.md` has the format, `docs/decisions/0005-archive-encoding.md` why it is this one.
//!
//! ```
//! use archive::{Archive, Epoch, Limits, Now, Query, State, Writer};
//! use model::{Host, Opened, SourceKind};
//! use ring::Window;
//!
//! let folder = tempfile::tempdir().unwrap();
//! let host = sim::Simulator::new(sim::Scenario::Healthy, 1, || 0);
//! let port = host.ports().unwrap().remove(0);
//! let Opened::Active(mut source) = host.open(&port, SourceKind::HwCounters) else { panic!() };
//!
//! let now = |seconds: u64| Now { monotonic: seconds * 1_000_000_000, wall: 1_795_910_400_000_000_000 };
//! let mut writer = Writer::open(folder.path(), Limits::default(), Epoch([1; 16]), now(0)).unwrap();
//! let track = writer.open_track(&port, source.schema());
//! let mut row = vec![0; source.schema().columns.len()];
//! source.read(&mut row);
//! writer.row(track, Window { began: 0, ended: 90_000 }, &row);
//! assert_eq!(writer.tick(now(1)).state, State::Writing);
//!
//! let archive = Archive::open(folder.path()).unwrap();
//! let all = Query { port: &port.id, source: SourceKind::HwCounters, columns: &[], from: i64::MIN, to: i64::MAX };
//! assert_eq!(archive.rows(&all).rows[0].times.len(), 1);
//! ```

mod archive;
mod block;
mod bytes;
mod column;
mod contents;
mod damage;
mod files;
mod frame;
mod layout;
mod limits;
mod log;
mod logged;
#[cfg(test)]
mod memory;
mod pin;
mod query;
mod rate;
mod record;
mod row;
mod seal;
mod second;
mod segments;
mod step;
mod store;
mod tail;
#[cfg(test)]
mod tests;
mod time;
mod track;
mod writer;

pub use archive::{Archive, TrackSpan};
pub use damage::{Cause, Damage, OpenError};
pub use frame::FORMAT;
pub use limits::{Limits, State, Status};
pub use pin::{FullRate, PinError};
pub use query::{Found, Query, RowTime, Rows, Values};
pub use record::{MOST_BODY, Record, Refused};
pub use second::Extremes;
pub use step::{Step, Stepped};
pub use time::{Epoch, Now};
pub use track::{Column, Track};
pub use writer::{Handle, Writer};
