//! The primitives of the concurrent cell, so that a model checker can take their place under
//! `--cfg spillway_loom`.

#[cfg(not(spillway_loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering},
};

#[cfg(spillway_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering},
};

/// What is written by every call is there so often, so that threads need not share a cache line.
#[cfg(not(spillway_loom))]
pub(crate) const LANES: usize = 4;

/// One, so that the model meets itself.
#[cfg(spillway_loom)]
pub(crate) const LANES: usize = 1;

/// The lane of this thread.
#[cfg(not(spillway_loom))]
pub(crate) fn lane() -> usize {
    use std::{cell::Cell, sync::atomic::AtomicUsize};

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: Cell<Option<usize>> = const { Cell::new(None) };
    }
    LANE.get().unwrap_or_else(|| {
        let lane = NEXT.fetch_add(1, Ordering::Relaxed) % LANES;
        LANE.set(Some(lane));
        lane
    })
}

#[cfg(spillway_loom)]
pub(crate) fn lane() -> usize {
    0
}
