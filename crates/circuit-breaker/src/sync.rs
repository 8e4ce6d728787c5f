//! The primitives of the concurrent cell, so that a model checker can take their place under
//! `--cfg spillway_loom`.

#[cfg(not(spillway_loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

#[cfg(spillway_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicI64, AtomicU64, Ordering},
};
