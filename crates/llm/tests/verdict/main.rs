//! What a layer outside of `VendorVerdictLayer` sees.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod body;
mod give_back;
mod stall;
mod verdicts;
