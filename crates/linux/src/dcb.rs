//! PFC, ETS, the APP table and DCBX of a netdev by DCB netlink: `include/uapi/linux/dcbnl.h`, net/dcb/dcbnl.c. Under rtnl.

mod answer;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(test)]
mod tests;

use crate::ethtool::Interface;
use crate::netlink::{ANSWER, Attributes, Request, Socket};
use crate::{Context, why_from_errno};
pub(crate) use answer::IEEE;
use answer::{Dcb, Shape};
use model::{Opened, Port, PortId, Read, Schema, Source, SourceKind, Why};
use neli::consts::socket::NlFamily;
use rustix::io::Errno;
use std::sync::Arc;

/// `RTNLGRP_DCB`.
pub(crate) const GROUP: u32 = 23;
/// `RTM_GETDCB`, `RTM_SETDCB`: the types of requests, answers and notices.
const RTM_GETDCB: u16 = 78;
const RTM_SETDCB: u16 = 79;
/// `struct dcbmsg`: family, command, pad.
pub(crate) const HEADER: usize = 4;
/// `DCB_CMD_IEEE_GET`, `DCB_CMD_GDCBX`.
const IEEE_GET: u8 = 21;
const GET_DCBX: u8 = 22;
/// `DCB_ATTR_IFNAME`, `DCB_ATTR_DCBX`.
const IFNAME: u16 = 1;
const DCBX: u16 = 14;
/// `DCB_CAP_DCBX_HOST`, `DCB_CAP_DCBX_LLD_MANAGED`.
const HOST: u8 = 1;
const LLD_MANAGED: u8 = 2;

/// The question for all of IEEE DCB of an interface.
pub(crate) fn question(netdev: &str) -> Request {
    request(IEEE_GET, netdev)
}

fn request(command: u8, netdev: &str) -> Request {
    Request::new(RTM_GETDCB, &[0, command, 0, 0]).with(IFNAME, format!("{netdev}\0").as_bytes())
}

/// True for a notice of DCB.
pub(crate) fn is_notice(kind: u16) -> bool {
    kind == RTM_GETDCB || kind == RTM_SETDCB
}

/// The name of the interface that an answer or notice is about.
pub(crate) fn interface(payload: &[u8]) -> Option<&str> {
    Attributes::behind(payload, HEADER).find_kind(IFNAME)?.text()
}

/// The question who configures DCB, which drivers answer from memory.
pub(crate) struct Owner {
    socket: Socket,
    request: Request,
}

impl Owner {
    /// Of this interface; `None` if its driver has no DCB, so that nobody configures it.
    ///
    /// # Errors
    /// What the kernel answered.
    pub(crate) fn of(netdev: &str) -> Result<Option<Self>, Errno> {
        let socket = Socket::open(NlFamily::Route, &[], ANSWER)?;
        let mut owner = Self {
            socket,
            request: request(GET_DCBX, netdev),
        };
        match owner.dcbx() {
            Err(Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(errno),
            Ok(_) => Ok(Some(owner)),
        }
    }

    /// True while it is known to be the host, and no agent in the NIC.
    pub(crate) fn is_host(&mut self) -> bool {
        self.dcbx()
            .is_ok_and(|dcbx| dcbx & HOST != 0 && dcbx & LLD_MANAGED == 0)
    }

    fn dcbx(&mut self) -> Result<u8, Errno> {
        let answer = Attributes::behind(self.socket.ask(&mut self.request)?, HEADER);
        answer
            .find_kind(DCBX)
            .and_then(|dcbx| dcbx.u8())
            .ok_or(Errno::NODATA)
    }
}

/// Opens the source of a port.
pub(crate) fn open(ctx: &Context, port: &Port) -> Opened {
    if !ctx.live {
        return Opened::NotApplicable(Why::new(
            "not_on_this_tree",
            "DCB is asked of the running kernel only",
        ));
    }
    let (Some(netdev), Some(ifindex)) = (&port.netdev, port.ifindex) else {
        return Opened::NotApplicable(Why::new("no_netdev", format!("{} has no netdev", port.device)));
    };
    match Kernel::new(netdev, ifindex).and_then(|kernel| DcbSource::open(kernel, port)) {
        Ok(Some(source)) => Opened::Active(Box::new(source)),
        Ok(None) => Opened::NotApplicable(Why::new(
            "EOPNOTSUPP",
            format!("the driver of {netdev} tells nothing of IEEE DCB"),
        )),
        Err(errno @ Errno::OPNOTSUPP) => {
            Opened::NotApplicable(why_from_errno(errno, &format!("DCB netlink about {netdev}")))
        }
        Err(errno) => Opened::Failed(why_from_errno(errno, &format!("DCB netlink about {netdev}"))),
    }
}

/// Where the configuration comes from.
trait Ask: Send {
    fn dcb(&mut self) -> Result<Dcb, Errno>;
}

/// The running kernel.
struct Kernel {
    socket: Socket,
    request: Request,
    interface: Interface,
    ifindex: u32,
}

impl Kernel {
    fn new(netdev: &str, ifindex: u32) -> Result<Self, Errno> {
        Ok(Self {
            socket: Socket::open(NlFamily::Route, &[], ANSWER)?,
            request: request(IEEE_GET, netdev),
            interface: Interface::new(netdev)?,
            ifindex,
        })
    }
}

impl Ask for Kernel {
    fn dcb(&mut self) -> Result<Dcb, Errno> {
        let dcb = Dcb::parse(self.socket.ask(&mut self.request)?);
        // DCB netlink knows interfaces by name, and the name may be another's by now.
        if self.interface.ifindex()? == self.ifindex {
            Ok(dcb)
        } else {
            Err(Errno::NODEV)
        }
    }
}

struct DcbSource<A> {
    ask: A,
    port: PortId,
    netdev: String,
    driver: String,
    shape: Shape,
    schema: Arc<Schema>,
}

impl<A: Ask> DcbSource<A> {
    /// `None` if the driver tells nothing.
    fn open(mut ask: A, port: &Port) -> Result<Option<Self>, Errno> {
        let shape = ask.dcb()?.shape();
        let schema = schema(&port.id, &port.driver, shape);
        let (id, driver) = (port.id.clone(), port.driver.clone());
        let netdev = port.netdev.clone().unwrap_or_default();
        let source = Self {
            ask,
            port: id,
            netdev,
            driver,
            shape,
            schema,
        };
        Ok((!source.schema.columns.is_empty()).then_some(source))
    }
}

fn schema(port: &PortId, driver: &str, shape: Shape) -> Arc<Schema> {
    Arc::new(Schema::new(
        port.clone(),
        driver,
        SourceKind::Dcb,
        shape.columns(),
    ))
}

impl<A: Ask> Source for DcbSource<A> {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        let dcb = match self.ask.dcb() {
            Ok(dcb) => dcb,
            Err(errno) => {
                return Read::Missing(why_from_errno(
                    errno,
                    &format!("DCB netlink about {}", self.netdev),
                ));
            }
        };
        if dcb.shape() != self.shape {
            self.shape = dcb.shape();
            self.schema = schema(&self.port, &self.driver, self.shape);
            return Read::SchemaChanged;
        }
        dcb.fill(row);
        Read::Row
    }
}
