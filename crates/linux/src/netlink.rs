//! Netlink as `settings`, `dcb`, `ethtool` and `changes` speak it: a prepared request, one answer, attributes read in place.
//!
//! The kernel runs a request that is no dump inside `send`, so its answer is in the socket's queue when `send` returns
//! (`net/netlink/af_netlink.c`, `netlink_unicast_kernel`). Answers are therefore received without waiting: a source may
//! be held up by firmware or rtnl, but never by an answer that does not come. On these protocols only the kernel and
//! the superuser can send to another process's socket, so that a message's sender is not looked at.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

use neli::consts::socket::{Msg, NlFamily};
use neli::socket::NlSocket;
use neli::utils::Groups;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `struct nlmsghdr`: length, type, flags, sequence number, port.
const MESSAGE_HEADER: usize = 16;
/// `struct nlattr`: length and type.
const ATTRIBUTE_HEADER: usize = 4;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Flags in the upper two bits of an attribute's type.
const NLA_F_NESTED: u16 = 0x8000;
const NLA_TYPE_MASK: u16 = 0x3fff;
/// Room for what the kernel puts into one datagram: `NLMSG_GOODSIZE` is at most 8 KiB, a dump takes up to 32 KiB.
pub(crate) const ANSWER: usize = 8 * 1024;
pub(crate) const DUMP: usize = 32 * 1024;

/// Bytes with the padding that netlink puts behind them.
fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The errno of an I/O error; `EIO` for one that did not come from the kernel.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// One message of a received buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// Sequence number: the request's, or 0 of a notification.
    pub sequence: u32,
    /// What follows the header.
    pub payload: &'a [u8],
}

impl Message<'_> {
    /// The errno of an `NLMSG_ERROR`, `None` for another message; `Ok` is an acknowledgement.
    fn error(&self) -> Option<Result<(), Errno>> {
        if self.kind != NLMSG_ERROR {
            return None;
        }
        let code = u32_at(self.payload, 0).map(u32::cast_signed);
        Some(match code {
            Some(0) => Ok(()),
            Some(code @ -4095..0) => Err(Errno::from_raw_os_error(-code)),
            _ => Err(Errno::IO),
        })
    }
}

/// The messages of a received buffer. Ends at the first that does not fit into it.
#[derive(Clone, Debug)]
pub(crate) struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let length = usize::try_from(u32_at(self.0, 0)?).ok()?;
        let message = Message {
            kind: u16_at(self.0, 4)?,
            sequence: u32_at(self.0, 8)?,
            payload: self.0.get(MESSAGE_HEADER..length)?,
        };
        self.0 = self.0.get(padded(length)..).unwrap_or_default();
        Some(message)
    }
}

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    /// Its type, without the flags.
    pub kind: u16,
    /// Its value, without padding.
    pub value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// The value as a number, if it has this many bytes. Netlink aligns to 4 bytes only, so 8 are read unaligned.
    pub(crate) fn u8(&self) -> Option<u8> {
        <[u8; 1]>::try_from(self.value).ok().map(u8::from_ne_bytes)
    }

    pub(crate) fn u16(&self) -> Option<u16> {
        self.value.try_into().ok().map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(&self) -> Option<u32> {
        self.value.try_into().ok().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&self) -> Option<u64> {
        self.value.try_into().ok().map(u64::from_ne_bytes)
    }

    /// The value as a string up to its NUL.
    pub(crate) fn text(&self) -> Option<&'a str> {
        let end = self
            .value
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(self.value.len());
        std::str::from_utf8(&self.value[..end]).ok()
    }
}

/// The attributes of a message or nest. Ends at the first that does not fit.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Attributes of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The attributes behind a fixed header of `header` bytes; none if the message is shorter.
    pub(crate) fn behind(payload: &'a [u8], header: usize) -> Self {
        Self(payload.get(padded(header)..).unwrap_or_default())
    }

    /// The first attribute of this type.
    pub(crate) fn find_kind(&self, kind: u16) -> Option<Attribute<'a>> {
        self.clone().find(|attribute| attribute.kind == kind)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let length = usize::from(u16_at(self.0, 0)?);
        let attribute = Attribute {
            kind: u16_at(self.0, 2)? & NLA_TYPE_MASK,
            value: self.0.get(ATTRIBUTE_HEADER..length)?,
        };
        self.0 = self.0.get(padded(length)..).unwrap_or_default();
        Some(attribute)
    }
}

/// A request, laid out once and sent again and again.
#[derive(Clone, Debug)]
pub(crate) struct Request(Vec<u8>);

impl Request {
    /// A request of this type with a fixed header of its protocol.
    pub(crate) fn new(kind: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; MESSAGE_HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        bytes.extend_from_slice(header);
        bytes.resize(padded(bytes.len()), 0);
        Self(bytes).sized()
    }

    /// A request that every object answers.
    pub(crate) fn dump(kind: u16, header: &[u8]) -> Self {
        let mut request = Self::new(kind, header);
        request.0[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        request
    }

    /// Adds an attribute.
    #[must_use]
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        put(&mut self.0, kind, value);
        self.sized()
    }

    /// Adds a nest of attributes.
    #[must_use]
    pub(crate) fn with_nest(self, kind: u16, attributes: &[(u16, &[u8])]) -> Self {
        let mut nest = Vec::new();
        for (kind, value) in attributes {
            put(&mut nest, *kind, value);
        }
        self.with(kind | NLA_F_NESTED, &nest)
    }

    /// What follows the message's header: a request is laid out as its answer is.
    #[cfg(test)]
    pub(crate) fn payload(&self) -> &[u8] {
        &self.0[MESSAGE_HEADER..]
    }

    fn sized(mut self) -> Self {
        let length = u32::try_from(self.0.len()).expect("a request is a few hundred bytes long");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self
    }

    fn number(&mut self, sequence: u32) -> &[u8] {
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.0
    }
}

fn put(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).expect("a request's attributes are short");
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(padded(bytes.len()), 0);
}

/// A netlink socket with the one buffer that it receives into.
pub(crate) struct Socket {
    kernel: NlSocket,
    sequence: u32,
    buffer: Box<[u8]>,
}

impl Socket {
    /// Opens a socket of `family`, subscribed to multicast `groups`, that receives datagrams of up to `room` bytes.
    pub(crate) fn open(family: NlFamily, groups: &[u32], room: usize) -> Result<Self, Errno> {
        let kernel =
            NlSocket::connect(family, None, Groups::new_groups(groups)).map_err(|error| errno(&error))?;
        Ok(Self {
            kernel,
            sequence: 0,
            buffer: vec![0; room].into(),
        })
    }

    /// Asks for a receive queue of `bytes`; the kernel grants at most `net.core.rmem_max`.
    pub(crate) fn set_queue(&self, bytes: usize) -> Result<(), Errno> {
        self.kernel
            .set_recv_buffer_size(bytes)
            .map_err(|error| errno(&error))
    }

    /// Subscribes to one more multicast group.
    pub(crate) fn join(&self, group: u32) -> Result<(), Errno> {
        self.kernel
            .add_mcast_membership(Groups::new_groups(&[group]))
            .map_err(|error| errno(&error))
    }

    /// Sends a request that has one answer, and returns the answer's payload.
    ///
    /// # Errors
    /// What the kernel answered; `EAGAIN` if it said nothing, `EMSGSIZE` if its answer did not fit.
    pub(crate) fn ask(&mut self, request: &mut Request) -> Result<&[u8], Errno> {
        self.send(request)?;
        let range = loop {
            let length = self.receive()?;
            let base = self.buffer.as_ptr().addr();
            let answer = Messages(&self.buffer[..length]).find(|message| message.sequence == self.sequence);
            match answer {
                // A late answer to an earlier request.
                None => {}
                Some(message) => match message.error() {
                    Some(Err(errno)) => return Err(errno),
                    Some(Ok(())) => return Ok(&[]),
                    None => {
                        let start = message.payload.as_ptr().addr() - base;
                        break start..start + message.payload.len();
                    }
                },
            }
        };
        Ok(&self.buffer[range])
    }

    /// Sends a dump and hands every message of the answer to `each`.
    ///
    /// # Errors
    /// As for [`Self::ask`].
    pub(crate) fn dump(
        &mut self,
        request: &mut Request,
        mut each: impl FnMut(Message<'_>),
    ) -> Result<(), Errno> {
        self.dump_while(request, |message| {
            each(message);
            Ok(())
        })
    }

    /// The same until `each` has had enough. The kernel then is in the middle of its dump, and the socket of no more use.
    ///
    /// # Errors
    /// As for [`Self::ask`], and what `each` says.
    pub(crate) fn dump_while(
        &mut self,
        request: &mut Request,
        mut each: impl FnMut(Message<'_>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.send(request)?;
        loop {
            let length = self.receive()?;
            for message in Messages(&self.buffer[..length]).filter(|m| m.sequence == self.sequence) {
                if let Some(outcome) = message.error() {
                    return outcome;
                }
                if message.kind == NLMSG_DONE {
                    return Ok(());
                }
                each(message)?;
            }
        }
    }

    /// The messages of the next datagram, without waiting.
    ///
    /// # Errors
    /// `EAGAIN` if there is none, `ENOBUFS` if the queue ran over, `EMSGSIZE` if it did not fit.
    pub(crate) fn next(&mut self) -> Result<Messages<'_>, Errno> {
        let length = self.receive()?;
        Ok(Messages(&self.buffer[..length]))
    }

    fn send(&mut self, request: &mut Request) -> Result<(), Errno> {
        // 0 is what notifications carry.
        self.sequence = self.sequence.checked_add(1).unwrap_or(1);
        let sent = self.kernel.send(request.number(self.sequence), Msg::empty());
        sent.map(drop).map_err(|error| errno(&error))
    }

    fn receive(&mut self) -> Result<usize, Errno> {
        // With MSG_TRUNC the kernel tells the datagram's true length.
        let received = self.kernel.recv(&mut self.buffer, Msg::DONTWAIT | Msg::TRUNC);
        let (length, _) = received.map_err(|error| errno(&error))?;
        if length > self.buffer.len() {
            Err(Errno::MSGSIZE)
        } else {
            Ok(length)
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the socket's own, which stays open for as long as `self`, from which the result
        // borrows.
        unsafe { BorrowedFd::borrow_raw(self.kernel.as_raw_fd()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_laid_out_as_the_kernel_reads_it() {
        let mut request = Request::new(0x1234, &[4, 1, 0, 0])
            .with_nest(1, &[(1, &7u32.to_ne_bytes())])
            .with(2, b"x\0");
        let bytes = request.number(9).to_vec();
        let message = Messages(&bytes).next().unwrap();
        assert_eq!((message.kind, message.sequence), (0x1234, 9));
        assert_eq!(bytes.len(), 16 + 4 + 12 + 8);
        assert_eq!(u16_at(&bytes, 6), Some(NLM_F_REQUEST));
        let attributes = Attributes::behind(message.payload, 4);
        assert_eq!(
            u16_at(&bytes, 22),
            Some(1 | NLA_F_NESTED),
            "strict validation wants the flag"
        );
        let nest = attributes.find_kind(1).unwrap();
        assert_eq!(Attributes::new(nest.value).find_kind(1).unwrap().u32(), Some(7));
        assert_eq!(attributes.find_kind(2).unwrap().text(), Some("x"));
        assert_eq!(attributes.find_kind(3), None);
    }

    #[test]
    fn a_number_of_another_length_is_none() {
        let attribute = Attribute {
            kind: 1,
            value: &[1, 0, 0],
        };
        assert_eq!(
            (attribute.u8(), attribute.u16(), attribute.u32(), attribute.u64()),
            (None, None, None, None)
        );
    }

    #[test]
    fn an_error_carries_the_negated_errno() {
        let payload = (-95i32).to_ne_bytes();
        let message = Message {
            kind: NLMSG_ERROR,
            sequence: 1,
            payload: &payload,
        };
        assert_eq!(message.error(), Some(Err(Errno::OPNOTSUPP)));
        assert_eq!(
            Message {
                payload: &[0; 4],
                ..message
            }
            .error(),
            Some(Ok(()))
        );
        assert_eq!(Message { kind: 16, ..message }.error(), None);
    }

    #[test]
    fn the_controller_answers_and_refuses() {
        let mut socket = Socket::open(NlFamily::Generic, &[], ANSWER).unwrap();
        let family = |name: &[u8]| Request::new(0x10, &[3, 1, 0, 0]).with(2, name);
        let payload = socket.ask(&mut family(b"nlctrl\0")).unwrap();
        assert_eq!(
            Attributes::behind(payload, 4).find_kind(1).unwrap().u16(),
            Some(0x10)
        );
        assert_eq!(socket.ask(&mut family(b"no such family\0")), Err(Errno::NOENT));
        assert_eq!(socket.next().map(drop), Err(Errno::AGAIN));
    }

    proptest! {
        #[test]
        fn any_bytes_give_messages_and_attributes_within_them(bytes: Vec<u8>) {
            let total: usize = Messages(&bytes).map(|m| m.payload.len() + MESSAGE_HEADER).sum();
            prop_assert!(total <= bytes.len());
            let total: usize = Attributes::new(&bytes).map(|a| a.value.len() + ATTRIBUTE_HEADER).sum();
            prop_assert!(total <= bytes.len());
            for message in Messages(&bytes) {
                let _ = message.error();
            }
        }

        #[test]
        fn what_was_put_is_found(values in proptest::collection::vec((0u16..0x3fff, proptest::collection::vec(any::<u8>(), 0..40)), 0..20)) {
            let mut bytes = Vec::new();
            for (kind, value) in &values {
                put(&mut bytes, *kind, value);
            }
            let found: Vec<_> = Attributes::new(&bytes).map(|a| (a.kind, a.value.to_vec())).collect();
            prop_assert_eq!(found, values);
        }
    }
}
