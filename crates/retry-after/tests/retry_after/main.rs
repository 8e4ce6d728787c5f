//! What a user of `RetryAfterLayer` can notice, under paused time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod adapters;
mod contract;
mod hold;
mod support;
mod waits;
