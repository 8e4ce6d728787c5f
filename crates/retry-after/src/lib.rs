//! Waits as long as the server asked, then sends again.
//!
//! # Example
//!
//! ```
//! use std::{io, time::Duration};
//! use http::{Request, Response};
//! use tokio::time::Instant;
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_retry_after::RetryAfterLayer;
//! # use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! # let sends = Arc::new(AtomicU32::new(0));
//! let client = ServiceBuilder::new()
//!     .layer(RetryAfterLayer::new().longest_wait(Duration::from_secs(30)))
//!     // "429, come back in 2 s", then an answer.
//!     .service_fn(move |_: Request<String>| {
//!         let first = sends.fetch_add(1, Ordering::Relaxed) == 0;
//!         async move {
//!             let response = Response::builder();
//!             let response = match first {
//!                 true => response.status(429).header("retry-after", "2"),
//!                 false => response.status(200),
//!             };
//!             Ok::<_, io::Error>(response.body(String::new()).unwrap())
//!         }
//!     });
//!
//! let started = Instant::now();
//! let response = client.oneshot(Request::new(String::new())).await?;
//! assert_eq!(response.status(), 200);
//! // Never early; jitter adds at most half.
//! let waited = started.elapsed();
//! assert!(waited >= Duration::from_secs(2) && waited <= Duration::from_secs(3));
//! # Ok(())
//! # }
//! ```
//!
//! # What is sent again
//!
//! Outcomes that may pass, Throttled and Transient (see [`Class`](tower_spillway_core::Class)),
//! that come with a hint: over `http` a `Retry-After` in seconds or as a date (RFC 9110 10.2.3), or
//! `retry-after-ms` (see [`hint`](tower_spillway_core::hint)). An outcome without one is nobody's
//! business here: it goes to the caller, or to another retrying layer of the stack. A request that
//! the server may have processed is sent again only if that is safe.
//!
//! # How long it waits
//!
//! At least what was asked. By default up to half of it more, at most 5 s more, since callers held
//! by one answer would otherwise return together. A hint of zero, or a date that is past, asks for
//! no minimum: alone this layer then sends again after 1 ms, in a stack the delay of a backoff
//! layer applies.
//!
//! # When it does not wait
//!
//! A hint above [`RetryAfterLayer::longest_wait`] is never cut short: the server would be asked too
//! early. The answer goes to the caller at once, unchanged, hint included. The same where the wait
//! would pass the call's deadline or [`RetryAfterLayer::max_total_wait`], with no send left (3 by
//! default, the first included), and with a budget that denies.
//!
//! # Everybody waits
//!
//! By itself a hint holds the call that heard it. With [`RetryAfterLayer::hold`] it holds all calls
//! to the target: see [`hold`].
//!
//! # Other layers
//!
//! Two retrying layers in one stack do not multiply: the outer one drives, the inner one advises,
//! and of the limits that were set the strictest hold. See [`tower_spillway_core::drive`].
//!
//! # Metrics
//!
//! With the feature `metrics`, see [`metrics`].
//!
//! # Clone
//!
//! Clones of the service share the settings. All state of a call is in the call.

pub mod hold;
pub mod metrics;

mod layer;
mod policy;

pub use self::{
    layer::{Holding, NoHold, RetryAfterLayer},
    policy::RetryAfter,
};

/// The examples of the README compile.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
