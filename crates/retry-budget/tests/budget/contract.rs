//! Readiness, clones, cancellation, clock reads.

use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_retry_budget::{RatioBudget, RatioConfig, RetryBudget, RetryBudgetLayer, Snapshot};
use tower_spillway_core::{
    Class,
    testing::{
        contract::ReadyProbeLayer,
        drops,
        gate::CountingGate,
        script::{Script, Step},
    },
};

use crate::support::{SECOND, Upstream, adapter, down, request, reserve, retries, up};

#[tokio::test(start_paused = true)]
async fn every_send_uses_an_instance_that_was_polled_ready() {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let upstream = down();
        let mut service = ServiceBuilder::new()
            .layer(RetryBudgetLayer::shared(reserve(9)).adapter(adapter()))
            .layer(retries(3))
            .layer(RetryBudgetLayer::shared(reserve(9)).adapter(adapter()))
            .layer(probe.clone())
            .service(upstream.clone());
        for _ in 0..2 {
            let call = service.ready().await.unwrap().call(request().0);
            assert_eq!(call.await.unwrap(), 503);
        }
        drop(service);
        assert_eq!((upstream.calls(), probe.reserved()), (6, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_is_passed_on() {
    let ready = tower_spillway_core::testing::readiness::Readiness::new();
    ready.set_failed("pool closed");
    let layer = RetryBudgetLayer::shared(reserve(9)).adapter(adapter());
    let error = (layer, ready).layer(up()).oneshot(request().0).await;
    assert_eq!(error.unwrap_err().to_string(), "pool closed");
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_point_it_leaves_nothing_open() {
    let gate = CountingGate::allowing(usize::MAX);
    let upstream = Script::always(Step::answer(503).after(SECOND));
    let outside = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(gate.as_gate()).adapter(adapter()))
        .layer(retries(3))
        .layer(ReadyProbeLayer::pending_once())
        .service(upstream.clone());
    let inside = ServiceBuilder::new()
        .layer(retries(3))
        .layer(RetryBudgetLayer::shared(gate.as_gate()).adapter(adapter()))
        .layer(ReadyProbeLayer::pending_once())
        .service(upstream.clone());
    let mut ledger = None;
    let check = |polls| {
        gate.assert_nothing_open();
        assert_eq!(upstream.in_flight(), 0, "after {polls} polls");
    };
    let call = || {
        let (request, of_call) = request();
        ledger = Some(of_call);
        outside.clone().oneshot(request)
    };
    let drops = drops::walk(call, check).await;
    assert!(drops >= 8, "{drops}");
    let report = ledger.unwrap().report();
    assert!(report.attempts.iter().all(|a| a.class == Class::Transient));
    let drops = drops::walk(|| inside.clone().oneshot(request().0), check).await;
    assert!(drops >= 8, "{drops}");
    gate.assert_nothing_open();
}

/// What a real budget holds after each drop: exactly the retries that were sent.
#[tokio::test(start_paused = true)]
async fn row_24_drops_give_back_what_was_not_sent() {
    let upstream: Upstream = Script::always(Step::answer(503).after(SECOND));
    let budget = reserve(1_000_000);
    let service = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget).adapter(adapter()))
        .layer(retries(3))
        .layer(ReadyProbeLayer::pending_once())
        .service(upstream.clone());
    let (mut calls, mut walks) = (0, 0);
    let sent = |calls: usize, walks: usize| (calls - walks) as u64;
    drops::walk(
        || service.clone().oneshot(request().0),
        |polls| {
            // Nothing is sent before the second poll: readiness takes the first.
            walks += usize::from(polls >= 2);
            calls = upstream.calls();
            assert_eq!(
                budget.snapshot().granted,
                sent(calls, walks),
                "{polls} polls"
            );
        },
    )
    .await;
    assert!(walks >= 6 && sent(calls, walks) > 0);
}

#[tokio::test(start_paused = true)]
async fn it_reads_the_clock_no_more_than_the_layers_below_do() {
    use tower_spillway_core::testing::clock::reads_during;
    let reads = |service: tower::util::BoxCloneSyncService<_, u16, _>| {
        let mut future = Box::pin(service.oneshot(request().0));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let (out, reads) = reads_during(|| future.as_mut().poll(&mut cx));
        assert!(out.is_ready());
        reads
    };
    let budget = RatioConfig::new().build().unwrap();
    let layer = RetryBudgetLayer::shared(&budget).adapter(adapter());
    let alone = tower::util::BoxCloneSyncService::new(retries(3).layer(up()));
    let with = tower::util::BoxCloneSyncService::new((layer, retries(3)).layer(up()));
    assert_eq!(reads(with), reads(alone));
}

#[test]
fn auto_traits() {
    fn all<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    all::<RetryBudgetLayer>();
    all::<RatioBudget>();
    all::<RatioConfig>();
    all::<Snapshot>();
    all::<RetryBudget<Script<(), ()>>>();
}
