//! The primitives of the concurrent cell, so that a model checker can take their place under
//! `--cfg spillway_loom`:
//!
//! ```sh
//! RUSTFLAGS="--cfg spillway_loom" cargo test -p tower-retry-after --lib model
//! ```

#[cfg(not(spillway_loom))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(spillway_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
