//! The part of libibverbs that tells of events.
//!
//! Layouts and signatures are those of infiniband/verbs.h, symbol version `IBVERBS_1.1`, which has not changed since 2008. Two
//! ways lead to its functions: the library is opened when it is first wanted ([`loaded`]), or the program is linked with it by
//! the crate rdma-sys, whose bindings the compiler then holds against ours ([`linked`], by the feature of that name).

#[cfg(feature = "rdma-sys")]
mod linked;
#[cfg(not(feature = "rdma-sys"))]
mod loaded;

#[cfg(feature = "rdma-sys")]
use linked as backend;
#[cfg(not(feature = "rdma-sys"))]
use loaded as backend;

use crate::netlink::errno;
use model::Why;
use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Reason of a node without the library.
pub(super) const ABSENT: &str = "no_libibverbs";

/// `IBV_EVENT_DEVICE_FATAL`.
pub(super) const DEVICE_FATAL: u32 = 8;
/// The events whose element is the number of a port: `IBV_EVENT_PORT_ACTIVE` to `IBV_EVENT_SM_CHANGE`,
/// `IBV_EVENT_CLIENT_REREGISTER`, `IBV_EVENT_GID_CHANGE`.
pub(super) const OF_A_PORT: [u32; 7] = [9, 10, 11, 12, 13, 17, 18];

/// `struct ibv_context_ops`: 32 pointers to functions.
const OPERATIONS: usize = 32;

/// The beginning of `struct ibv_context`. libibverbs allocates it, so what follows does not matter.
#[repr(C)]
pub(super) struct RawContext {
    device: *mut c_void,
    operations: [*mut c_void; OPERATIONS],
    command_descriptor: c_int,
    pub(super) async_descriptor: c_int,
}

/// `struct ibv_async_event`.
#[repr(C)]
pub(super) struct RawEvent {
    element: Element,
    /// A number and no enumeration: a newer library knows more than this program.
    pub(super) kind: u32,
}

#[repr(C)]
union Element {
    object: *mut c_void,
    port: c_int,
}

type GetDeviceList = unsafe extern "C" fn(*mut c_int) -> *mut *mut c_void;
type FreeDeviceList = unsafe extern "C" fn(*mut *mut c_void);
type GetDeviceName = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type OpenDevice = unsafe extern "C" fn(*mut c_void) -> *mut RawContext;
type CloseDevice = unsafe extern "C" fn(*mut RawContext) -> c_int;
type GetAsyncEvent = unsafe extern "C" fn(*mut RawContext, *mut RawEvent) -> c_int;
type AckAsyncEvent = unsafe extern "C" fn(*mut RawEvent);

/// The functions that are used. Once there they are never gone: the drivers that the library loads in turn may not survive
/// being unloaded.
struct Verbs {
    get_device_list: GetDeviceList,
    free_device_list: FreeDeviceList,
    get_device_name: GetDeviceName,
    open_device: OpenDevice,
    close_device: CloseDevice,
    get_async_event: GetAsyncEvent,
    ack_async_event: AckAsyncEvent,
}

static VERBS: OnceLock<Verbs> = OnceLock::new();

impl Verbs {
    fn get() -> Result<&'static Self, Why> {
        if let Some(verbs) = VERBS.get() {
            return Ok(verbs);
        }
        let verbs = backend::verbs()?;
        Ok(VERBS.get_or_init(|| verbs))
    }

    /// Opens the device of this name.
    fn open(&self, name: &str) -> Result<NonNull<RawContext>, io::Error> {
        // SAFETY: the number of devices may be left out; the list ends with a null pointer.
        let list = unsafe { (self.get_device_list)(std::ptr::null_mut()) };
        let list = NonNull::new(list).ok_or_else(io::Error::last_os_error)?;
        let opened = self.find(list, name).map(|device| {
            // SAFETY: the device is of a list that is freed only afterwards.
            let context = unsafe { (self.open_device)(device.as_ptr()) };
            NonNull::new(context).ok_or_else(io::Error::last_os_error)
        });
        // SAFETY: the list came from `ibv_get_device_list` and is not used any more.
        unsafe { (self.free_device_list)(list.as_ptr()) };
        opened.unwrap_or_else(|| Err(Errno::NODEV.into()))
    }

    fn find(&self, list: NonNull<*mut c_void>, name: &str) -> Option<NonNull<c_void>> {
        for at in 0.. {
            // SAFETY: the list ends with a null pointer, at which the search ends too.
            let place = unsafe { list.add(at) };
            // SAFETY: as above.
            let device = NonNull::new(unsafe { place.read() })?;
            // SAFETY: the device is of a list that has not been freed.
            let found = unsafe { (self.get_device_name)(device.as_ptr()) };
            // SAFETY: a device's name ends with a NUL and lives as long as the device.
            if unsafe { CStr::from_ptr(found) }.to_str() == Ok(name) {
                return Some(device);
            }
        }
        None
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// `enum ibv_event_type`.
    pub kind: u32,
    /// The port that it happened at; `None` if it is of the device.
    pub port: Option<u32>,
}

/// An open device.
pub(super) struct Device {
    verbs: &'static Verbs,
    context: NonNull<RawContext>,
}

// SAFETY: libibverbs lets any thread use a context; nothing else has this one.
unsafe impl Send for Device {}

impl Device {
    /// Opens the device of this name, whose device file is `node`, so that it waits for no event.
    ///
    /// # Errors
    /// [`ABSENT`] without the library; otherwise what to do about it.
    pub(super) fn open(name: &str, node: &str) -> Result<Self, Why> {
        let verbs = Verbs::get()?;
        let context = verbs.open(name).map_err(|error| refused(name, node, &error))?;
        let device = Self { verbs, context };
        device
            .never_wait()
            .map_err(|errno| refused(name, node, &errno.into()))?;
        Ok(device)
    }

    fn never_wait(&self) -> Result<(), Errno> {
        // SAFETY: libibverbs allocated the context, which begins as `RawContext` does, and it is not closed yet.
        let descriptor = unsafe { self.context.as_ref() }.async_descriptor;
        // SAFETY: the descriptor is open for as long as the context is.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let flags = fcntl_getfl(descriptor)?;
        fcntl_setfl(descriptor, flags | OFlags::NONBLOCK)
    }

    /// The next event, without waiting.
    ///
    /// # Errors
    /// `EAGAIN` if there is none, `EIO` once the device is gone.
    pub(super) fn next_event(&mut self) -> Result<Event, Errno> {
        let mut event = RawEvent {
            element: Element {
                object: std::ptr::null_mut(),
            },
            kind: 0,
        };
        // SAFETY: context and event are valid for the call.
        let failed = unsafe { (self.verbs.get_async_event)(self.context.as_ptr(), &raw mut event) } != 0;
        if failed {
            return Err(errno(&io::Error::last_os_error()));
        }
        let read = event.read();
        // SAFETY: the event came from `ibv_get_async_event` and is acknowledged once.
        unsafe { (self.verbs.ack_async_event)(&raw mut event) };
        Ok(read)
    }
}

impl RawEvent {
    fn read(&self) -> Event {
        let port = OF_A_PORT.contains(&self.kind).then(|| {
            // SAFETY: of an event of a port the element is its number; and any bits are a number.
            let port = unsafe { self.element.port };
            port.cast_unsigned()
        });
        Event {
            kind: self.kind,
            port,
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the context came from `ibv_open_device` and is closed once.
        let failed = unsafe { (self.verbs.close_device)(self.context.as_ptr()) } != 0;
        if failed {
            tracing::debug!(error = %io::Error::last_os_error(), "closing an RDMA device");
        }
    }
}

fn refused(name: &str, node: &str, error: &io::Error) -> Why {
    // libibverbs looks elsewhere for a file that it may not open, and says that it is not there.
    let node = access(node, Access::READ_OK | Access::WRITE_OK);
    let errno = node.err().unwrap_or_else(|| errno(error));
    let remedy = match errno {
        Errno::ACCESS | Errno::PERM => {
            "; the daemon must be able to read and write /dev/infiniband/uverbs*: mind the files' mode and group, and allow \
             the devices in its unit (DeviceAllow) or container"
        }
        Errno::NOENT | Errno::NODEV | Errno::NXIO => {
            "; /dev/infiniband must be there (mount it in a container), and the library of the NIC's vendor installed"
        }
        _ => "",
    };
    let mut why = crate::why_from_errno(errno, &format!("opening {name} by libibverbs"));
    why.detail.push_str(remedy);
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_cannot_be_opened_the_remedy_is_told() {
        let why = refused("mlx5_0", "/dev/null", &Errno::ACCESS.into());
        assert_eq!(why.reason, "EACCES");
        assert!(why.detail.contains("/dev/infiniband/uverbs"), "{why}");
        let why = refused("mlx5_0", "/dev/no/such/node", &Errno::IO.into());
        assert_eq!(why.reason, "ENOENT");
        assert!(why.detail.contains("mount it in a container"), "{why}");
    }

    #[test]
    fn only_an_event_of_a_port_has_one() {
        let event = |kind, port| RawEvent {
            element: Element { port },
            kind,
        };
        assert_eq!(
            event(10, 2).read(),
            Event {
                kind: 10,
                port: Some(2)
            }
        );
        assert_eq!(event(DEVICE_FATAL, 2).read(), Event { kind: 8, port: None });
        assert_eq!(event(4000, 2).read().port, None);
    }

    /// The layouts of 64-bit Linux, as a C compiler gives them for infiniband/verbs.h of rdma-core 44.
    #[test]
    fn layouts_are_those_of_the_header() {
        use std::mem::{offset_of, size_of};
        assert_eq!(size_of::<RawEvent>(), 16);
        assert_eq!(offset_of!(RawEvent, kind), 8);
        assert_eq!(offset_of!(RawContext, command_descriptor), 264);
        assert_eq!(offset_of!(RawContext, async_descriptor), 268);
    }
}
