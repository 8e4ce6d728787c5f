//! What is in a plain success, read once; some have no answer in them.

use tower_spillway_core::{Class, Reading};
use tower_spillway_llm::{Fields, Usage};

/// An answer to a chat request that a caller can read. Among the extensions of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainAnswer {
    /// What it used, if it tells.
    pub(crate) usage: Option<Usage>,
}

impl PlainAnswer {
    /// An object with something in its `choices`.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let answer = Fields::read(body).ok()?;
        answer.has_some("choices").then(|| Self {
            usage: Usage::of_fields(&answer),
        })
    }
}

/// What is said of a success that another attempt is to give, since no caller could read an answer
/// in it: a login page of a network, an answer cut off where nothing tells its length, no body at
/// all, something compressed that nobody asked to be.
///
/// What a vendor's table says of it goes before this.
pub(super) fn no_answer() -> Reading {
    Reading::new(Class::Transient).with_reason("no_answer")
}
