//! What changes about the host's netdevs and RDMA devices, as the kernel tells it: links by rtnetlink, PFC and ETS by DCB,
//! RDMA devices as it tells udev and by RDMA netlink.
//!
//! On a socket of our own rather than neli's router, which hides from a subscriber that messages were lost.

mod devices;
mod monitor;

use crate::netlink::{ANSWER, DUMP, Message, Messages, Socket};
use crate::route::{self, Event, Link};
use crate::{Context, dcb, why_from_errno};
use devices::Devices;
use model::{Change, Changes, Why};
use monitor::Monitor;
use neli::consts::socket::NlFamily;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::time::Duration;

/// Wanted receive queue: some 1,000 link messages. The kernel grants what `net.core.rmem_max` allows.
const QUEUE: usize = 1 << 20;
/// Messages looked at in one wait, so that a flood cannot keep the caller for ever.
const BATCH: usize = 1024;

/// Follows the changes from now on.
///
/// # Errors
/// `not_on_this_tree` for a copy of a tree, where nothing can change; otherwise what the kernel answered.
pub(crate) fn open(ctx: &Context) -> Result<Box<dyn Changes>, Why> {
    if !ctx.live {
        return Err(Why::new(
            "not_on_this_tree",
            "only the running kernel tells of changes",
        ));
    }
    match Stream::open(QUEUE) {
        Ok(stream) => Ok(Box::new(stream)),
        Err(errno) => Err(why_from_errno(errno, "subscribing to link and DCB changes")),
    }
}

/// Name and master of each link, by its index.
type Links = BTreeMap<u32, (String, u32)>;

struct Stream {
    socket: Socket,
    links: Links,
    devices: Devices,
    monitor: Monitor,
}

impl Stream {
    fn open(queue: usize) -> Result<Self, Errno> {
        let groups = [route::GROUP_LINK, dcb::GROUP];
        // Room for one link with the statistics of many virtual functions.
        let socket = Socket::open(NlFamily::Route, &groups, 4 * ANSWER)?;
        socket.set_queue(queue)?;
        // Listed after subscribing: what changes in between comes as a message, and says nothing new at worst.
        Ok(Self {
            socket,
            links: list()?,
            devices: Devices::open()?,
            monitor: Monitor::open(),
        })
    }

    /// Starts again after messages were lost. Those that are left are older than the lost ones, and would undo what the new
    /// list says. Without a list every link looks new, which is the safe side.
    fn resume(&mut self, found: &mut Vec<Change>) {
        for _ in 0..BATCH {
            if let Err(Errno::AGAIN) = self.socket.next() {
                break;
            }
        }
        self.links = list().unwrap_or_default();
        add(found, Change::Overflow);
    }
}

impl Changes for Stream {
    /// Returns early, with nothing found, if a signal arrives.
    fn wait(&mut self, timeout: Duration, found: &mut Vec<Change>) -> Result<(), Why> {
        let limit = Timespec::try_from(timeout).ok();
        // To wait twice for one socket is to wait once for it.
        let monitor = self.monitor.socket().unwrap_or(self.devices.as_fd());
        let mut sockets = [self.socket.as_fd(), self.devices.as_fd(), monitor]
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN));
        match poll(&mut sockets, limit.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(why_from_errno(errno, "waiting for changes")),
        }
        let noticed = self.monitor.look(BATCH);
        match self.devices.look(BATCH) {
            Ok(false) if !noticed => {}
            Ok(_) => add(found, Change::Devices),
            Err(errno) => return Err(why_from_errno(errno, "receiving changes of devices")),
        }
        for _ in 0..BATCH {
            match self.socket.next() {
                Ok(messages) => note(messages, &mut self.links, found),
                Err(Errno::AGAIN) => break,
                Err(Errno::NOBUFS | Errno::MSGSIZE) => self.resume(found),
                Err(errno) => return Err(why_from_errno(errno, "receiving link and DCB changes")),
            }
        }
        Ok(())
    }
}

/// Every link of this network namespace.
fn list() -> Result<Links, Errno> {
    let mut links = Links::new();
    Socket::open(NlFamily::Route, &[], DUMP)?.dump(&mut route::all_links(), |message| {
        if let Some(Event::There(link)) = Event::parse(message) {
            links.insert(link.ifindex, (link.name.to_owned(), link.master));
        }
    })?;
    Ok(links)
}

fn note(messages: Messages<'_>, links: &mut Links, found: &mut Vec<Change>) {
    for message in messages {
        match Event::parse(message) {
            Some(Event::There(link)) => {
                if is_news(links, link) {
                    links.insert(link.ifindex, (link.name.to_owned(), link.master));
                    add(found, Change::Devices);
                }
                add(
                    found,
                    Change::Link {
                        ifindex: link.ifindex,
                    },
                );
            }
            Some(Event::Gone { ifindex }) => {
                links.remove(&ifindex);
                add(found, Change::Devices);
            }
            None if dcb::is_notice(message.kind) => add(found, dcb_change(message, links)),
            None => {}
        }
    }
}

/// New, renamed, or moved to or from a bond or bridge.
fn is_news(links: &Links, link: Link<'_>) -> bool {
    links
        .get(&link.ifindex)
        .is_none_or(|(name, master)| name != link.name || *master != link.master)
}

/// DCB tells the name; one that is not known belongs to a device that is not known.
fn dcb_change(message: Message<'_>, links: &Links) -> Change {
    let name = dcb::interface(message.payload);
    let known = links.iter().find(|(_, (known, _))| Some(known.as_str()) == name);
    known.map_or(Change::Devices, |(&ifindex, _)| Change::Dcb { ifindex })
}

fn add(found: &mut Vec<Change>, change: Change) {
    if !found.contains(&change) {
        found.push(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{self, ip};

    fn index(links: &Links, name: &str) -> u32 {
        *links.iter().find(|(_, (known, _))| known == name).unwrap().0
    }

    fn wait(stream: &mut Stream) -> Vec<Change> {
        let mut found = Vec::new();
        stream.wait(Duration::from_millis(200), &mut found).unwrap();
        found
    }

    #[test]
    fn links_that_come_flap_rename_and_go_are_told() {
        netns::within(|| {
            let mut stream = Stream::open(QUEUE).unwrap();
            assert_eq!(wait(&mut stream), []);
            ip("link add a0 type veth peer name a1");
            let found = wait(&mut stream);
            let (a0, a1) = (index(&stream.links, "a0"), index(&stream.links, "a1"));
            assert!(found.contains(&Change::Devices));
            assert!(
                found.contains(&Change::Link { ifindex: a0 })
                    && found.contains(&Change::Link { ifindex: a1 })
            );

            ip("link set a1 up");
            ip("link set a0 up");
            ip("link set a0 down");
            let found = wait(&mut stream);
            let once = |change| found.iter().filter(|&found| *found == change).count();
            assert_eq!(
                once(Change::Link { ifindex: a0 }),
                1,
                "duplicates are told once: {found:?}"
            );
            assert_eq!(once(Change::Devices), 0, "a flap is no new device");

            ip("link set a0 name b0");
            assert!(wait(&mut stream).contains(&Change::Devices));
            assert_eq!(index(&stream.links, "b0"), a0);

            ip("link add br7 type bridge");
            ip("link set b0 master br7");
            let found = wait(&mut stream);
            assert!(found.contains(&Change::Devices) && found.contains(&Change::Link { ifindex: a0 }));

            ip("link del b0");
            assert!(wait(&mut stream).contains(&Change::Devices));
            assert!(!stream.links.contains_key(&a0) && !stream.links.contains_key(&a1));
        });
    }

    #[test]
    fn lost_messages_are_told_and_the_list_is_right_afterwards() {
        netns::within(|| {
            ip("link add a0 type veth peer name a1");
            // The least that the kernel grants.
            let mut stream = Stream::open(1).unwrap();
            for _ in 0..20 {
                ip("link set a0 up");
                ip("link set a0 down");
            }
            ip("link set a0 name b0");
            assert!(wait(&mut stream).contains(&Change::Overflow));
            index(&stream.links, "b0");
            let rest = wait(&mut stream);
            assert!(!rest.contains(&Change::Overflow), "told once: {rest:?}");
        });
    }

    #[test]
    fn dcb_is_told_by_interface() {
        let request = crate::netlink::Request::new(0, &[0, 20, 0, 0]).with(1, b"rail1\0");
        let message = Message {
            kind: 79,
            sequence: 0,
            payload: request.payload(),
        };
        let links = Links::from([(4, ("rail0".to_owned(), 0)), (5, ("rail1".to_owned(), 0))]);
        assert_eq!(dcb_change(message, &links), Change::Dcb { ifindex: 5 });
        assert_eq!(dcb_change(message, &Links::new()), Change::Devices);
    }

    #[test]
    fn a_copy_of_a_tree_does_not_change() {
        let tree = tempfile::tempdir().unwrap();
        let ctx = netns::context(tree.path(), false);
        assert_eq!(open(&ctx).err().unwrap().reason, "not_on_this_tree");
    }
}
