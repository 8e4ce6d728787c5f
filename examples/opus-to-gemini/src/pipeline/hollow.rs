//! Successes without an answer in them.

use serde::{Deserialize, de::IgnoredAny};
use tower_spillway_core::{Class, Reading};

#[derive(Deserialize)]
struct Answer {
    choices: Vec<IgnoredAny>,
}

/// Whether a body is an answer to a chat request: an object with something in its `choices`.
pub(crate) fn is_answer(body: &[u8]) -> bool {
    // serde takes a list of its fields for the struct, too.
    body.trim_ascii_start().starts_with(b"{")
        && serde_json::from_slice(body).is_ok_and(|answer: Answer| !answer.choices.is_empty())
}

/// Says of a success that another attempt is to give it, if no caller could read an answer in it: a
/// login page of a network, an answer cut off where nothing tells its length, no body at all,
/// something compressed that nobody asked to be.
///
/// What a vendor's table says of it goes before this.
pub(super) fn judge(body: &[u8]) -> Option<Reading> {
    (!is_answer(body)).then(|| Reading::new(Class::Transient).with_reason("no_answer"))
}
