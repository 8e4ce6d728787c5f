//! A tower layer that takes a failing target out at once and brings it back carefully.
//!
//! # Overview
//!
//! - **Closed**: calls pass. The first [`Rule`] that is reached opens the breaker; unless others are
//!   set: five failures in a row, or half of at least 20 calls in 30 s.
//! - **Open**: calls are refused at once with a typed [`Refused`] that says when to come back and
//!   which rule it was; the inner service is not asked. The open time is 5 s, doubles each time
//!   that probes fail, to 60 s at most, and up to a fifth of it is added.
//! - **Half-open**: when the open time is over the next calls pass as probes, one at a time and
//!   never more than the verdict needs. Two successes close it, one failure reopens it. With
//!   [`Breaker::probe_with`] no user's call is a probe. After closing
//!   [`BreakerConfig::ramp`] lets calls back little by little.
//!
//! What an outcome counts as is its [`Class`]:
//!
//! | class | in a run | in a share or number | as a probe |
//! |---|---|---|---|
//! | Success | ends it | call | success |
//! | Transient | failure | failed call | failure |
//! | Throttled | leaves it | failed call | failure |
//! | TargetDown | opens at once (`held`) | | reopens at once |
//! | NotHere, CallerFault, Refused, Cancelled | leaves it | no call | gives its slot back |
//!
//! Where a rule asks for slow calls ([`Rule::slow`], [`Rule::brownout`]), a slow success counts in
//! it, and a slow probe is a failed one.
//!
//! TargetDown holds the breaker open for as long as its hint says, at most
//! [`max_hold`](BreakerConfig::max_hold); so does a vendor's hint above
//! [`trip_on_hint`](BreakerConfig::trip_on_hint). Any other hint of the outcome that opens it
//! lengthens the open time and never shortens it.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use http::{Request, Response, StatusCode};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_circuit_breaker::{BreakerConfig, CircuitBreakerLayer, Refused, State};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let config = BreakerConfig::new()
//!     .failures(3)
//!     .open_time(Duration::from_secs(10))
//!     .jitter(0.0);
//! let layer = CircuitBreakerLayer::with_config(config)?;
//! let breaker = layer.unnamed_breaker();
//! let mut client = ServiceBuilder::new()
//!     .layer(layer)
//!     .service(tower::service_fn(|_: Request<String>| async {
//!         let mut response = Response::new(String::new());
//!         *response.status_mut() = StatusCode::BAD_GATEWAY;
//!         Ok::<_, std::io::Error>(response)
//!     }));
//!
//! for _ in 0..3 {
//!     let response = client.ready().await?.call(Request::new(String::new())).await?;
//!     assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
//! }
//! assert_eq!(breaker.state(), State::Open);
//!
//! let error = client.ready().await?.call(Request::new(String::new())).await.unwrap_err();
//! let refused = Refused::find(&*error).unwrap();
//! assert_eq!(refused.wait(), Some(Duration::from_secs(10)));
//! assert_eq!(refused.detail(), Some("consecutive"));
//! # Ok(())
//! # }
//! ```
//!
//! # One state per target
//!
//! Below a failover each target has a state of its own, by its name: one `ServiceBuilder` used for
//! two targets has two breakers, and `layer()` called twice for one target has one.
//! [`CircuitBreakerLayer::breaker`] gives the [`Breaker`] handle of a target,
//! [`CircuitBreakerLayer::with_breaker`] shares a state on purpose. Without a failover there is
//! one state, [`CircuitBreakerLayer::unnamed_breaker`]. [`CircuitBreakerLayer::keyed`] keeps one
//! for each key of a request instead. A layer knows 1024 targets or keys; when none of them is
//! closed and idle further ones share one state.
//!
//! # By hand, and to hear of it
//!
//! A [`Breaker`] opens, closes, is switched off or only counts, as its user says; a [`Control`]
//! does so to many. [`BreakerConfig::on_event`] calls a function with each change of state and
//! [`Breaker::events`] queues them for another task: in order, with the counts that caused them.
//! [`Breaker::permit`] guards what is no tower service.
//!
//! # Readiness
//!
//! While open, `poll_ready` is ready without asking the inner service, so that a caller is refused
//! instead of kept waiting; the `call` that follows is refused even if the open time has ended in
//! between, since the inner service may not be called unasked. A service whose clones serve more
//! than one target cannot know the next one and always asks. The permit is taken in `call`:
//! nothing is held by a service that is ready and not called.
//!
//! # Calls that are dropped
//!
//! A call whose future is dropped is neither a failure nor a success; a probe gives its slot back
//! at once. If a layer above says that the call's deadline cut it off, it is a failure once it was
//! under way for longer than [`BreakerConfig::abandoned_after`]; one that lost to a hedge is a slow
//! result, where a rule asks for those. A call that panics is a failure.
//!
//! A probe that hangs keeps its slot for the open time, at least 1 s; then one more may enter, and
//! whichever ends is heard.
//!
//! # At the end of the body
//!
//! Unless asked otherwise an outcome is read at the response head. With
//! [`CircuitBreakerLayer::outcome_at_body_end`] a head that is no success settles its call at once,
//! as before; a success is heard when the body has ended, which is an [`OutcomeBody`] and keeps the
//! slot of a probe until then:
//!
//! | the body | is |
//! |---|---|
//! | is read to its end, or empty | success |
//! | fails | what the adapter reads of its error: Transient, unless it knows better |
//! | ends short of its size hint or `content-length`; a gRPC call's without a status | Transient |
//! | has a `grpc-status` in its trailers | the class of that code ([`class_of_grpc`]) |
//! | is dropped before its end | nothing: the caller left. See "Calls that are dropped" |
//! | has a [`BodyEnd`] of a layer inside that says how it ended | that, whatever the body says |
//!
//! Rules about latency ask for the time to the head: a long stream is no slow one. Whoever stops
//! reading before the end, for instance at `[DONE]`, has left; a layer inside that knows the last
//! event and sets a `BodyEnd` before it is given out mends that. Where no caller reads to the end,
//! no probe ever succeeds.
//!
//! ```
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Full, Limited};
//! use tower::{Layer, ServiceExt, service_fn};
//! use tower_circuit_breaker::{BreakerConfig, CircuitBreakerLayer, State};
//! use tower_spillway_core::BoxError;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let layer = CircuitBreakerLayer::with_config(BreakerConfig::new().failures(2))?
//!     .outcome_at_body_end();
//! let breaker = layer.unnamed_breaker();
//! let client = layer.layer(service_fn(|_: Request<()>| async {
//!     // A body that breaks.
//!     let body = Limited::new(Full::new(&b"Hello"[..]), 3);
//!     Ok::<_, BoxError>(Response::new(body))
//! }));
//!
//! for _ in 0..2 {
//!     assert_eq!(breaker.state(), State::Closed);
//!     let response = client.clone().oneshot(Request::new(())).await?;
//!     assert_eq!(response.status(), 200);
//!     assert!(response.into_body().collect().await.is_err());
//! }
//! assert_eq!(breaker.state(), State::Open);
//! # Ok(())
//! # }
//! ```
//!
//! [`class_of_grpc`]: tower_spillway_core::adapter::class_of_grpc
//! [`BodyEnd`]: tower_spillway_core::BodyEnd
//!
//! # Cost
//!
//! A clean call allocates nothing and takes no lock: a success is counted apart, in counters that
//! threads share as little as they can, and told to the rules when something fails or is slow. A
//! refusal while open is a few loads. The clock is read when a call ends, and when it begins if a
//! rule asks for slow calls; a driver above shares both readings. With a [`Rule::run`] alone it is
//! not read at all. Heard at the end of the body a call reads it once more, at the head if a rule asks
//! for slow calls, and still allocates nothing.
//!
//! # Metrics
//!
//! With the feature `metrics` (off by default), through the facade of that name:
//!
//! | name | kind | labels | what |
//! |---|---|---|---|
//! | `spillway.breaker.state` | gauge | `target` | 0 closed, 1 half-open, 2 open, 3 forced open, -1 only counting, -2 disabled |
//! | `spillway.breaker.transitions` | counter | `target`, `from`, `to`, `reason` | changes of [`State`]; `reason` is a [`TripReason`] or empty |
//! | `spillway.breaker.refusals` | counter | `target`, `refusal`, `reason` | calls that were refused, by [`Refusal`] |
//! | `spillway.breaker.probes` | counter | `target`, `outcome` | probes of a [`Prober`]: `good`, `bad` |
//!
//! `describe_metrics` tells a recorder what they are. An exporter for Prometheus may add `_total` to
//! the names of counters.
//!
//! `target` is empty for calls that name none, and for keys of requests, which are shown nowhere
//! (and have no gauge). An open breaker that nobody calls stays open in the gauge when its time is
//! over: it becomes half-open with the next call.
//!
//! [`Class`]: tower_spillway_core::Class

mod body;
mod breaker;
mod cell;
mod config;
mod control;
mod event;
#[cfg(feature = "metrics")]
mod figures;
mod future;
mod home;
mod key;
mod layer;
mod machine;
mod permit;
mod prober;
mod registry;
mod report;
mod service;
mod state;
mod sync;

#[cfg(feature = "metrics")]
pub use self::figures::describe_metrics;
pub use tower_spillway_core::{Refusal, Refused};

pub use self::{
    body::OutcomeBody,
    breaker::Breaker,
    config::{BreakerConfig, Rule},
    control::Control,
    event::{Event, Events},
    future::{ResponseFuture, ToBodyEndFuture},
    key::{ByTarget, KeyOf, Keyed},
    layer::{AtBodyEnd, AtHead, CircuitBreakerLayer},
    permit::Permit,
    prober::Prober,
    service::CircuitBreaker,
    state::{Snapshot, State, TripReason},
};

/// The examples of the README compile.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
