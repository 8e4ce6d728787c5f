//! Unix time, for people to read.

use std::time::{Duration, UNIX_EPOCH};

use tower_spillway_core::clock::Wall;

/// Unix time in milliseconds.
pub(super) fn now_ms() -> u64 {
    let since = Wall::default().now().duration_since(UNIX_EPOCH);
    millis(since.unwrap_or_default())
}

/// Whole milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
