//! The layer as its users see it, under paused time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod adapters;
mod body_end;
mod classes;
mod control;
mod drops;
mod events;
mod extremes;
mod half_open;
mod handle;
mod keyed;
mod probing;
mod ramp;
mod readiness;
mod rules;
mod support;
mod targets;
