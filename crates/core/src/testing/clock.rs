//! Counted reads of tokio's clock.

use std::cell::Cell;

thread_local! {
    static READS: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn count_read() {
    READS.set(READS.get().wrapping_add(1));
}

/// How often these crates read tokio's clock on this thread while `f` ran.
///
/// To count the reads of a future, poll it inside `f`, on a runtime of one thread.
pub fn reads_during<T>(f: impl FnOnce() -> T) -> (T, u64) {
    let before = READS.get();
    let out = f();
    (out, READS.get().wrapping_sub(before))
}
