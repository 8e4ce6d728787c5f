//! What a caller and the layers outside of `StreamGuardLayer` get.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod body;
mod given;
mod hold;
mod pass;
mod time;
