//! What reached a fake vendor.

use std::{fmt, sync::Arc, time::Duration};

/// One request that reached a fake vendor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// When it arrived, from the start of the server.
    pub at: Duration,
    /// From its arrival to the end of what was done; `None` while it is being done.
    pub took: Option<Duration>,
    /// Whose key it brought.
    pub key: KeyLabel,
    /// The model that it asked for.
    pub model: Option<String>,
    /// Its `x-attempt-id`, if it brought one.
    pub id: Option<String>,
    /// Its idempotency key, if it brought one.
    pub idempotency_key: Option<String>,
    /// Tokens of its prompt: what a vendor has worked on, even if nobody waited for the answer.
    pub input_tokens: u64,
    /// Tokens of the answer, if a whole one was given.
    pub output_tokens: u64,
    /// What became of it.
    pub did: Did,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Did {
    /// Nothing yet.
    Waiting,
    /// A whole answer with this status was handed to the connection.
    Answered(u16),
    /// A head with status 200 and a part of the body.
    Cut,
    /// The same, and the connection was kept open until the caller went away.
    Stalled,
    /// The connection was closed without an answer.
    Reset,
    /// The caller went away before there was an answer, or the server was stopped.
    Left,
}

/// Whose key a request brought: never the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyLabel {
    /// None at all.
    None,
    /// One that the server does not know.
    Unknown,
    /// One that the server accepts, by its label.
    Own(Arc<str>),
    /// One that the server knows as somebody else's, by its label.
    Foreign(Arc<str>),
}

impl KeyLabel {
    pub(super) fn accepted(&self) -> bool {
        matches!(self, Self::Own(_))
    }
}

impl fmt::Display for KeyLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Unknown => "unknown",
            Self::Own(label) | Self::Foreign(label) => label,
        })
    }
}
