//! libibverbs opened at run time, so that the daemon starts without it.

use super::{
    ABSENT, AckAsyncEvent, CloseDevice, FreeDeviceList, GetAsyncEvent, GetDeviceList, GetDeviceName,
    OpenDevice, Verbs,
};
use libloading::Library;
use model::Why;
use std::mem;

const NAME: &str = "libibverbs.so.1";

/// The functions of the library, which stays loaded.
///
/// # Errors
/// [`ABSENT`]: what to install.
pub(super) fn verbs() -> Result<Verbs, Why> {
    load(NAME).map_err(|error| absent(&error))
}

fn load(name: &str) -> Result<Verbs, libloading::Error> {
    // SAFETY: what runs when the library is loaded is libibverbs' own, which any thread may load at any time.
    let library = unsafe { Library::new(name) }?;
    let verbs = Verbs {
        // SAFETY: the type is the function's in infiniband/verbs.h, as it is for each of those that follow.
        get_device_list: *unsafe { library.get::<GetDeviceList>("ibv_get_device_list") }?,
        // SAFETY: as above.
        free_device_list: *unsafe { library.get::<FreeDeviceList>("ibv_free_device_list") }?,
        // SAFETY: as above.
        get_device_name: *unsafe { library.get::<GetDeviceName>("ibv_get_device_name") }?,
        // SAFETY: as above.
        open_device: *unsafe { library.get::<OpenDevice>("ibv_open_device") }?,
        // SAFETY: as above.
        close_device: *unsafe { library.get::<CloseDevice>("ibv_close_device") }?,
        // SAFETY: as above.
        get_async_event: *unsafe { library.get::<GetAsyncEvent>("ibv_get_async_event") }?,
        // SAFETY: as above.
        ack_async_event: *unsafe { library.get::<AckAsyncEvent>("ibv_ack_async_event") }?,
    };
    mem::forget(library);
    Ok(verbs)
}

fn absent(error: &libloading::Error) -> Why {
    // libloading keeps the linker's own words apart.
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let detail = format!(
        "{NAME} cannot be loaded: {cause}; install libibverbs1 (Debian, Ubuntu) or libibverbs (RHEL), and the \
         library of the NIC's vendor"
    );
    Why::new(ABSENT, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_says_what_to_install() {
        let error = load("libibverbs.so.0").err().expect("no such version");
        let why = absent(&error);
        assert_eq!(why.reason, "no_libibverbs");
        assert!(
            why.detail.contains("libibverbs.so.0") && why.detail.contains("install libibverbs1"),
            "{why}"
        );
    }
}
