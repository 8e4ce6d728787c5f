//! What a server said about when to come back.
//!
//! [`from_headers`] reads it, [`wait`] makes a wait of it. Reading is pure and total: it gives what
//! the server literally asked, rounded up to whole milliseconds and unclamped, for any bytes.
//!
//! Precedence: `retry-after-ms`, then `x-ms-retry-after-ms`, then `Retry-After` (RFC 9110 10.2.3).

mod parse;
mod wait;

use std::time::Duration;

pub use parse::from_headers;
pub use wait::{Jitter, wait};

/// What a server said about when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// After this wait. Zero asks for no minimum.
    After {
        /// What was literally asked, in whole milliseconds, unclamped.
        wait: Duration,
        /// Which signal said so.
        source: Source,
    },
    /// Never the same request to this target again.
    Never,
}

impl Hint {
    /// The wait asked for; `None` for never.
    pub fn after(self) -> Option<Duration> {
        match self {
            Self::After { wait, .. } => Some(wait),
            Self::Never => None,
        }
    }
}

/// Which signal a [`Hint`] came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// `retry-after-ms` or `x-ms-retry-after-ms`.
    RetryAfterMs,
    /// `Retry-After` in seconds.
    RetryAfterSeconds,
    /// `Retry-After` as an HTTP date.
    RetryAfterDate,
    /// A reader of the user's own.
    Custom(&'static str),
}

impl Source {
    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RetryAfterMs => "retry_after_ms",
            Self::RetryAfterSeconds => "retry_after_seconds",
            Self::RetryAfterDate => "retry_after_date",
            Self::Custom(name) => name,
        }
    }
}
