//! A tower service that sends a call to the next target when one fails.
//!
//! # Overview
//!
//! A [`FailoverService`] holds [`Target`]s in order. A call goes to the first; what comes back
//! decides:
//!
//! | outcome | next target |
//! |---|---|
//! | Success | – |
//! | Throttled, Transient | once the target's own retrying layers gave up |
//! | TargetDown, NotHere | at once |
//! | Refused (breaker open, held, not ready in time) | at once, free: nothing was sent |
//! | CallerFault | never: the request is wrong everywhere |
//!
//! A request that may have been processed goes on only if its method is idempotent or the target
//! says [`retry_ambiguous`](Target::retry_ambiguous) or
//! [`honours_idempotency_key`](Target::honours_idempotency_key). Hops are not charged to a retry
//! budget; the deadline and the cap of the call bind them.
//!
//! Failover keeps no state: what makes a call skip a dead target is that its circuit breaker
//! refuses for free. It never waits either: if every target refused, the call ends in
//! [`AllRefused`] with the earliest time to come back, and a retrying layer *outside* is told to
//! wait for it; after any other failure of all targets such a layer is told to stop.
//!
//! # Example
//!
//! ```
//! use http::{Request, Response, StatusCode};
//! use tower::{ServiceExt, service_fn, util::BoxCloneService};
//! use tower_failover::{FailoverService, Target};
//! use tower_spillway_core::{BoxError, Ledger};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let opus = service_fn(|_: Request<String>| async {
//!     let mut response = Response::new(String::new());
//!     *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
//!     Ok::<_, BoxError>(response)
//! });
//! let gemini = service_fn(|request: Request<String>| async move {
//!     assert_eq!(request.headers()["authorization"], "Bearer gemini-key");
//!     Ok::<_, BoxError>(Response::new("hello".to_string()))
//! });
//! let client = FailoverService::new([
//!     Target::new("opus", BoxCloneService::new(opus)).prepare(|request: &mut Request<String>| {
//!         request.headers_mut().insert("authorization", "Bearer opus-key".parse()?);
//!         Ok(())
//!     }),
//!     Target::new("gemini", BoxCloneService::new(gemini)).prepare(|request: &mut Request<String>| {
//!         request.headers_mut().insert("authorization", "Bearer gemini-key".parse()?);
//!         Ok(())
//!     }),
//! ])?;
//!
//! let response = client.oneshot(Request::post("/chat").body("hi".to_string())?).await?;
//!
//! assert_eq!(response.body(), "hello");
//! let report = response.extensions().get::<Ledger>().unwrap().report();
//! assert_eq!(report.target.unwrap().as_str(), "gemini");
//! assert_eq!(report.fallback_reason.unwrap().to_string(), "opus: throttled");
//! # Ok(())
//! # }
//! ```
//!
//! # Different services
//!
//! All targets have one service type. Box them to mix, as above.
//!
//! # Clone
//!
//! Clones share the targets. A clone is not ready until it was polled; polling always gives ready,
//! since a primary that is not must not keep the call from the next target.
//!
//! # Metrics
//!
//! With the feature `metrics` (off by default), through the facade of that name:
//!
//! | name | kind | labels |
//! |---|---|---|
//! | `spillway.failover.hops` | counter | `from`, `to`: targets; `cause`: why the leg ended ([`Cause`]), else the class of its outcome ([`Class`]) |
//! | `spillway.possible_duplicates` | counter | `target`: the one that may have done the work already, after which the next was asked |
//!
//! `describe_metrics` tells a recorder what they are. An exporter for Prometheus may add `_total` to the
//! names of counters.
//!
//! [`Cause`]: tower_spillway_core::Cause
//! [`Class`]: tower_spillway_core::Class

mod behind;
mod error;
#[cfg(feature = "metrics")]
mod figures;
mod fleet;
mod future;
mod journey;
mod service;
mod target;

#[cfg(feature = "metrics")]
pub use crate::figures::describe_metrics;
pub use crate::{
    error::{AllRefused, NotPrepared},
    future::ResponseFuture,
    service::FailoverService,
    target::Target,
};

/// The examples of the README compile.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
