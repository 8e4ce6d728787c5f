//! A hint, where it came from, and how much that counts.

use std::time::Duration;

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

    /// Which signal asked for a wait; `None` for never.
    pub fn source(self) -> Option<Source> {
        match self {
            Self::After { source, .. } => Some(source),
            Self::Never => None,
        }
    }
}

/// Which signal a [`Hint`] came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// A reader of the user's own.
    Custom(&'static str),
    /// `grpc-retry-pushback-ms`.
    GrpcPushback,
    /// `retry-after-ms`.
    RetryAfterMs,
    /// `x-ms-retry-after-ms`.
    XMsRetryAfterMs,
    /// `Retry-After` in seconds.
    RetryAfterSeconds,
    /// `Retry-After` as an HTTP date.
    RetryAfterDate,
    /// `t` of `RateLimit`.
    RateLimit,
    /// A field of the response's body that says when to come back, or its message.
    Body(&'static str),
    /// A header of another server, or a rounder figure, that the body quotes.
    BodyAside(&'static str),
    /// The reset of a bucket that is used up: the name of the header field, or where the bucket is
    /// not a known one the vendor's spelling with a `*` for it.
    Reset(&'static str),
    /// `w` of `RateLimit-Policy`, where `RateLimit` tells no `t`.
    RateLimitWindow,
}

/// How much a signal counts: of two, the one that is less is taken. A layer that reads bodies puts
/// its own hints between those of the headers by it, with [`Signals::or`](super::Signals::or).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rank {
    /// The user's own reader.
    Custom,
    /// gRPC's pushback.
    Pushback,
    /// Milliseconds.
    Millis,
    /// `Retry-After`.
    RetryAfter,
    /// `RateLimit`.
    RateLimit,
    /// What the body says itself.
    Body,
    /// What the body quotes.
    BodyAside,
    /// The reset of a bucket: the time until it is full, which is more than until the next request.
    Reset,
    /// The window of a policy: the most that it can be.
    Window,
}

impl Source {
    /// How much it counts.
    pub fn rank(self) -> Rank {
        match self {
            Self::Custom(_) => Rank::Custom,
            Self::GrpcPushback => Rank::Pushback,
            Self::RetryAfterMs | Self::XMsRetryAfterMs => Rank::Millis,
            Self::RetryAfterSeconds | Self::RetryAfterDate => Rank::RetryAfter,
            Self::RateLimit => Rank::RateLimit,
            Self::Body(_) => Rank::Body,
            Self::BodyAside(_) => Rank::BodyAside,
            Self::Reset(_) => Rank::Reset,
            Self::RateLimitWindow => Rank::Window,
        }
    }

    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Custom(name) => name,
            Self::GrpcPushback => "grpc_pushback",
            Self::RetryAfterMs => "retry_after_ms",
            Self::XMsRetryAfterMs => "x_ms_retry_after_ms",
            Self::RetryAfterSeconds => "retry_after_seconds",
            Self::RetryAfterDate => "retry_after_date",
            Self::RateLimit => "rate_limit",
            Self::Body(_) => "body",
            Self::BodyAside(_) => "body_aside",
            Self::Reset(_) => "rate_limit_reset",
            Self::RateLimitWindow => "rate_limit_window",
        }
    }

    /// The field that it stood in: of the header by its name, of the body as its reader calls it.
    pub fn field(self) -> Option<&'static str> {
        match self {
            Self::Custom(_) => None,
            Self::GrpcPushback => Some("grpc-retry-pushback-ms"),
            Self::RetryAfterMs => Some("retry-after-ms"),
            Self::XMsRetryAfterMs => Some("x-ms-retry-after-ms"),
            Self::RetryAfterSeconds | Self::RetryAfterDate => Some("retry-after"),
            Self::RateLimit => Some("ratelimit"),
            Self::Body(field) | Self::BodyAside(field) | Self::Reset(field) => Some(field),
            Self::RateLimitWindow => Some("ratelimit-policy"),
        }
    }
}
