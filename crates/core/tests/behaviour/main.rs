//! What a user of the core can notice, under paused time.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on must fail"
)]

mod support;

mod attempt_timeout;
mod auto_traits;
mod call;
mod classify;
mod clock_reads;
mod contract;
mod drops;
mod gates;
mod grpc_status;
mod idempotency_key;
mod in_flight;
mod legs;
mod outcomes;
mod properties;
mod refused;
mod resend;
mod sends;
mod spawn;
mod verdicts;
