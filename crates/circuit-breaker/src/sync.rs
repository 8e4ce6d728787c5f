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

#[cfg(not(spillway_loom))]
thread_local! {
    /// The lane of this thread; [`LANES`] where it has none yet.
    static LANE: std::cell::Cell<usize> = const { std::cell::Cell::new(LANES) };
}

/// The lane of this thread.
#[cfg(not(spillway_loom))]
#[inline]
pub(crate) fn lane() -> usize {
    let lane = LANE.get();
    if lane < LANES {
        lane
    } else {
        first_lane() % LANES
    }
}

#[cfg(not(spillway_loom))]
#[cold]
fn first_lane() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let lane = NEXT.fetch_add(1, Ordering::Relaxed) % LANES;
    LANE.set(lane);
    lane
}

#[cfg(spillway_loom)]
pub(crate) fn lane() -> usize {
    0
}
