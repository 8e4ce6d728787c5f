//! The primitives of the cells, so that a model checker can take their place:
//!
//! ```text
//! RUSTFLAGS="--cfg spillway_loom" cargo test -p tower-retry-budget --lib model
//! ```
//!
//! Not `--cfg loom`: with that tokio does not build.

#[cfg(not(spillway_loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

#[cfg(spillway_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
