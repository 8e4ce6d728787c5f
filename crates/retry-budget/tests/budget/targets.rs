//! One budget per target name.

use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_retry_budget::{RatioConfig, RetryBudgetLayer};

use crate::support::{SECOND, Targets, adapter, down, request, reserve, retries, up};

fn three() -> RatioConfig {
    RatioConfig::new().ratio(0.0).reserve(3)
}

#[tokio::test(start_paused = true)]
async fn one_builder_for_two_targets_keeps_two_budgets() {
    let layer = RetryBudgetLayer::ratio(three()).unwrap().adapter(adapter());
    let builder = ServiceBuilder::new().layer(layer.clone()).layer(retries(9));
    let (a, b) = (down(), up());
    let targets = Targets(vec![
        ("a", builder.clone().service(a.clone())),
        ("b", builder.service(b.clone())),
    ]);
    for _ in 0..5 {
        assert_eq!(targets.clone().oneshot(request().0).await.unwrap(), 200);
    }
    // Five first attempts and three retries; the hops are not charged.
    assert_eq!((a.calls(), b.calls()), (8, 5));
    assert_eq!(layer.budget("a").unwrap().balance(), 0);
    assert_eq!(layer.budget("b").unwrap().balance(), 3);
    assert_eq!(layer.unnamed_budget().unwrap().balance(), 3);
}

#[tokio::test(start_paused = true)]
async fn layered_twice_for_one_target_keeps_one_budget() {
    let layer = RetryBudgetLayer::ratio(three()).unwrap().adapter(adapter());
    let upstream = down();
    for _ in 0..2 {
        let service = (layer.clone(), retries(9)).layer(upstream.clone());
        let targets = Targets(vec![("a", service)]);
        targets.oneshot(request().0).await.unwrap();
    }
    assert_eq!(upstream.calls(), 5);
}

/// A service that serves several targets finds the budget of each.
#[tokio::test(start_paused = true)]
async fn one_service_for_two_targets_keeps_two_budgets() {
    let layer = RetryBudgetLayer::ratio(three()).unwrap().adapter(adapter());
    let upstream = down();
    let service = (layer, retries(9)).layer(upstream.clone());
    let targets = Targets(vec![("a", service.clone()), ("b", service)]);
    targets.oneshot(request().0).await.unwrap();
    assert_eq!(upstream.calls(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_handle_is_shared_on_purpose() {
    let budget = reserve(3);
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    assert!(layer.budget("a").is_none());
    let upstream = down();
    let service = (layer, retries(9)).layer(upstream.clone());
    let targets = Targets(vec![("a", service.clone()), ("b", service)]);
    targets.oneshot(request().0).await.unwrap();
    assert_eq!((upstream.calls(), budget.balance()), (5, 0));
}

/// Inside a leg it is entered once per leg, outside once per call.
#[tokio::test(start_paused = true)]
async fn deposits_are_per_leg_inside_and_per_call_outside() {
    let config = RatioConfig::new().ratio(1.0).reserve(0);
    let (inside, outside) = (config.build().unwrap(), config.build().unwrap());
    let layer = |budget| RetryBudgetLayer::shared(budget).adapter(adapter());
    let leg = || layer(&inside).layer(down());
    let service = layer(&outside).layer(Targets(vec![("a", leg()), ("b", leg())]));
    service.oneshot(request().0).await.unwrap();
    assert_eq!((inside.balance(), outside.balance()), (2, 1));
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!((inside.balance(), outside.balance()), (0, 0));
}
