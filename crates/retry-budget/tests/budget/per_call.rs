//! Limits for each call.

use std::time::Duration;

use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_retry_budget::RetryBudgetLayer;
use tower_spillway_core::{Carried, Cause};

use crate::support::{Adapter, SECOND, Targets, adapter, down, request, retries};

fn per_call(max_total_wait: Duration, sends: u32) -> RetryBudgetLayer<Adapter> {
    let layer = RetryBudgetLayer::per_call(max_total_wait, sends);
    layer.unwrap().adapter(adapter())
}

#[tokio::test(start_paused = true)]
async fn the_sum_of_waits_is_bounded_and_the_cause_carries_the_figures() {
    let upstream = down();
    let service = ServiceBuilder::new()
        .layer(per_call(2 * SECOND, 100))
        .layer(retries(10))
        .service(upstream.clone());
    let (request, ledger) = request();
    assert_eq!(service.oneshot(request).await.unwrap(), 503);
    // Equal passes.
    assert_eq!(upstream.times(), [0, 1, 2].map(|s| s * SECOND));
    let (waited, next) = (2 * SECOND, SECOND);
    assert_eq!(
        ledger.report().attempts[2].cause,
        Some(Cause::BudgetDenied { waited, next })
    );
}

#[tokio::test(start_paused = true)]
async fn zero_allows_no_retry() {
    let upstream = down();
    let layers = (per_call(Duration::ZERO, 100), retries(10));
    let answer = layers.layer(upstream.clone()).oneshot(request().0).await;
    assert_eq!((answer.unwrap(), upstream.calls()), (503, 1));
}

#[tokio::test(start_paused = true)]
async fn sends_are_bounded() {
    let upstream = down();
    let layers = (per_call(100 * SECOND, 2), retries(10));
    let (request, ledger) = request();
    let answer = layers.layer(upstream.clone()).oneshot(request).await;
    assert_eq!((answer.unwrap(), upstream.calls()), (503, 2));
    assert_eq!(
        ledger.report().attempts[1].cause,
        Some(Cause::AttemptsExhausted)
    );
    let error = RetryBudgetLayer::per_call(SECOND, 0).unwrap_err();
    assert_eq!(error.to_string(), "max_attempts must be at least 1");
}

#[tokio::test(start_paused = true)]
async fn each_call_has_its_own() {
    let upstream = down();
    let service = (per_call(SECOND, 100), retries(10)).layer(upstream.clone());
    for calls in 1..=5 {
        service.clone().oneshot(Carried::new(0)).await.unwrap();
        assert_eq!(upstream.calls(), calls * 2);
    }
}

#[tokio::test(start_paused = true)]
async fn outside_a_failover_it_bounds_all_targets_together() {
    let (first, second) = (down(), down());
    let leg = |upstream| retries(3).layer(upstream);
    let targets = Targets(vec![("a", leg(first.clone())), ("b", leg(second.clone()))]);
    let service = per_call(3 * SECOND, 100).layer(targets.clone());
    assert_eq!(service.oneshot(request().0).await.unwrap(), 503);
    // Two waits on the first target leave one.
    assert_eq!((first.calls(), second.calls()), (3, 2));

    let service = per_call(100 * SECOND, 4).layer(targets);
    assert_eq!(service.oneshot(request().0).await.unwrap(), 503);
    assert_eq!((first.calls(), second.calls()), (6, 3));
}

#[tokio::test(start_paused = true)]
async fn inside_a_failover_it_bounds_the_target_that_it_is_on() {
    let (first, second) = (down(), down());
    let bounded = ServiceBuilder::new()
        .layer(per_call(SECOND, 100))
        .layer(retries(3))
        .service(first.clone());
    let free = ServiceBuilder::new()
        .layer(per_call(100 * SECOND, 100))
        .layer(retries(3))
        .service(second.clone());
    let service = Targets(vec![("a", bounded), ("b", free)]);
    assert_eq!(service.oneshot(request().0).await.unwrap(), 503);
    assert_eq!((first.calls(), second.calls()), (2, 3));
}

/// The order of layers within a leg does not matter.
#[tokio::test(start_paused = true)]
async fn inside_of_the_retrying_layer_it_bounds_the_same() {
    let upstream = down();
    let layers = (retries(10), per_call(2 * SECOND, 100));
    let answer = layers.layer(upstream.clone()).oneshot(request().0).await;
    assert_eq!((answer.unwrap(), upstream.calls()), (503, 3));
}

/// A driver above changes nothing: it is over all sends below.
#[tokio::test(start_paused = true)]
async fn between_a_retrying_layer_and_a_failover_it_bounds_all_targets_together() {
    let (first, second) = (down(), down());
    let leg = |upstream| retries(3).layer(upstream);
    let targets = Targets(vec![("a", leg(first.clone())), ("b", leg(second.clone()))]);
    let service = (retries(9), per_call(3 * SECOND, 100)).layer(targets);
    assert_eq!(service.oneshot(request().0).await.unwrap(), 503);
    assert_eq!((first.calls(), second.calls()), (3, 2));
}
