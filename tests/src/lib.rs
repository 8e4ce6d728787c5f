//! What the cross-crate tests share.

pub mod vectors;

/// The README of the project: its example runs.
#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
