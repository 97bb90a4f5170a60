//! Whether the names of an interface's statistics can have changed, without asking for the names.
//!
//! On mlx5 the names follow the priorities that have PFC and whether global pause is on: moving PFC from priority 3
//! to 4 keeps their number and gives the values other meanings. Asking for the names costs the firmware four register
//! reads and the kernel one formatted string per statistic, so the changes are watched instead:
//!
//! * The kernel says so whenever PFC is set through DCB (`dcbnl_ieee_notify` and `dcbnl_cee_notify` of
//!   net/dcb/dcbnl.c), or pause, channels or rings through ethtool by netlink or ioctl (`ethtool_notify`). It puts the
//!   notice into our queue before it releases rtnl, under which the driver made the change. Statistics are read under
//!   rtnl as well. So a read that saw a change finds its notice in the queue when it returns.
//!   PFC and pause belong to the port, and a port can have several functions (Socket Direct), of which the notice names
//!   the one that they were set through. Notices of these two kinds therefore count whomever they name.
//! * A DCBX agent in the NIC's firmware changes PFC and tells nobody. `GDCBX`, which drivers answer from memory, says
//!   whether the host owns DCB; while it does not, the names can change at any time.

use crate::dcb;
use crate::netlink::{ANSWER, Message, Socket};
use crate::settings::genl::{self, Ethtool};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::mem;

/// What can be said of the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// They are what they were.
    Same,
    /// They can have changed before the look, and nothing would have told.
    Unknown,
    /// Somebody changed the settings that they follow.
    Disturbed,
}

/// The notices about one interface, and the question who owns its DCB.
pub(super) struct Watch {
    ifindex: u32,
    dcb_notices: Socket,
    ethtool_notices: Socket,
    owner: Option<dcb::Owner>,
    host_owned: bool,
}

impl Watch {
    /// Watches from now on.
    ///
    /// # Errors
    /// What the kernel answered; it then has no notices of one of the kinds (ethtool's came with Linux 5.6).
    pub(super) fn new(name: &str, ifindex: u32) -> Result<Self, Errno> {
        let mut ethtool = Socket::open(NlFamily::Generic, &[], ANSWER)?;
        let family = Ethtool::resolve(&mut ethtool)?;
        ethtool.join(family.monitor.ok_or(Errno::NOENT)?)?;
        Ok(Self {
            ifindex,
            dcb_notices: Socket::open(NlFamily::Route, &[dcb::GROUP], ANSWER)?,
            ethtool_notices: ethtool,
            owner: dcb::Owner::of(name)?,
            // Not known before the first look.
            host_owned: false,
        })
    }

    /// Empties the queues. Never waits for a notice; asking for the owner takes rtnl.
    pub(super) fn look(&mut self) -> Notice {
        let ifindex = Some(self.ifindex);
        let dcb = drain(&mut self.dcb_notices, |message| dcb::is_notice(message.kind));
        let ethtool = drain(&mut self.ethtool_notices, |message| {
            genl::is_pause_notice(message.payload) || genl::interface(message.payload) == ifindex
        });
        if dcb || ethtool {
            return Notice::Disturbed;
        }
        let owned_now = self.owner.as_mut().is_none_or(dcb::Owner::is_host);
        // A hand-over is not announced: only an owner who had it at the last look and has it now had it in between.
        let owned_before = mem::replace(&mut self.host_owned, owned_now);
        if owned_before && owned_now {
            Notice::Same
        } else {
            Notice::Unknown
        }
    }
}

/// True if any message in the queue is `ours` or got lost.
fn drain(socket: &mut Socket, ours: impl Fn(Message<'_>) -> bool) -> bool {
    let mut found = false;
    loop {
        match socket.next() {
            Ok(mut messages) => found |= messages.any(&ours),
            Err(Errno::AGAIN) => return found,
            // ENOBUFS: the queue ran over. EMSGSIZE: too long to look at. Either may have been ours.
            Err(Errno::NOBUFS | Errno::MSGSIZE) => found = true,
            // Nothing more will come of this socket at this time; what it missed is not known.
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{self, ip, port, run};

    #[test]
    fn channels_of_the_interface_disturb_and_those_of_another_do_not() {
        netns::within(|| {
            for pair in ["a", "b"] {
                let queues = "numrxqueues 4 numtxqueues 4";
                ip(&format!(
                    "link add {pair}0 {queues} type veth peer name {pair}1 {queues}"
                ));
            }
            let mut watch = Watch::new("a0", port("a0").ifindex.unwrap()).unwrap();
            assert_eq!(
                watch.look(),
                Notice::Unknown,
                "nothing is known before the first look"
            );
            assert_eq!(watch.look(), Notice::Same);
            run("ethtool", "-L b0 rx 2 tx 2");
            assert_eq!(watch.look(), Notice::Same);
            run("ethtool", "-L a0 rx 2 tx 2");
            assert_eq!(watch.look(), Notice::Disturbed);
            assert_eq!(watch.look(), Notice::Same);
        });
    }

    #[test]
    fn lost_notices_disturb() {
        netns::within(|| {
            ip("link add a0 type veth peer name a1");
            let mut watch = Watch::new("a0", port("a0").ifindex.unwrap()).unwrap();
            watch.look();
            watch.ethtool_notices.set_queue(1).unwrap();
            for switch in ["off", "on"].iter().cycle().take(40) {
                run("ethtool", &format!("-K a1 tx {switch}"));
            }
            assert_eq!(watch.look(), Notice::Disturbed);
        });
    }
}
