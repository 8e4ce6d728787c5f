//! A call dropped at any await point leaves no permit, no grant, no slot and no open record.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::cell::RefCell;

use common::{Req, Res, SECOND, Upstream, answer, post};
use tower::{Service, ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer};
use tower_layer::Layer;
use tower_spillway::{
    circuit_breaker::{BreakerConfig, State},
    core::testing::{
        drops,
        gate::CountingGate,
        script::{Script, Step},
    },
    prelude::*,
};

/// Throttled, failed, then well, each after a while.
fn slow() -> Upstream {
    Script::new([
        Step::answer(answer(429, &[("retry-after", "1")])).after(SECOND),
        Step::answer(answer(503, &[])).after(SECOND),
        Step::answer(answer(200, &[])).after(SECOND),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_call_through_every_layer_dropped_at_every_await_point() {
    let budget = CountingGate::allowing(usize::MAX);
    // The walk fails often on purpose.
    let breakers = CircuitBreakerLayer::with_config(BreakerConfig::new().failures(10_000)).unwrap();
    let limit = ConcurrencyLimitLayer::new(1);
    let upstreams = RefCell::new(Vec::<Upstream>::new());
    let ledgers = RefCell::new(Vec::<Ledger>::new());

    let make = || {
        let (opus, gemini) = (slow(), slow());
        upstreams
            .borrow_mut()
            .extend([opus.clone(), gemini.clone()]);
        let target = |upstream: Upstream| {
            ServiceBuilder::new()
                .layer(JitterBackoffLayer::constant(SECOND).unwrap())
                .layer(RetryAfterLayer::new())
                .layer(breakers.clone())
                .layer(AttemptTimeoutLayer::to_head(8 * SECOND))
                .layer(limit.clone())
                .service(upstream)
        };
        let failover = FailoverService::new([
            Target::new("opus", target(opus)),
            Target::new("gemini", target(gemini)),
        ]);
        let stack = ServiceBuilder::new()
            .layer(CallLayer::new().deadline(600 * SECOND))
            .layer(RetryBudgetLayer::shared(budget.as_gate()))
            .service(failover.unwrap());
        let ledger = Ledger::new();
        let mut request = post();
        request.extensions_mut().insert(ledger.clone());
        ledgers.borrow_mut().push(ledger);
        stack.oneshot(request)
    };
    let walked = drops::walk(make, |k| {
        budget.assert_nothing_open();
        let upstreams = upstreams.borrow();
        let in_flight: usize = upstreams.iter().map(Upstream::in_flight).sum();
        assert_eq!(in_flight, 0, "sent and still under way, after {k} polls");
        // What was sent is on record, each attempt once.
        let pair = &upstreams[upstreams.len() - 2..];
        let sent: usize = pair.iter().map(Upstream::calls).sum();
        let report = ledgers.borrow().last().unwrap().report();
        assert_eq!(report.sends(), sent, "after {k} polls: {report:#?}");
        let cancelled = report
            .attempts
            .iter()
            .filter(|a| a.class == Class::Cancelled);
        assert!(cancelled.count() <= 1, "after {k} polls: {report:#?}");
    })
    .await;
    assert!(walked >= 6, "{walked} points: sends, waits and a hop");
    assert!(budget.granted() > 0, "a retry was granted");
    for name in ["opus", "gemini"] {
        let snapshot = breakers.breaker(name).snapshot();
        assert_eq!(snapshot.state, State::Closed, "{name}");
    }
    // The one slot of the limit is free.
    let mut idle = limit.layer(slow());
    assert!(idle.ready().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_probe_dropped_at_every_await_point_leaves_its_slot_free() {
    let breakers = CircuitBreakerLayer::with_config(
        BreakerConfig::new()
            .failures(1)
            .open_time(SECOND)
            .jitter(0.0),
    )
    .unwrap();
    let failing: Upstream = Script::always(Step::answer(answer(500, &[])));
    breakers.layer(failing).oneshot(post()).await.unwrap();
    tokio::time::advance(2 * SECOND).await;

    let probe = || {
        let upstream: Upstream = Script::always(Step::hang());
        JitterBackoffLayer::new()
            .layer(breakers.layer(AttemptTimeoutLayer::to_head(60 * SECOND).layer(upstream)))
            .oneshot(post())
    };
    let breaker = breakers.unnamed_breaker();
    let admitted = |k: usize| {
        let mut service = breakers.layer(Script::<Req, Res>::always(Step::hang()));
        let call = service.call(post());
        let mut call = std::pin::pin!(call);
        let waker = std::task::Waker::noop();
        let poll = call
            .as_mut()
            .poll(&mut std::task::Context::from_waker(waker));
        assert!(poll.is_pending(), "refused after {k} polls: {poll:?}");
        assert_eq!(breaker.state(), State::HalfOpen, "after {k} polls");
    };
    // The first probe that runs into its timeout is a failure and opens the breaker again, which
    // ends the walk; until then each drop leaves the slot free at the same instant.
    let walked = drops::walk(|| tokio::time::timeout(30 * SECOND, probe()), admitted).await;
    assert!(walked >= 2, "{walked}");
}
