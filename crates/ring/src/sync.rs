//! The atomics: the language's, or those of loom while the models are checked.

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
};

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
};
