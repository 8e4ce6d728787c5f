//! Allocations of a clean call, exactly. One test only: the counter is the whole process's.
//!
//! Where something else in the build turns the feature `metrics` on, an attempt at a named target
//! is counted, and what that allocates is told apart.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{
    alloc::System,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use common::{Body, Req, Res};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_layer::Layer;
use tower_spillway::{
    core::{Detached, Failure, Resend},
    prelude::*,
};

#[global_allocator]
static ALLOCATIONS: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations of one call once the stack is warm, the request's own left out.
async fn allocations<S, Rq>(mut service: S, request: impl Fn() -> Rq) -> usize
where
    S: Service<Rq, Error = BoxError>,
{
    let mut last = 0;
    for _ in 0..5 {
        let request = request();
        let before = ALLOCATIONS.stats().allocations;
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        last = ALLOCATIONS.stats().allocations - before;
        drop(response);
    }
    last
}

fn classify(out: Result<&u64, Failure<'_>>) -> Class {
    match out {
        Ok(_) => Class::Success,
        Err(_) => Class::Transient,
    }
}

fn plain_client(request: Carried<u64>) -> Ready<Result<u64, BoxError>> {
    ready(Ok(request.into_inner()))
}

fn http_client(request: Req) -> Ready<Result<Res, BoxError>> {
    ready(Ok(http::Response::new(request.into_body())))
}

/// Whether anything was counted.
struct Counted(Arc<AtomicBool>);

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        self.0.store(true, Ordering::Relaxed);
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// What counting a clean attempt at a named target allocates: the labels and the name, where
/// metrics are on.
async fn of_metrics() -> usize {
    const LABELS: usize = 2;
    let counted = Arc::<AtomicBool>::default();
    metrics::set_global_recorder(Counted(Arc::clone(&counted))).unwrap();
    let mut alone = JitterBackoffLayer::new()
        .adapter(Plain(classify))
        .layer(service_fn(plain_client));
    alone
        .ready()
        .await
        .unwrap()
        .call(Carried::new(7))
        .await
        .unwrap();
    match counted.load(Ordering::Relaxed) {
        true => LABELS,
        false => 0,
    }
}

#[tokio::test]
async fn clean_calls() {
    let metrics = of_metrics().await;
    let plain = Plain(classify);
    let client = service_fn(plain_client);
    let request = || Carried::new(7);

    let breaker = CircuitBreakerLayer::new().adapter(plain);
    assert_eq!(
        allocations(breaker.layer(client), request).await,
        0,
        "breaker alone"
    );

    let detached = CircuitBreakerLayer::new().adapter(Detached(classify));
    let echo = service_fn(|n: u64| ready(Ok::<_, BoxError>(n)));
    assert_eq!(
        allocations(detached.layer(echo), || 7).await,
        0,
        "breaker over any request"
    );

    let backoff = JitterBackoffLayer::new().adapter(plain);
    let retry_after = RetryAfterLayer::new().adapter(plain);
    let one = allocations(backoff.layer(client), request).await;
    assert_eq!(one, 1, "the ledger");
    let two = allocations(retry_after.layer(backoff.layer(client)), request).await;
    assert_eq!(two, 1, "a further retrying layer adds nothing");

    let target = ServiceBuilder::new()
        .layer(backoff)
        .layer(retry_after)
        .layer(breaker)
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(8)).adapter(plain))
        .service(client);
    let failover = FailoverService::new([
        Target::new("opus", target.clone()),
        Target::new("gemini", target),
    ]);
    let stack = ServiceBuilder::new()
        .layer(
            CallLayer::new()
                .deadline(Duration::from_secs(60))
                .adapter(plain),
        )
        .layer(
            RetryBudgetLayer::ratio(Default::default())
                .unwrap()
                .adapter(plain),
        )
        .service(failover.unwrap().adapter(plain));
    let whole = allocations(stack, request).await;
    assert_eq!(whole, 1 + metrics, "the whole stack");

    over_http(metrics).await;
}

/// An extension in a map that has none yet: the map, its table, the value.
const ENTRY: usize = 3;
const LEDGER: usize = 1;

/// Over `http` a copy of a request costs what its parts cost, which depends on the request. It is
/// measured here, so that the rest can be exact.
async fn over_http(metrics: usize) {
    let client = service_fn(http_client);
    let request = || {
        http::Request::post("http://localhost/chat")
            .header("content-type", "application/json")
            .body(Body::from("hi"))
            .unwrap()
    };
    assert_eq!(allocations(client, request).await, 0, "the client itself");

    let mut sent = request();
    sent.extensions_mut().insert(Ledger::new());
    let copying = |sent: &Req| {
        let before = ALLOCATIONS.stats().allocations;
        let copied = Http::new().try_clone(sent).unwrap();
        let copy = ALLOCATIONS.stats().allocations - before;
        (copied, copy)
    };
    // The first copy turns the parts of the address into shared ones.
    let (copied, copy) = copying(&sent);
    let (_, second_copy) = copying(&sent);
    let (_, copy_of_copy) = copying(&copied);
    assert_eq!(second_copy, copy_of_copy);

    let breaker = allocations(CircuitBreakerLayer::new().layer(client), request).await;
    assert_eq!(breaker, 0, "breaker alone");

    let backoff = JitterBackoffLayer::new();
    let one = allocations(backoff.layer(client), request).await;
    assert_eq!(one, LEDGER + ENTRY + copy + ENTRY, "one driver: one copy");
    let two = allocations(RetryAfterLayer::new().layer(backoff.layer(client)), request).await;
    assert_eq!(two, one, "a further retrying layer adds nothing");

    let target = ServiceBuilder::new()
        .layer(backoff)
        .layer(RetryAfterLayer::new())
        .layer(CircuitBreakerLayer::new())
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(8)))
        .service(client);
    let failover = FailoverService::new([
        Target::new("opus", target.clone()),
        Target::new("gemini", target),
    ]);
    let stack = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(Duration::from_secs(60)))
        .layer(RetryBudgetLayer::ratio(Default::default()).unwrap())
        .service(failover.unwrap());
    let whole = allocations(stack, request).await;
    assert_eq!(
        whole,
        LEDGER + ENTRY + copy + second_copy + ENTRY + metrics,
        "the whole stack: one copy for the failover, one for the driver"
    );
}
