//! What a caller and the layers outside of `StreamGuardLayer` get.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod body;
mod given;
mod hold;
mod pass;
mod time;
