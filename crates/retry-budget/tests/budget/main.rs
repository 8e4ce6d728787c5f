//! What a user of `RetryBudgetLayer` can notice, under paused time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod adapters;
mod contract;
mod others;
mod per_call;
mod ratio;
mod support;
mod targets;
