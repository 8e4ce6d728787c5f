use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::InvalidConfig;

/// The permits of one target: a handle to look at them, and to share between layers.
///
/// # Clone
///
/// Clones share the permits.
#[derive(Clone)]
pub struct Permits(Arc<Pool>);

struct Pool {
    limit: usize,
    semaphore: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Permits {
    /// So many requests in flight.
    ///
    /// # Errors
    ///
    /// At least 1, at most `usize::MAX / 8`.
    pub fn new(limit: usize) -> Result<Self, InvalidConfig> {
        check(limit)?;
        Ok(Self::checked(limit))
    }

    pub(super) fn checked(limit: usize) -> Self {
        Self(Arc::new(Pool {
            limit,
            semaphore: Arc::new(Semaphore::new(limit)),
            waiting: AtomicUsize::new(0),
        }))
    }

    /// The most requests in flight.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Requests in flight now.
    pub fn in_flight(&self) -> usize {
        let free = self.0.semaphore.available_permits();
        self.0.limit.saturating_sub(free)
    }

    /// Requests that wait for a permit now.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// A permit, unless all are out. Those who wait already come first.
    pub(super) fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.semaphore).try_acquire_owned().ok()
    }

    pub(super) fn semaphore(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.semaphore)
    }

    pub(super) fn wait(&self) -> Waiting {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self.clone())
    }

    pub(super) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.in_flight() == 0
    }
}

pub(super) fn check(limit: usize) -> Result<(), InvalidConfig> {
    if (1..=Semaphore::MAX_PERMITS).contains(&limit) {
        return Ok(());
    }
    Err(InvalidConfig::new(
        "in_flight",
        "at least 1, at most usize::MAX / 8",
    ))
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits")
            .field("limit", &self.limit())
            .field("in_flight", &self.in_flight())
            .field("waiting", &self.waiting())
            .finish()
    }
}

/// One that waits, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting(Permits);

impl Waiting {
    pub(super) fn permits(&self) -> &Permits {
        &self.0
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
