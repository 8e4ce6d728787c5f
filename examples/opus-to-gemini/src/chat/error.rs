//! A chat without an answer.

use std::time::Duration;

use tower_failover::AllRefused;
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
        /// How long it asked to wait, if it did.
        asked_to_wait: Option<Duration>,
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
    /// A stream broke after a part of the answer was given out.
    #[error("the answer of {target} broke off: {why}")]
    Broken {
        /// Which target.
        target: String,
        /// What the stream said of it.
        why: String,
    },
    /// Every target refused, and nothing was sent.
    #[error("no answer: every target refused{}", retry_in(.0))]
    AllRefused(AllRefused),
    /// There was no answer at all.
    #[error("no answer")]
    NoAnswer(#[source] BoxError),
}

impl ChatError {
    /// Every target refused, and nothing was sent.
    pub fn all_refused(&self) -> Option<&AllRefused> {
        match self {
            Self::AllRefused(refused) => Some(refused),
            _ => None,
        }
    }

    /// The vendor's status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Vendor { status, .. } | Self::NoText { status, .. } => Some(*status),
            Self::Broken { .. } | Self::AllRefused(_) | Self::NoAnswer(_) => None,
        }
    }
}

/// In tenths of a second, not less than it is.
fn retry_in(refused: &AllRefused) -> String {
    let Some(wait) = refused.retry_in() else {
        return String::new();
    };
    let tenths = wait.as_millis().div_ceil(100);
    format!(", retry in {}.{} s", tenths / 10, tenths % 10)
}
