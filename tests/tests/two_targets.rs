//! One `ServiceBuilder` used for two targets keeps their state apart.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use common::{SECOND, Upstream, always, post, send};
use tower::ServiceBuilder;
use tower_spillway::{circuit_breaker::State, prelude::*};

#[tokio::test(start_paused = true)]
async fn an_outage_of_one_leaves_the_breaker_of_the_other_closed() {
    let (opus, gemini) = (always(500, &[]), always(200, &[]));
    let breakers = CircuitBreakerLayer::new();
    let builder = ServiceBuilder::new()
        .layer(JitterBackoffLayer::new())
        .layer(breakers.clone());
    let mut service = FailoverService::new([
        Target::new("opus", builder.service(opus.clone())).retry_ambiguous(true),
        Target::new("gemini", builder.service(gemini.clone())),
    ])
    .unwrap();
    for _ in 0..20 {
        assert_eq!(send(&mut service, post()).await.status(), 200);
    }
    assert_eq!(breakers.breaker("opus").state(), State::Open);
    assert_eq!(breakers.breaker("gemini").state(), State::Closed);
    assert!(opus.calls() <= 6, "{} sends to the dead one", opus.calls());
    assert_eq!(gemini.calls(), 20);
}

#[tokio::test(start_paused = true)]
async fn one_service_cloned_onto_two_targets_has_two_breakers_all_the_same() {
    let breakers = CircuitBreakerLayer::new();
    let upstream: Upstream = always(200, &[]);
    let one = ServiceBuilder::new()
        .layer(breakers.clone())
        .service(upstream.clone());
    let mut service =
        FailoverService::new([Target::new("opus", one.clone()), Target::new("gemini", one)])
            .unwrap();
    send(&mut service, post()).await;
    breakers.breaker("opus").force_open();
    let called = send(&mut service, post()).await;
    assert_eq!(called.report.target.unwrap().as_str(), "gemini");
    assert_eq!(breakers.breaker("gemini").state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_ratio_budget_in_a_builder_is_one_for_each_target() {
    let (opus, gemini) = (always(503, &[]), always(503, &[]));
    let builder = ServiceBuilder::new()
        .layer(RetryBudgetLayer::ratio(Default::default()).unwrap())
        .layer(JitterBackoffLayer::constant(SECOND / 1000).unwrap());
    let mut only_opus =
        FailoverService::new([Target::new("opus", builder.service(opus.clone()))]).unwrap();
    let mut only_gemini =
        FailoverService::new([Target::new("gemini", builder.service(gemini.clone()))]).unwrap();
    for _ in 0..100 {
        send(&mut only_opus, post()).await;
    }
    assert!(
        opus.calls() < 150,
        "{} sends: the budget is spent",
        opus.calls()
    );
    send(&mut only_gemini, post()).await;
    assert_eq!(gemini.calls(), 3, "the other target has its own");
}
