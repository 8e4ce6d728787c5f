//! The gateway over real loopback HTTP, with the fake vendors behind it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod aborts;
mod answers;
mod callers;
mod endpoints;
mod errors;
mod hostile;
mod hostile_sizes;
mod limits;
mod logs;
mod reload;
mod shutdown;
mod status;
mod stub;
mod support;
