//! All counters of a port by one message of RDMA netlink, all of one instant: one request and one answer instead of a
//! read for each counter. On mlx5 that is 3 firmware commands.

use super::nldev;
use crate::errno::why_from_errno;
use crate::netlink::{ANSWER, Request, Socket};
use model::{Port, Read, Schema, SourceKind, Why};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::sync::Arc;

/// The counters of a port, with a socket of their own: the answer of a read that was given up is told by its sequence
/// number, and never delays another port's.
pub(super) struct Stat {
    socket: Socket,
    request: Request,
    device: String,
    driver: String,
    schema: Arc<Schema>,
}

impl Stat {
    /// Asks once, for the names.
    ///
    /// # Errors
    /// The kernel has no such message (before 5.3), the driver no counters of a port, or their names do not fit into an
    /// answer.
    pub(super) fn open(port: &Port, index: u32) -> Result<Self, Why> {
        let why = |errno| why(errno, &port.device, port.id.number);
        let mut socket = Socket::open(NlFamily::Rdma, &[], ANSWER).map_err(why)?;
        let mut request = nldev::counters_of(index, port.id.number);
        let answer = socket.ask(&mut request).map_err(why)?;
        let names = names(answer).ok_or_else(|| why(Errno::NODATA))?;
        let schema = Schema::new(port.id.clone(), &port.driver, SourceKind::HwCounters, names);
        Ok(Self {
            socket,
            request,
            device: port.device.clone(),
            driver: port.driver.clone(),
            schema: Arc::new(schema),
        })
    }

    pub(super) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Reads all counters.
    ///
    /// # Errors
    /// What the kernel answers. It says `EINVAL` for whatever the driver says (`nldev_stat_get_doit` in
    /// drivers/infiniband/core/nldev.c).
    pub(super) fn read(&mut self, row: &mut [u64]) -> Result<Read, Errno> {
        let answer = self.socket.ask(&mut self.request)?;
        if fill(answer, &self.schema, row) {
            return Ok(Read::Row);
        }
        let names = names(answer).ok_or(Errno::NODATA)?;
        let port = self.schema.port.clone();
        self.schema = Arc::new(Schema::new(port, &self.driver, SourceKind::HwCounters, names));
        Ok(Read::SchemaChanged)
    }

    pub(super) fn why(&self, errno: Errno) -> Why {
        why(errno, &self.device, self.schema.port.number)
    }
}

fn why(errno: Errno, device: &str, port: u32) -> Why {
    why_from_errno(errno, &format!("RDMA netlink STAT_GET of {device}/{port}"))
}

/// The names of the counters of an answer; `None` if there are none.
pub(super) fn names(answer: &[u8]) -> Option<Vec<&str>> {
    let names: Vec<_> = nldev::counters(answer)?.map(|(name, _)| name).collect();
    (!names.is_empty()).then_some(names)
}

/// Puts the values of an answer into `row`; false if its counters are not exactly those of the schema.
pub(super) fn fill(answer: &[u8], schema: &Schema, row: &mut [u64]) -> bool {
    let Some(mut counters) = nldev::counters(answer) else {
        return false;
    };
    for (cell, column) in row.iter_mut().zip(&schema.columns) {
        match counters.next() {
            Some((name, value)) if name == &*column.name => *cell = value,
            _ => return false,
        }
    }
    counters.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::super::nldev::tests::answer;
    use super::*;
    use model::{DeviceId, PortId};

    fn schema(names: &[&'static str]) -> Schema {
        let port = PortId {
            device: DeviceId::guid("0"),
            number: 1,
        };
        Schema::new(port, "mlx5_core", SourceKind::HwCounters, names.iter().copied())
    }

    #[test]
    fn values_go_where_their_names_are() {
        let mut row = [0; 2];
        assert!(fill(
            &answer(&[("a", 1), ("b", u64::MAX)]),
            &schema(&["a", "b"]),
            &mut row
        ));
        assert_eq!(row, [1, u64::MAX]);
    }

    #[test]
    fn other_counters_are_never_taken_for_those_of_the_schema() {
        let schema = schema(&["a", "b"]);
        for (what, other) in [
            ("one fewer", &[("a", 1)][..]),
            ("one more", &[("a", 1), ("b", 2), ("c", 3)]),
            ("another order", &[("b", 2), ("a", 1)]),
            ("another name", &[("a", 1), ("bb", 2)]),
            ("none", &[]),
        ] {
            assert!(!fill(&answer(other), &schema, &mut [0; 2]), "{what}");
        }
        assert!(!fill(&[], &schema, &mut [0; 2]));
    }

    #[test]
    fn an_answer_without_counters_has_no_names() {
        assert_eq!(names(&answer(&[])), None);
        assert_eq!(names(&answer(&[("a", 1)])), Some(vec!["a"]));
    }
}
