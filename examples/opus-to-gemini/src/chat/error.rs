//! A chat without an answer.

use tower_spillway_core::BoxError;

/// A chat without an answer. No message holds a key or a body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// A vendor answered with an error: of several the one that the failover chose to show.
    #[error("{target} answered {status}: {message}")]
    Vendor {
        /// Which target.
        target: String,
        /// The status code.
        status: u16,
        /// The vendor's message, at most 500 characters.
        message: String,
    },
    /// A vendor's answer says nothing.
    #[error("{target} answered {status}, but with no text: {why}")]
    NoText {
        /// Which target.
        target: String,
        /// The status code.
        status: u16,
        /// What is wrong with it.
        why: String,
    },
    /// There was no answer at all.
    #[error("no answer")]
    NoAnswer(#[source] BoxError),
}
