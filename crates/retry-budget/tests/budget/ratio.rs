//! The share of first attempts, and who is charged.

use std::sync::Arc;

use http::{Request, Response};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_retry_budget::{RatioConfig, RetryBudgetLayer};
use tower_spillway_core::{
    Carried, Cause, Class, Http, Ledger, Refusal, Refused, ReplayableBody, RetryLayer,
    error::NotReplayable,
    testing::script::{Script, Step},
};

use crate::support::{Every, SECOND, adapter, down, request, reserve, retries, up};

/// Row 19: the budget starves at low traffic.
#[tokio::test(start_paused = true)]
async fn row_19_one_request_a_minute_still_has_its_retry() {
    let upstream = Script::from_fn(|n, _: &Carried<u8>| {
        // Every first attempt fails.
        Step::answer(if n % 2 == 1 { 503 } else { 200 })
    });
    let layer = RetryBudgetLayer::ratio(RatioConfig::new()).unwrap();
    let service = (layer.adapter(adapter()), retries(2)).layer(upstream.clone());
    for _ in 0..60 {
        let answer = service.clone().oneshot(request().0).await;
        assert_eq!(answer.unwrap(), 200);
        tokio::time::sleep(60 * SECOND).await;
    }
}

/// Row 20: tokens are never given back, and retries stop for ever.
#[tokio::test(start_paused = true)]
async fn row_20_after_10_000_failing_calls_retries_come_back() {
    let budget = RatioConfig::new().build().unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let upstream = down();
    let failing = (layer.clone(), retries(3)).layer(upstream.clone());
    for _ in 0..100 {
        let calls: Vec<_> = (0..100)
            .map(|_| tokio::spawn(failing.clone().oneshot(request().0)))
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), 503);
        }
    }
    assert!(budget.snapshot().denied > 1000);
    assert_eq!(budget.balance(), 0);

    tokio::time::sleep(10 * SECOND).await;
    let healthy = (layer, retries(3)).layer(up());
    healthy.oneshot(request().0).await.unwrap();
    assert_eq!(budget.balance(), 10);
    let before = upstream.calls();
    failing.oneshot(request().0).await.unwrap();
    assert_eq!(upstream.calls() - before, 3);
}

/// Rows 22 and 23, from outside: a fifth of the calls is sent again, and the floor once.
#[tokio::test(start_paused = true)]
async fn the_ratio_holds_exactly_over_calls_at_once() {
    let budget = RatioConfig::new().build().unwrap();
    let upstream = down();
    let service = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget).adapter(adapter()))
        .layer(retries(9))
        .service(upstream.clone());
    let calls: Vec<_> = (0..1000)
        .map(|_| tokio::spawn(service.clone().oneshot(request().0)))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), 503);
    }
    assert_eq!(upstream.calls(), 1000 + 200 + 10);
}

/// Row 24: a retry that sleeps is not counted, or counted twice.
#[tokio::test(start_paused = true)]
async fn row_24_a_retry_is_charged_when_decided_and_given_back_when_dropped_asleep() {
    let budget = reserve(3);
    let upstream = down();
    let service = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget).adapter(adapter()))
        .layer(retries(9))
        .service(upstream.clone());
    let call = tokio::spawn(service.oneshot(request().0));
    tokio::time::sleep(SECOND / 2).await;
    assert_eq!((upstream.calls(), budget.balance()), (1, 2), "asleep");
    tokio::time::sleep(SECOND).await;
    assert_eq!(
        (upstream.calls(), budget.balance()),
        (2, 1),
        "sent, asleep again"
    );
    call.abort();
    call.await.unwrap_err();
    assert_eq!(budget.balance(), 2, "the one that was sent stays charged");
    assert_eq!(budget.snapshot().granted, 1);
}

/// Row 25: the budget's error replaces the result.
#[tokio::test(start_paused = true)]
async fn row_25_a_denied_retry_gives_the_very_same_outcome() {
    let layer = RetryBudgetLayer::shared(reserve(0));
    let upstream = Script::always(Step::answer_with(|| {
        let builder = Response::builder().status(503).header("x-from", "upstream");
        builder.body("the original".to_owned()).unwrap()
    }));
    let service = (layer, RetryLayer::new(Every(SECOND))).layer(upstream.clone());
    let answer = service.oneshot(Request::new(String::new())).await.unwrap();
    assert_eq!((answer.status().as_u16(), upstream.calls()), (503, 1));
    assert_eq!(answer.headers()["x-from"], "upstream");
    assert_eq!(answer.body(), "the original");
    let report = answer.extensions().get::<Ledger>().unwrap().report();
    let (waited, next) = (std::time::Duration::ZERO, SECOND);
    assert_eq!(
        report.attempts[0].cause,
        Some(Cause::BudgetDenied { waited, next })
    );
}

#[tokio::test(start_paused = true)]
async fn row_25_a_denied_retry_gives_the_very_same_error() {
    let layer = RetryBudgetLayer::shared(reserve(0)).adapter(adapter());
    let upstream = Script::always(Step::fail(|| std::io::Error::other("reset")));
    let service = (layer, retries(3)).layer(upstream);
    let error = service.oneshot(request().0).await.unwrap_err();
    let error = error.downcast::<std::io::Error>().unwrap();
    assert_eq!(error.to_string(), "reset");
}

/// A body that can be read only once.
#[derive(Debug)]
struct OneShot;

impl ReplayableBody for OneShot {
    fn try_replay(&self) -> Result<Self, NotReplayable> {
        Err(NotReplayable::new("it is read only once"))
    }
}

/// Row 26: a request that cannot be cloned makes no deposit and gets no verdict.
#[tokio::test(start_paused = true)]
async fn row_26_requests_that_cannot_be_sent_twice_deposit_all_the_same() {
    let config = RatioConfig::new().floor_per_second(0.0);
    let budget = config.build().unwrap();
    let upstream = Script::always(Step::answer_with(|| {
        Response::builder().status(503).body(String::new()).unwrap()
    }));
    let mut service = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget))
        .layer(RetryLayer::new(Every(SECOND)).adapter(Http::new()))
        .service(upstream.clone());
    for calls in 1..=10 {
        let call = service.ready().await.unwrap().call(Request::new(OneShot));
        let answer = call.await.unwrap();
        let report = answer.extensions().get::<Ledger>().unwrap().report();
        assert_eq!(report.attempts[0].class, Class::Transient);
        assert_eq!(report.attempts[0].cause, Some(Cause::NotReplayable));
        assert_eq!(
            (upstream.calls(), budget.balance()),
            (calls, calls as u64 / 5)
        );
    }
}

/// An open circuit breaker turns calls away unsent: they are no traffic that retries may follow.
#[tokio::test(start_paused = true)]
async fn calls_that_were_refused_unsent_deposit_nothing() {
    let budget = RatioConfig::new().floor_per_second(0.0).build().unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let open = Script::from_fn(|n, _: &Carried<u8>| match n {
        1..=1000 => Step::fail(|| Refused::new(Refusal::Open)),
        _ => Step::answer(503),
    });
    let service = (layer, retries(3)).layer(open.clone());
    for _ in 0..1000 {
        service.clone().oneshot(request().0).await.unwrap_err();
    }
    assert_eq!((open.calls(), budget.balance()), (1000, 0));
    for _ in 0..10 {
        service.clone().oneshot(request().0).await.unwrap();
    }
    assert_eq!(open.calls(), 1000 + 10 + 2, "a fifth of what was sent");
}

/// Below no retrying layer the call itself is the attempt.
#[tokio::test(start_paused = true)]
async fn a_call_without_a_driver_deposits_too() {
    let budget = RatioConfig::new().ratio(1.0).floor_per_second(0.0);
    let budget = budget.build().unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let service = layer.layer(up());
    for _ in 0..3 {
        service.clone().oneshot(request().0).await.unwrap();
    }
    assert_eq!(budget.balance(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_success_deposits_and_takes_nothing() {
    let budget = RatioConfig::new().floor_per_second(0.0).build().unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let service = (layer, retries(3)).layer(up());
    for _ in 0..50 {
        service.clone().oneshot(request().0).await.unwrap();
    }
    assert_eq!(budget.balance(), 10);
}

/// One budget in several places of a stack is entered and asked once.
#[tokio::test(start_paused = true)]
async fn one_budget_in_several_places_is_charged_once() {
    let budget = RatioConfig::new().ratio(1.0).reserve(1).build().unwrap();
    let copy = budget.clone();
    assert!(Arc::ptr_eq(&budget.as_gate(), &copy.as_gate()));
    let upstream = down();
    let service = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget).adapter(adapter()))
        .layer(retries(9).gate(copy.as_gate()))
        .layer(retries(9).gate(budget.as_gate()))
        .layer(RetryBudgetLayer::shared(copy.clone()).adapter(adapter()))
        .service(upstream.clone());
    service.oneshot(request().0).await.unwrap();
    // One deposit and one reserve pay for two retries.
    assert_eq!((upstream.calls(), budget.balance()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn as_the_gate_of_a_retrying_layer_alone() {
    let budget = reserve(2);
    let upstream = down();
    let service = retries(9).gate(budget.as_gate()).layer(upstream.clone());
    service.oneshot(request().0).await.unwrap();
    assert_eq!((upstream.calls(), budget.balance()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_another_check_forbids_is_not_charged() {
    let budget = reserve(5);
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let service = (layer, retries(1)).layer(down());
    service.oneshot(request().0).await.unwrap();
    assert_eq!((budget.balance(), budget.snapshot().denied), (5, 0));
}
