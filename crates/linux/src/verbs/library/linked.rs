//! libibverbs linked into the program by rdma-sys, whose bindings clang makes from the header of the machine that builds: with a
//! header that has other arguments or results this does not compile. The daemon then does not start without the library.

use super::{RawContext, RawEvent, Verbs};
use model::Why;
use rdma_sys as sys;
use std::ffi::{c_char, c_int, c_void};

/// The functions of the library.
///
/// # Errors
/// None; the signature is that of the other way.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn verbs() -> Result<Verbs, Why> {
    Ok(Verbs {
        get_device_list,
        free_device_list,
        get_device_name,
        open_device,
        close_device,
        get_async_event,
        ack_async_event,
    })
}

unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut c_void {
    // SAFETY: the caller's, as for each of those that follow: the pointers are the same, ours know less of what is behind them.
    unsafe { sys::ibv_get_device_list(count) }.cast()
}

unsafe extern "C" fn free_device_list(list: *mut *mut c_void) {
    // SAFETY: as above.
    unsafe { sys::ibv_free_device_list(list.cast()) }
}

unsafe extern "C" fn get_device_name(device: *mut c_void) -> *const c_char {
    // SAFETY: as above.
    unsafe { sys::ibv_get_device_name(device.cast()) }
}

unsafe extern "C" fn open_device(device: *mut c_void) -> *mut RawContext {
    // SAFETY: as above; the tests hold `RawContext` against the beginning of what comes back.
    unsafe { sys::ibv_open_device(device.cast()) }.cast()
}

unsafe extern "C" fn close_device(context: *mut RawContext) -> c_int {
    // SAFETY: as above.
    unsafe { sys::ibv_close_device(context.cast()) }
}

unsafe extern "C" fn get_async_event(context: *mut RawContext, event: *mut RawEvent) -> c_int {
    // SAFETY: as above. rdma-sys has the kind of an event as an enumeration, which is written here and read by us as the number
    // that it is: a newer library knows more kinds.
    unsafe { sys::ibv_get_async_event(context.cast(), event.cast()) }
}

unsafe extern "C" fn ack_async_event(event: *mut RawEvent) {
    // SAFETY: as above.
    unsafe { sys::ibv_ack_async_event(event.cast()) }
}

#[cfg(test)]
mod tests {
    use super::super::{DEVICE_FATAL, OF_A_PORT, OPERATIONS};
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!(size_of::<RawEvent>(), size_of::<sys::ibv_async_event>());
        assert_eq!(align_of::<RawEvent>(), align_of::<sys::ibv_async_event>());
        assert_eq!(
            offset_of!(RawEvent, kind),
            offset_of!(sys::ibv_async_event, event_type)
        );
        assert_eq!(
            offset_of!(RawContext, operations),
            offset_of!(sys::ibv_context, ops)
        );
        assert_eq!(
            size_of::<[*mut c_void; OPERATIONS]>(),
            size_of::<sys::ibv_context_ops>()
        );
        assert_eq!(
            offset_of!(RawContext, command_descriptor),
            offset_of!(sys::ibv_context, cmd_fd)
        );
        assert_eq!(
            offset_of!(RawContext, async_descriptor),
            offset_of!(sys::ibv_context, async_fd)
        );
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        use sys::ibv_event_type as event;
        assert_eq!(DEVICE_FATAL, event::IBV_EVENT_DEVICE_FATAL as u32);
        let of_a_port = [
            event::IBV_EVENT_PORT_ACTIVE,
            event::IBV_EVENT_PORT_ERR,
            event::IBV_EVENT_LID_CHANGE,
            event::IBV_EVENT_PKEY_CHANGE,
            event::IBV_EVENT_SM_CHANGE,
            event::IBV_EVENT_CLIENT_REREGISTER,
            event::IBV_EVENT_GID_CHANGE,
        ];
        assert_eq!(OF_A_PORT, of_a_port.map(|event| event as u32));
    }
}
