//! Budgets by calls in flight, by cost and by score, in a stack.

use std::time::Duration;

use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_retry_budget::{
    ConcurrencyBudget, CostConfig, RatioConfig, RetryBudgetLayer, ScoreBudget, Weights,
};
use tower_spillway_core::{
    BoxError, Cause, TimeLimit, TimedOut,
    testing::{
        contract::ReadyProbeLayer,
        drops,
        script::{Script, Step},
    },
};

use crate::support::{SECOND, Upstream, adapter, down, request, retries, up};

/// The share of calls in flight, the waiting ones included: 20 calls fail at once, 4 may retry.
#[tokio::test(start_paused = true)]
async fn of_20_calls_in_flight_4_retry_at_once() {
    let budget = ConcurrencyBudget::default();
    let upstream: Upstream = Script::always(Step::answer(503).after(SECOND / 10));
    let service = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget).adapter(adapter()))
        .layer(retries(2))
        .service(upstream.clone());
    let calls: Vec<_> = (0..20)
        .map(|_| tokio::spawn(service.clone().oneshot(request().0)))
        .collect();
    tokio::time::sleep(SECOND / 20).await;
    assert_eq!(
        (budget.calls(), budget.limit(), budget.retries()),
        (20, 4, 0)
    );
    tokio::time::sleep(SECOND / 2).await;
    // Denied calls are over, so that 4 are in flight, waiting; no further one would be allowed.
    assert_eq!((budget.calls(), budget.retries()), (4, 4));
    assert_eq!(budget.snapshot().balance, 0);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), 503);
    }
    assert_eq!(upstream.calls(), 24);
    assert_eq!((budget.calls(), budget.retries()), (0, 0));
    assert_eq!(
        (budget.snapshot().granted, budget.snapshot().denied),
        (4, 16)
    );
}

#[tokio::test(start_paused = true)]
async fn as_the_gate_of_a_retrying_layer_calls_are_counted_too() {
    let budget = ConcurrencyBudget::new(100, 0).unwrap();
    let upstream = down();
    let service = retries(3).gate(budget.as_gate()).layer(upstream.clone());
    service.oneshot(request().0).await.unwrap();
    assert_eq!(upstream.calls(), 3);
    assert_eq!((budget.calls(), budget.retries()), (0, 0));
}

/// Rows 1 and 24: dropped at every await point nothing stays counted.
#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_point_no_call_and_no_retry_stays_in_flight() {
    let budget = ConcurrencyBudget::default();
    let upstream: Upstream = Script::always(Step::answer(503).after(SECOND));
    let service = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget).adapter(adapter()))
        .layer(retries(3))
        .layer(ReadyProbeLayer::pending_once())
        .service(upstream);
    let drops = drops::walk(
        || service.clone().oneshot(request().0),
        |polls| assert_eq!((budget.calls(), budget.retries()), (0, 0), "{polls} polls"),
    );
    assert!(drops.await >= 8);
}

/// What a retry costs comes back when it succeeds; a first attempt that succeeds earns one.
#[tokio::test(start_paused = true)]
async fn success_pays_the_cost_back() {
    let budget = CostConfig::new().start(100).build().unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let call = async |upstream: &Upstream| {
        let service = (layer.clone(), retries(3)).layer(upstream.clone());
        service.oneshot(request().0).await.unwrap();
        budget.tokens()
    };
    assert_eq!(call(&up()).await, 101.0, "a first success");
    let second = Script::new([Step::answer(503), Step::answer(200)]);
    assert_eq!(
        call(&second).await,
        101.0,
        "a retry that succeeded: no more, no less"
    );
    let third = Script::new([Step::answer(503), Step::answer(503), Step::answer(200)]);
    assert_eq!(call(&third).await, 87.0, "of two retries one failed");
    assert_eq!(call(&down()).await, 59.0, "of two retries both");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_has_its_own_price_and_a_dropped_wait_none() {
    let costs = Weights::each(5.0).timed_out(20.0);
    let budget = CostConfig::new().costs(costs).build().unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let slow: Upstream = Script::always(Step::fail(|| TimedOut::new(TimeLimit::Head, SECOND)));
    let service = (layer, retries(2)).layer(slow);
    let dropped = tokio::time::timeout(SECOND / 2, service.clone().oneshot(request().0));
    dropped.await.unwrap_err();
    assert_eq!(budget.tokens(), 500.0);
    service.oneshot(request().0).await.unwrap_err();
    assert_eq!(budget.tokens(), 480.0);
}

/// AWS: dry where more than about a fifth fail, and first attempts are never held back.
#[tokio::test(start_paused = true)]
async fn in_an_outage_the_tokens_run_out_and_traffic_brings_them_back() {
    let budget = CostConfig::new().build().unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let upstream = down();
    let failing = (layer.clone(), retries(3)).layer(upstream.clone());
    for _ in 0..100 {
        failing.clone().oneshot(request().0).await.unwrap();
    }
    // 500 tokens at 14 each.
    assert_eq!(upstream.calls(), 100 + 35);
    let healthy = (layer, retries(3)).layer(up());
    for _ in 0..14 {
        healthy.clone().oneshot(request().0).await.unwrap();
    }
    failing.oneshot(request().0).await.unwrap();
    assert_eq!(upstream.calls(), 135 + 2);
}

/// gRPC: retries until half of the tokens is gone; one success a time they come back.
#[tokio::test(start_paused = true)]
async fn a_score_stops_retries_at_half() {
    let budget = ScoreBudget::new(10, 0.5).unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let upstream = down();
    let failing = (layer.clone(), retries(4)).layer(upstream.clone());
    failing.clone().oneshot(request().0).await.unwrap();
    assert_eq!((upstream.calls(), budget.tokens()), (4, 6.0));
    failing.clone().oneshot(request().0).await.unwrap();
    assert_eq!((upstream.calls(), budget.tokens()), (5, 5.0));
    assert!(!budget.allows());
    let healthy = (layer, retries(4)).layer(up());
    for _ in 0..2 {
        healthy.clone().oneshot(request().0).await.unwrap();
    }
    assert_eq!((budget.tokens(), budget.allows()), (6.0, true));
}

/// Kinds of different weight under one share.
#[tokio::test(start_paused = true)]
async fn a_ratio_may_charge_timeouts_more() {
    let config = RatioConfig::new().ratio(0.0).reserve(6);
    let config = config.weights(Weights::EQUAL.timed_out(2.0));
    for (step, sends) in [
        (Step::answer(503), 1 + 6),
        (Step::fail(|| TimedOut::new(TimeLimit::Head, SECOND)), 1 + 3),
    ] {
        let budget = config.build().unwrap();
        let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
        let upstream: Upstream = Script::always(step);
        let _ = (layer, retries(9))
            .layer(upstream.clone())
            .oneshot(request().0)
            .await;
        assert_eq!((upstream.calls(), budget.balance()), (sends, 0));
    }
}

/// Four budgets over one call: the strictest decides, and what others gave goes back.
#[tokio::test(start_paused = true)]
async fn of_four_budgets_all_grant_or_none_is_charged() {
    let ratio = RatioConfig::new().ratio(0.0).reserve(9).build().unwrap();
    let cost = CostConfig::new().build().unwrap();
    let score = ScoreBudget::new(100, 0.1).unwrap();
    let flight = ConcurrencyBudget::new(0, 0).unwrap();
    let upstream = down();
    let service = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&ratio).adapter(adapter()))
        .layer(RetryBudgetLayer::shared(&cost).adapter(adapter()))
        .layer(RetryBudgetLayer::shared(&flight).adapter(adapter()))
        .layer(retries(9).gate(score.as_gate()))
        .service(upstream.clone());
    let (request, ledger) = request();
    service.oneshot(request).await.unwrap();
    assert_eq!(upstream.calls(), 1);
    let (waited, next) = (Duration::ZERO, SECOND);
    let cause = ledger.report().attempts[0].cause;
    assert_eq!(cause, Some(Cause::BudgetDenied { waited, next }));
    assert_eq!((ratio.balance(), cost.tokens()), (9, 500.0));
    for granted in [
        ratio.snapshot().granted,
        cost.snapshot().granted,
        score.snapshot().granted,
    ] {
        assert_eq!(granted, 0);
    }
}

/// With real threads: never more retries than the tokens pay for.
#[test]
fn threads_together_send_no_more_retries_than_the_budget_pays_for() {
    let budget = CostConfig::new()
        .costs(Weights::each(10.0))
        .build()
        .unwrap();
    let upstream = down();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
                let client = (layer, retries(3)).layer(upstream.clone());
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .start_paused(true)
                    .build();
                runtime.unwrap().block_on(async {
                    for _ in 0..50 {
                        let call = client.clone().oneshot(request().0);
                        let status: Result<u16, BoxError> = call.await;
                        assert_eq!(status.unwrap(), 503);
                    }
                });
            });
        }
    });
    assert_eq!(upstream.calls(), 8 * 50 + 50);
    assert_eq!((budget.tokens(), budget.snapshot().granted), (0.0, 50));
}

#[test]
fn auto_traits_and_debug() {
    fn all<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    all::<ConcurrencyBudget>();
    all::<ScoreBudget>();
    all::<tower_retry_budget::CostBudget>();
    all::<CostConfig>();
    all::<Weights>();
    let debug = format!("{:?}", ScoreBudget::new(10, 0.1).unwrap());
    assert_eq!(debug, "ScoreBudget { balance: 10, granted: 0, denied: 0 }");
}

/// Nonsense is named, and never taken for "no limit".
#[test]
fn row_35_each_bound_is_checked_and_named() {
    let cost = |config: CostConfig| config.build().unwrap_err().what();
    let config = CostConfig::new;
    assert_eq!(cost(config().capacity(0)), "capacity");
    assert_eq!(cost(config().capacity(1_000_001)), "capacity");
    assert_eq!(cost(config().capacity(13)), "costs");
    assert_eq!(cost(config().start(501)), "start");
    assert_eq!(cost(config().costs(Weights::each(0.0))), "weights");
    for wrong in [f64::NAN, f64::INFINITY, -1.0, 1e-9, 1e6] {
        assert_eq!(
            cost(config().first_success_credit(wrong)),
            "first_success_credit"
        );
        assert_eq!(cost(config().refill_per_second(wrong)), "refill_per_second");
        assert_eq!(ScoreBudget::new(10, wrong).unwrap_err().what(), "ratio");
    }
    for tokens in [0, 1001] {
        assert_eq!(
            ScoreBudget::new(tokens, 0.1).unwrap_err().what(),
            "max_tokens"
        );
    }
    assert_eq!(
        ConcurrencyBudget::new(101, 3).unwrap_err().what(),
        "percent"
    );
    // Three decimals count, the rest is cut.
    for (ratio, tokens) in [(0.0019, 9.001), (0.003, 9.003), (0.57, 9.57)] {
        let budget = ScoreBudget::new(10, ratio).unwrap();
        let gate = budget.as_gate();
        let now = tower_spillway_core::clock::now();
        gate.attempt_end(tower_spillway_core::Class::Transient, now);
        gate.attempt_end(tower_spillway_core::Class::Success, now);
        assert_eq!(budget.tokens(), tokens);
    }
}

/// Budgets made in one runtime and used in another, whose clock stands elsewhere; and times that
/// jump by days.
#[test]
fn clocks_that_jump_leave_no_budget_stuck() {
    let cost = CostConfig::new().start(0).refill_per_second(1.0);
    let (cost, ratio) = (cost.build().unwrap(), RatioConfig::new().build().unwrap());
    for days in [0, 1, 400, 36_500] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(async {
            tokio::time::advance(Duration::from_secs(days * 86_400)).await;
            assert!(ratio.balance() <= 10);
            assert!(cost.tokens() <= 500.0);
            if days > 0 {
                assert_eq!((ratio.balance(), cost.tokens()), (10, 500.0), "{days} days");
            }
        });
    }
}
