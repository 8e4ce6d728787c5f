//! What the cross-crate tests share.

mod open;
pub mod vectors;

pub use open::Open;

/// The README of the project: its example runs.
#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
