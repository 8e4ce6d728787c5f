//! Counts what is open.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// One more, until it is dropped.
#[derive(Debug)]
pub struct Open(Arc<AtomicUsize>);

impl Open {
    /// Counts itself.
    pub fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
