//! The layer as its users see it, under paused time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod adapters;
mod classes;
mod drops;
mod half_open;
mod handle;
mod readiness;
mod support;
mod targets;
