//! Bounds what retries may add: for one call, or as a share of all traffic.
//!
//! A budget is asked last, once for each retry that would really be made. Its "no" gives the caller
//! the original outcome, unchanged.
//!
//! # Two meanings
//!
//! | | [`per_call`](RetryBudgetLayer::per_call) | [`ratio`](RetryBudgetLayer::ratio), [`shared`](RetryBudgetLayer::shared) |
//! |---|---|---|
//! | bounds | one call: its sends and the sum of its waits | all calls together: retries per first attempt |
//! | against | a caller who waits too long | a storm of retries on a target that is down |
//! | where | outside failover: over all targets; inside: per target | the same |
//!
//! # Example
//!
//! A tenth of the traffic may be retries, and 1 retry each second is always allowed:
//!
//! ```
//! use std::time::Duration;
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_retry_budget::{RatioConfig, RetryBudgetLayer};
//! use tower_spillway_core::{BoxError, Carried, Class, Failure, History, Outcome, Plain, RetryLayer, Verdict};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let adapter = Plain(|out: Result<&(), Failure<'_>>| match out {
//!     Ok(()) => Class::Success,
//!     Err(_) => Class::Transient,
//! });
//! let budget = RatioConfig::new().ratio(0.1).floor_per_second(1.0).build()?;
//! let sends = std::sync::atomic::AtomicU32::new(0);
//! let mut client = ServiceBuilder::new()
//!     .layer(RetryBudgetLayer::shared(&budget).adapter(adapter))
//!     .layer(
//!         RetryLayer::new(|_: &History, _: &Outcome<'_, ()>| Verdict::Retry {
//!             after: Duration::from_millis(1),
//!         })
//!         .adapter(adapter),
//!     )
//!     // Down.
//!     .service_fn(|_: Carried<&str>| {
//!         sends.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
//!         async { Err::<(), BoxError>("down".into()) }
//!     });
//!
//! for _ in 0..100 {
//!     client.ready().await?.call(Carried::new("ping")).await.unwrap_err();
//! }
//! // 100 first attempts, a tenth of them again, and the floor of 10 s: 120 sends, not 300.
//! assert_eq!(sends.into_inner(), 120);
//! assert_eq!(budget.balance(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Four budgets
//!
//! | | allows retries | source |
//! |---|---|---|
//! | [`RatioBudget`] | for a share of first attempts over a window, and some always; the default | Finagle, tower, linkerd |
//! | [`ConcurrencyBudget`] | at once, for a share of the calls in flight, and some always | Envoy |
//! | [`CostBudget`] | while there are tokens: each kind has its price, which success pays back | AWS SDKs |
//! | [`ScoreBudget`] | while more succeeds than fails | gRPC A6 |
//!
//! A call that meets several is sent again only if all grant; otherwise all get back what they gave.
//!
//! # Where it goes
//!
//! Outside the retrying layers, or with `.gate(budget.as_gate())` on one of them. One budget that
//! is entered in several places of a call is asked once. A layer made with
//! [`ratio`](RetryBudgetLayer::ratio) keeps one budget per target name, which it learns from the
//! call, so one `ServiceBuilder` may serve several targets below a failover.
//!
//! Hops from one target to the next are not charged.
//!
//! # Requests
//!
//! The layer speaks to the retrying layers through the call's [`Ledger`], so its adapter must be
//! one that carries it: [`Http`](tower_spillway_core::Http) (the default) or
//! [`Plain`](tower_spillway_core::Plain). Over one that does not, it does not compile:
//!
//! ```compile_fail,E0277
//! use tower::{Layer, Service, service_fn};
//! use tower_retry_budget::{RatioConfig, RetryBudgetLayer};
//! use tower_spillway_core::{Class, Detached, Failure};
//!
//! let adapter = Detached(|_: Result<&(), Failure<'_>>| Class::Success);
//! let layer = RetryBudgetLayer::ratio(RatioConfig::new()).unwrap().adapter(adapter);
//! let mut service = layer.layer(service_fn(|_: ()| async { Ok::<_, std::io::Error>(()) }));
//! let _ = service.call(());
//! ```
//!
//! # Metrics
//!
//! With the feature `metrics`, through the facade of that name:
//!
//! | name | kind | labels | what |
//! |---|---|---|---|
//! | `spillway.budget.granted` | counter | `budget`, `name` | retries granted |
//! | `spillway.budget.denied` | counter | `budget`, `name` | retries denied |
//! | `spillway.budget.balance` | gauge | `budget`, `name` | [`Snapshot::balance`] after the last change |
//!
//! `describe_metrics` tells a recorder what they are. An exporter for Prometheus may add `_total` to the
//! names of counters.
//!
//! `budget` is `ratio`, `concurrency`, `cost` or `score`. `name` is what `named` set, the target's
//! name of a budget per target, `overflow` of the one that too many targets share, or `unnamed`.
//!
//! # Clone
//!
//! Clones of a budget, of the layer and of the service share what they keep.
//!
//! [`Ledger`]: tower_spillway_core::Ledger

mod cell;
mod clock;
mod concurrency;
mod config;
mod cost;
mod future;
mod handle;
mod layer;
mod meter;
mod purse;
mod ratio;
mod registry;
mod score;
mod service;
mod sync;
#[cfg(feature = "tower")]
pub mod tower;
mod weights;

#[cfg(feature = "metrics")]
pub use self::meter::describe_metrics;
pub use self::{
    concurrency::ConcurrencyBudget,
    config::RatioConfig,
    cost::{CostBudget, CostConfig},
    future::ResponseFuture,
    handle::Snapshot,
    layer::RetryBudgetLayer,
    ratio::RatioBudget,
    score::ScoreBudget,
    service::RetryBudget,
    weights::Weights,
};

/// The examples of the README compile.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
