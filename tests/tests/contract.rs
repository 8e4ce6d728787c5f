//! tower's contract: each layer over services that notice a breach of it, alone, in pairs and in
//! every order, over `http` and over any other request.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::time::Duration;

use common::{Req, Res, SECOND, Upstream, answer, get};
use tower::{
    Service, ServiceBuilder, ServiceExt, buffer::BufferLayer, layer::util::Identity,
    limit::ConcurrencyLimitLayer, load_shed::LoadShedLayer, util::BoxCloneSyncService,
};
use tower_layer::Layer;
use tower_spillway::{
    circuit_breaker::{BreakerConfig, Rule},
    core::{
        MayCarry, Read, Resend,
        testing::{
            contract::ReadyProbeLayer,
            script::{Script, Step},
        },
    },
    prelude::*,
};

type Boxed<Rq, Rs> = BoxCloneSyncService<Rq, Rs, BoxError>;

/// A service that fails on every second send: each call is retried once where somebody retries.
fn flaky() -> Upstream {
    Script::from_fn(|n, _| Step::answer(answer(if n % 2 == 1 { 503 } else { 200 }, &[])))
}

/// The inner services that notice: each wraps a flaky upstream.
fn inners() -> Vec<(&'static str, Boxed<Req, Res>)> {
    let boxed = |name, service| (name, service);
    vec![
        boxed("probe", Boxed::new(ReadyProbeLayer::new().layer(flaky()))),
        boxed(
            "probe, pending once",
            Boxed::new(ReadyProbeLayer::pending_once().layer(flaky())),
        ),
        boxed("buffer", Boxed::new(BufferLayer::new(4).layer(flaky()))),
        boxed(
            "concurrency limit",
            Boxed::new(
                ServiceBuilder::new()
                    .layer(ConcurrencyLimitLayer::new(1))
                    .layer(ReadyProbeLayer::new())
                    .service(flaky()),
            ),
        ),
        boxed(
            "load shed",
            Boxed::new(
                ServiceBuilder::new()
                    .layer(LoadShedLayer::new())
                    .layer(ReadyProbeLayer::new())
                    .service(flaky()),
            ),
        ),
        boxed(
            "boxed",
            Boxed::new(Boxed::new(ReadyProbeLayer::new().layer(flaky()))),
        ),
    ]
}

/// Calls a service often: each call must be answered. Then two calls at once, on two clones.
async fn exercise<S, Rq>(mut service: S, request: impl Fn() -> Rq, name: &str)
where
    S: Service<Rq, Error = BoxError> + Clone,
{
    for round in 0..4 {
        let answer = async { service.ready().await?.call(request()).await };
        let answer = tokio::time::timeout(600 * SECOND, answer).await;
        assert!(
            matches!(answer, Ok(Ok(_))),
            "{name}, round {round}: {:?}",
            answer.map(|a| a.map(|_| ()))
        );
    }
    let (mut a, mut b) = (service.clone(), service);
    let both = async {
        tokio::join!(async { a.ready().await?.call(request()).await }, async {
            b.ready().await?.call(request()).await
        },)
    };
    // How the two share the upstream's failures is up to them; neither may hang.
    let both = tokio::time::timeout(600 * SECOND, both).await;
    assert!(both.is_ok(), "{name}: two at once hang");
}

/// Each layer as a function from a boxed service to a boxed one.
type Wrap<Rq, Rs> = Box<dyn Fn(Boxed<Rq, Rs>) -> Boxed<Rq, Rs>>;

fn layers<A, Rq, Rs>(adapter: A) -> Vec<(&'static str, Wrap<Rq, Rs>)>
where
    A: Resend<Rq>
        + tower_spillway::core::Carry<Rq>
        + MayCarry<Rq>
        + Read<Rs>
        + Clone
        + Send
        + Sync
        + 'static,
    Rq: Send + 'static,
    Rs: Send + 'static,
{
    fn wrap<L, Rq, Rs>(layer: L) -> Wrap<Rq, Rs>
    where
        L: Layer<Boxed<Rq, Rs>> + 'static,
        L::Service: Service<Rq, Response = Rs, Error = BoxError> + Clone + Send + Sync + 'static,
        <L::Service as Service<Rq>>::Future: Send,
        Rq: 'static,
        Rs: 'static,
    {
        Box::new(move |inner| Boxed::new(layer.layer(inner)))
    }
    let failover = {
        let adapter = adapter.clone();
        move |inner: Boxed<Rq, Rs>| {
            let service = FailoverService::new([
                Target::new("one", inner.clone()),
                Target::new("two", inner),
            ]);
            Boxed::new(service.unwrap().adapter(adapter.clone()))
        }
    };
    vec![
        (
            "backoff",
            wrap(JitterBackoffLayer::new().adapter(adapter.clone())),
        ),
        (
            "retry-after",
            wrap(RetryAfterLayer::new().adapter(adapter.clone())),
        ),
        (
            "breaker",
            // What fails here is one breaker's for many upstreams, more than half of it.
            wrap(patient_breaker().adapter(adapter.clone())),
        ),
        (
            "budget",
            wrap(
                RetryBudgetLayer::ratio(Default::default())
                    .unwrap()
                    .adapter(adapter.clone()),
            ),
        ),
        ("failover", Box::new(failover)),
        (
            "call",
            wrap(
                CallLayer::new()
                    .deadline(60 * SECOND)
                    .adapter(adapter.clone()),
            ),
        ),
        (
            "attempt timeout",
            wrap(AttemptTimeoutLayer::to_head(8 * SECOND).adapter(adapter)),
        ),
    ]
}

fn patient_breaker() -> CircuitBreakerLayer {
    CircuitBreakerLayer::with_config(BreakerConfig::new().rules([Rule::run(5)])).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_layer_alone_over_each_service_that_notices() {
    for (name, layer) in layers::<_, Req, Res>(Http::new()) {
        for (inner_name, inner) in inners() {
            exercise(layer(inner), get, &format!("{name} over {inner_name}")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_pair_of_layers_in_both_orders() {
    // Fresh layers for each pair: a breaker keeps what it saw.
    let all = || layers::<_, Req, Res>(Http::new());
    for outer in 0..all().len() {
        for inner in 0..all().len() {
            for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
                let (layers, upstream) = (all(), Boxed::new(probe.layer(flaky())));
                let ((outer_name, outer), (inner_name, inner)) = (&layers[outer], &layers[inner]);
                let name = format!("{outer_name} over {inner_name}");
                exercise(outer(inner(upstream)), get, &name).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_order_of_the_retrying_layers_with_budget_and_breaker_between() {
    let all = layers::<_, Req, Res>(Http::new());
    let four = &all[..4];
    let orders = [0usize, 1, 2, 3];
    let mut tried = 0;
    for a in orders {
        for b in orders {
            for c in orders {
                for d in orders {
                    let mut distinct = [a, b, c, d];
                    distinct.sort_unstable();
                    if distinct != orders {
                        continue;
                    }
                    tried += 1;
                    let upstream = Boxed::new(ReadyProbeLayer::pending_once().layer(flaky()));
                    let stack = [d, c, b, a]
                        .into_iter()
                        .fold(upstream, |inner, layer| four[layer].1(inner));
                    let name = [a, b, c, d].map(|layer| four[layer].0).join(" > ");
                    exercise(stack, get, &name).await;
                }
            }
        }
    }
    assert_eq!(tried, 24);
}

#[tokio::test(start_paused = true)]
async fn everything_works_without_http() {
    let adapter = Plain(
        |out: Result<&String, tower_spillway_core::Failure<'_>>| match out {
            Ok(_) => Class::Success,
            Err(_) => Class::Transient,
        },
    );
    let flaky = || -> Script<Carried<String>, String> {
        Script::from_fn(|n, _| match n % 2 {
            1 => Step::fail(|| "down"),
            _ => Step::answer("well".to_string()),
        })
    };
    let all = layers::<_, Carried<String>, String>(adapter);
    // Alone the retrying ones answer every call; the others need one of them around.
    let (_, backoff) = &all[0];
    for (name, layer) in &all {
        for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
            let upstream = Boxed::new(probe.layer(flaky()));
            let stack = backoff(layer(upstream));
            exercise(stack, || Carried::new("hi".into()), name).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn option_layer_switches_a_layer_off() {
    for on in [true, false] {
        let upstream = flaky();
        let mut service = ServiceBuilder::new()
            .option_layer(on.then(JitterBackoffLayer::new))
            .layer(ReadyProbeLayer::new())
            .service(upstream.clone());
        let response = service.ready().await.unwrap().call(get()).await.unwrap();
        assert_eq!(response.status(), if on { 200 } else { 503 });
        assert_eq!(upstream.calls(), if on { 2 } else { 1 });
    }
    let identity: Identity = Identity::new();
    exercise(
        identity.layer(JitterBackoffLayer::new().layer(flaky())),
        get,
        "identity",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_readiness_is_held_while_sleeping() {
    // One permit in all: a layer that kept it through the wait would starve the other call.
    let upstream: Upstream = Script::new([
        Step::answer(answer(429, &[("retry-after", "30")])),
        Step::answer(answer(200, &[])),
        Step::answer(answer(200, &[])),
    ]);
    let service = ServiceBuilder::new()
        .layer(RetryAfterLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .service(upstream.clone());
    let waiting = tokio::spawn(service.clone().oneshot(get()));
    tokio::time::sleep(SECOND).await;
    let (other, took) = common::timed(service.oneshot(get())).await;
    assert_eq!(other.unwrap().status(), 200);
    assert_eq!(took, Duration::ZERO, "not behind the one that waits");
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}
