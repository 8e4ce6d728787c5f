//! What a server said about when to come back.
//!
//! [`read`] reads the head of a response that is no success, [`on_success`] that of one that is,
//! [`Reader`] with the user's own signals first; [`wait`](fn@wait) makes a wait of a hint. Reading
//! is pure and total: it gives what the server literally asked, rounded up to whole milliseconds
//! and unclamped, for any bytes.
//!
//! Of what is sent the first of these counts ([`Rank`]):
//!
//! | | signal | read |
//! |---|---|---|
//! | | `x-should-retry: false`, a forbidding gRPC pushback | never, whatever else is said |
//! | 0 | the user's own [`Reader`]; `grpc-retry-pushback-ms` (gRPC A6) | milliseconds |
//! | 1 | `retry-after-ms`, then `x-ms-retry-after-ms` | milliseconds above zero |
//! | 2 | `Retry-After` (RFC 9110 10.2.3) | seconds, with decimals or not; a date in its three forms |
//! | 3 | `RateLimit` (IETF draft) | the largest `t` of what is used up (`r=0`) |
//! | 4, 5 | the body | by a layer that reads bodies, with [`Signals::or`] |
//! | 6 | resets of buckets that are used up | seconds, seconds or milliseconds since 1970, Go durations, RFC 3339, HTTP dates |
//! | 7 | `RateLimit-Policy` | `w` of what is used up and tells no `t` |
//!
//! Resets (6) tell the time to a full refill; they count with a 429 alone, and with a 403 where a
//! bucket is used up. Dates are measured against the response's own `Date`, else against the wall
//! clock; one in the past asks for nothing. A wait of zero asks for no minimum.
//!
//! # Example
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use http::{HeaderMap, StatusCode};
//! use tower_spillway_core::hint::{self, Source};
//!
//! let mut headers = HeaderMap::new();
//! headers.insert("x-ratelimit-remaining-requests", "499".parse().unwrap());
//! headers.insert("x-ratelimit-reset-requests", "120ms".parse().unwrap());
//! headers.insert("x-ratelimit-remaining-tokens", "0".parse().unwrap());
//! headers.insert("x-ratelimit-reset-tokens", "6m0s".parse().unwrap());
//!
//! let now = || SystemTime::UNIX_EPOCH;
//! let hint = hint::read(StatusCode::TOO_MANY_REQUESTS, &headers, now).hint().unwrap();
//! assert_eq!(hint.after(), Some(Duration::from_secs(360)));
//! assert_eq!(hint.source(), Some(Source::Reset("x-ratelimit-reset-tokens")));
//! ```

mod date;
mod grpc;
mod moment;
mod number;
mod rate_limit;
mod reader;
mod reset;
mod retry_after;
mod should_retry;
mod signals;
mod source;
mod span;
mod structured;
mod wait;

pub use self::{
    grpc::{grpc_pushback, grpc_status, is_grpc},
    reader::Reader,
    signals::{Signals, on_success, read},
    source::{Hint, Rank, Source},
    wait::{Jitter, wait},
};
