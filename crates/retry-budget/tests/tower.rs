//! Budgets of `tower` and ours in each other's place.
#![cfg(feature = "tower")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{sync::Arc, time::Duration};

use tower::{
    Layer, ServiceExt,
    retry::budget::{Budget, TpsBudget},
};
use tower_retry_budget::{
    CostConfig, RatioConfig, RetryBudgetLayer, ScoreBudget, tower::TowerGate,
};
use tower_spillway_core::{
    BoxError, Carried, Class, Failure, History, Outcome, Plain, RetryLayer, Verdict,
    testing::script::{Script, Step},
};

fn granted(budget: &impl Budget, asks: usize) -> usize {
    (0..asks).filter(|_| budget.withdraw()).count()
}

/// What tower's own grants in full from a ratio of 0.6 on.
#[tokio::test(start_paused = true)]
async fn the_ratio_holds_where_towers_own_does_not() {
    for (ratio, retries) in [(0.3, 300), (0.6, 600), (0.75, 750), (0.99, 990)] {
        let config = RatioConfig::new().ratio(ratio).floor_per_second(0.0);
        let budget = config.build().unwrap();
        (0..1000).for_each(|_| budget.deposit());
        assert_eq!(granted(&budget, 1000), retries, "{ratio}");
    }
}

#[tokio::test(start_paused = true)]
async fn costs_and_scores_serve_too() {
    let cost = CostConfig::new().start(0).build().unwrap();
    (0..28).for_each(|_| cost.deposit());
    assert_eq!(granted(&cost, 9), 2, "14 first successes pay for one retry");
    let score = ScoreBudget::new(10, 1.0).unwrap();
    assert_eq!(granted(&score, 9), 4, "the fifth failure leaves half");
    (0..9).for_each(|_| score.deposit());
    assert!(score.withdraw());
}

#[test]
fn threads_get_exactly_what_is_there() {
    let config = RatioConfig::new().ratio(0.0).reserve(10);
    let budget = config.build().unwrap();
    let barrier = std::sync::Barrier::new(64);
    let all: usize = std::thread::scope(|scope| {
        let asking = || {
            barrier.wait();
            granted(&budget, 10)
        };
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(asking)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(all, 10);
}

/// One budget of tower's bounds our layers, by each call's one deposit.
#[tokio::test(start_paused = true)]
async fn a_budget_of_tower_is_a_gate() {
    let adapter = Plain(|out: Result<&u16, Failure<'_>>| match out {
        Ok(..400) => Class::Success,
        _ => Class::Transient,
    });
    let budget = Arc::new(TpsBudget::new(Duration::from_secs(10), 0, 0.5));
    struct Shared(Arc<TpsBudget>);
    impl Budget for Shared {
        fn deposit(&self) {
            self.0.deposit();
        }

        fn withdraw(&self) -> bool {
            self.0.withdraw()
        }
    }
    let gate = TowerGate::new(Shared(budget.clone()));
    let again = gate.clone();
    assert!(Arc::ptr_eq(&gate.as_gate(), &again.as_gate()));
    let always = |_: &History, _: &Outcome<'_, u16>| Verdict::Retry {
        after: Duration::from_millis(1),
    };
    let upstream: Script<Carried<u8>, u16> = Script::always(Step::answer(503));
    let client = (
        RetryBudgetLayer::shared(gate).adapter(adapter),
        RetryLayer::new(always)
            .gate(again.as_gate())
            .adapter(adapter),
    )
        .layer(upstream.clone());
    for _ in 0..10 {
        let out: Result<u16, BoxError> = client.clone().oneshot(Carried::new(1)).await;
        assert_eq!(out.unwrap(), 503);
    }
    assert_eq!(upstream.calls(), 10 + 5, "half of the calls once more");
    assert!(!budget.withdraw());
}
