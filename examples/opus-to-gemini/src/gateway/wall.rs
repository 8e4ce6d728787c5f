//! Unix time, for people to read.

use std::time::UNIX_EPOCH;

use tower_spillway_core::clock::{Wall, millis};

/// Unix time in milliseconds.
pub(super) fn now_ms() -> u64 {
    let since = Wall::default().now().duration_since(UNIX_EPOCH);
    millis(since.unwrap_or_default())
}
