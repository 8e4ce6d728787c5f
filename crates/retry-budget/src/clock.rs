//! From tokio's clock to the numbers of the cells.

use std::time::Duration;

use tokio::time::Instant;
use tower_spillway_core::clock;

/// Counts nanoseconds since it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(clock::now())
    }

    /// 0 before it was made; at most `u64::MAX` (584 years).
    pub(crate) fn at(self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.0))
    }
}

/// Whole nanoseconds, at most `u64::MAX` (584 years).
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
