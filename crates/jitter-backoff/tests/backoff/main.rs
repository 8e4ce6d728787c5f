//! What a user of `JitterBackoffLayer` can notice, under paused time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adapters;
mod contract;
mod support;
mod waits;
