//! Retries with jittered backoff: waits a while that grows, spread so that callers do not return
//! together, then sends again.
//!
//! # Example
//!
//! ```
//! use std::{io, time::Duration};
//! use http::{Request, Response};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_jitter_backoff::JitterBackoffLayer;
//! # use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! # let sends = Arc::new(AtomicU32::new(0));
//! # let counter = sends.clone();
//! let client = ServiceBuilder::new()
//!     .layer(
//!         JitterBackoffLayer::exponential(Duration::from_millis(100), Duration::from_secs(20))?
//!             .max_attempts(4)?,
//!     )
//!     // Fails twice, then answers.
//!     .service_fn(move |_: Request<String>| {
//!         let n = counter.fetch_add(1, Ordering::Relaxed);
//!         async move {
//!             let status = if n < 2 { 503 } else { 200 };
//!             Ok::<_, io::Error>(Response::builder().status(status).body(String::new()).unwrap())
//!         }
//!     });
//!
//! let response = client.oneshot(Request::new(String::new())).await?;
//! assert_eq!(response.status(), 200);
//! assert_eq!(sends.load(Ordering::Relaxed), 3);
//! # Ok(())
//! # }
//! ```
//!
//! # What is sent again
//!
//! Outcomes that may pass: Throttled (429, 503 with a hint) and Transient (other 5xx, timeouts,
//! resets, unknown errors), see [`Class`](tower_spillway_core::Class); [`JitterBackoffLayer::retry_on`]
//! narrows it. A request that the server may have processed is sent again only if that is safe: an
//! idempotent method, or what the adapter ([`Http`](tower_spillway_core::Http)) allows.
//!
//! # How long it waits
//!
//! A [`Schedule`] gives a ceiling for each step, [`Jitter`] draws the delay below it: by default
//! exponential, 100 ms doubling up to 20 s, with full jitter. A drawn delay is at least 1 ms and
//! never above the schedule's cap. Each delay is drawn from its own ceiling and never feeds the
//! next, so jitter does not compound (but for [`Jitter::Decorrelated`], which is made of that).
//! Throttled and Transient outcomes count their steps apart, and may have
//! [schedules apart](JitterBackoffLayer::throttled): throttled answers in a row wait ever longer.
//!
//! A hint of the server (`Retry-After`) is a floor: the wait is the later of the drawn delay and
//! the hint, and the cap bounds only the schedule. A hint above 60 s (or what another layer of the
//! stack sets) is not waited out: the answer goes to the caller at once. After a hinted wait the
//! schedule starts again at its base.
//!
//! # When it does not send again
//!
//! With no send left (3 by default, the first included), with a wait that would pass the call's
//! deadline or [`JitterBackoffLayer::max_total_wait`], with a budget that denies: the outcome in
//! hand goes to the caller, unchanged.
//!
//! # Other layers
//!
//! Two retrying layers in one stack do not multiply: the outer one drives, the inner one advises,
//! and of the limits that were set the strictest hold. See [`tower_spillway_core::drive`].
//!
//! # Metrics
//!
//! The feature `metrics` turns on those of the engine, see [`tower_spillway_core::metrics`].
//!
//! # Clone
//!
//! Clones of the service share the schedule. All state of a call is in the call.

mod delay;
mod jitter;
mod layer;
mod policy;
mod schedule;
#[cfg(feature = "tower")]
pub mod tower;

pub use self::{
    delay::{Delay, Delays, FromFn},
    jitter::{Jitter, Spread},
    layer::JitterBackoffLayer,
    policy::JitterBackoff,
    schedule::{Constant, Exponential, Linear, Schedule},
};

/// The examples of the README compile.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
