//! What the tests of all cells share.

use std::{sync::Barrier, thread};

/// The sum of what `threads` get that start together.
pub(crate) fn at_once(threads: usize, get: impl Fn() -> u64 + Sync) -> u64 {
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    get()
                })
            })
            .collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}
