//! Tower layers that keep calls flowing when an upstream throttles, slows, breaks or disappears.
//!
//! This crate re-exports the others; each of them works alone.
//!
//! | crate | what it adds |
//! |---|---|
//! | [`core`] | the record of a call, the retry engine, `CallLayer`, `ReplayLayer`, `AttemptTimeoutLayer`, `ClassifyLayer`, `InFlightLayer`, `IdempotencyKeyLayer`, `GrpcStatusLayer` |
//! | [`retry_after`] | waits as long as the server asked, then sends again; holds everybody until then, if asked to |
//! | [`jitter_backoff`] | retries with jittered backoff |
//! | [`circuit_breaker`] | takes a failing target out at once and brings it back carefully |
//! | [`retry_budget`] | bounds what retries may add, per call and per target |
//! | [`failover`] | sends a call to the next target when one fails |
//! | `llm` (feature `llm`) | what LLM vendors say in their answers, streams held until there is something in them, requests made to fit a target |
//!
//! # Features
//!
//! None is on by default. The errors of tower, hyper, hyper-util, h2 and tonic are read without any.
//!
//! | feature | what it adds |
//! |---|---|
//! | `llm` | `tower-spillway-llm`, as `llm` and in the [`prelude`] |
//! | `metrics` | what all crates count, through the `metrics` facade: attempts, retries and stops ([`core::metrics`]), breakers, budgets, holds, hops; `describe_metrics` of each crate tells a recorder what they are |
//! | `tower` | schedules as tower's `Backoff`, budgets as tower's `Budget` and the other way round; policies for tower's own retry are in [`core`] without it |
//!
//! # Example
//!
//! Outermost first; each layer is optional, and the order of the two retrying layers does not
//! matter:
//!
//! ```
//! use std::time::Duration;
//!
//! use http::{Request, Response, StatusCode};
//! use tower::{ServiceBuilder, ServiceExt, service_fn, util::BoxCloneService};
//! use tower_spillway::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! # let opus = BoxCloneService::new(service_fn(|_: Request<String>| async {
//! #     let mut response = Response::new(String::new());
//! #     *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
//! #     response.headers_mut().insert("retry-after", "3600".parse()?);
//! #     Ok::<_, BoxError>(response)
//! # }));
//! # let gemini = BoxCloneService::new(service_fn(|_: Request<String>| async {
//! #     Ok::<_, BoxError>(Response::new("hello".to_string()))
//! # }));
//! let target = ServiceBuilder::new()
//!     .layer(JitterBackoffLayer::new())
//!     .layer(RetryAfterLayer::new())
//!     .layer(CircuitBreakerLayer::new())
//!     .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(8)));
//! let failover = FailoverService::new([
//!     Target::new("opus", target.service(opus)).retry_ambiguous(true),
//!     Target::new("gemini", target.service(gemini)).retry_ambiguous(true),
//! ])?;
//! let client = ServiceBuilder::new()
//!     .layer(CallLayer::new().deadline(Duration::from_secs(60)))
//!     .layer(RetryBudgetLayer::per_call(Duration::from_secs(10), 6)?)
//!     .service(failover);
//!
//! let response = client.oneshot(Request::post("/chat").body("hi".to_string())?).await?;
//! assert_eq!(response.body(), "hello");
//! # Ok(())
//! # }
//! ```

#[doc(inline)]
pub use tower_circuit_breaker as circuit_breaker;
#[doc(inline)]
pub use tower_failover as failover;
#[doc(inline)]
pub use tower_jitter_backoff as jitter_backoff;
#[doc(inline)]
pub use tower_retry_after as retry_after;
#[doc(inline)]
pub use tower_retry_budget as retry_budget;
#[doc(inline)]
pub use tower_spillway_core as core;
#[cfg(feature = "llm")]
#[doc(inline)]
pub use tower_spillway_llm as llm;

/// What most stacks need.
pub mod prelude {
    pub use tower_circuit_breaker::CircuitBreakerLayer;
    pub use tower_failover::{AllRefused, FailoverService, Target};
    pub use tower_jitter_backoff::JitterBackoffLayer;
    pub use tower_retry_after::{
        RetryAfterLayer,
        hold::{HoldConfig, SharedHold},
    };
    pub use tower_retry_budget::RetryBudgetLayer;
    pub use tower_spillway_core::{
        BoxError, Carried, Cause, Class, History, Http, Ledger, Outcome, Plain, Policy, Reading,
        Refused, ReplayBody, ReplayLayer, Report, RetryLayer, TimedOut, Verdict,
        attempt_timeout::AttemptTimeoutLayer, call::CallLayer, classify::ClassifyLayer,
        grpc_status::GrpcStatusLayer, idempotency_key::IdempotencyKeyLayer,
        in_flight::InFlightLayer,
    };
    #[cfg(feature = "llm")]
    pub use tower_spillway_llm::{StreamGuardLayer, TargetProfile, Vendor, VendorVerdictLayer};
}
