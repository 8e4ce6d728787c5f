use tokio::time::advance;
use tower::{Layer, Service, ServiceExt};
use tower_circuit_breaker::{Refusal, State};
use tower_spillway_core::{Class, testing::script::Step};

use crate::support::*;

// Row 33: opened by hand, then the open time of an earlier trip passes.
#[tokio::test(start_paused = true)]
async fn row_33_forced_open_stays_until_somebody_says_otherwise() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    breaker.force_open();
    advance(SECOND * 86_400).await;
    let refusal = refused(&mut service).await;
    assert_eq!(refusal.refusal(), Refusal::ForcedOpen);
    assert_eq!((refusal.wait(), refusal.detail()), (None, None));
    assert_eq!(breaker.state(), State::ForcedOpen);
    breaker.force_close();
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn forced_open_during_a_probe_is_not_undone_by_it() {
    let layer = layer(config().close_after(1));
    let breaker = layer.unnamed_breaker();
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    advance(5 * SECOND).await;
    let probe = service.ready().await.unwrap().call(request());
    breaker.force_open();
    probe.await.unwrap();
    assert_eq!(breaker.state(), State::ForcedOpen);
}

#[tokio::test(start_paused = true)]
async fn force_close_starts_open_times_again_and_reset_forgets_all() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let (mut service, _) = opened(&layer, [answer(Class::Transient)]).await;
    advance(5 * SECOND).await;
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.snapshot().reopenings, 1);
    breaker.force_close();
    assert_eq!(breaker.snapshot().reopenings, 0);
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    assert_eq!(refused(&mut service).await.wait(), Some(5 * SECOND));
    assert_eq!(breaker.snapshot().trips, 3);
    breaker.reset();
    let snapshot = breaker.snapshot();
    assert_eq!((snapshot.state, snapshot.trips), (State::Closed, 0));
    send(&mut service, request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn looking_changes_nothing() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let (_service, _) = opened(&layer, [Step::hang()]).await;
    advance(5 * SECOND).await;
    let generation = breaker.snapshot().generation;
    for _ in 0..10 {
        assert_eq!(breaker.state(), State::HalfOpen);
        assert_eq!(breaker.snapshot().generation, generation);
        assert_eq!(breaker.snapshot().retry_in, None);
    }
}

// Row 37: nothing runs beside the calls: no runtime is needed, and nothing outlives the service.
#[test]
fn row_37_no_background_task() {
    let layer = layer(config());
    let mut service = layer.layer(Upstream::always(answer(Class::Transient)));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    for n in 0..5 {
        assert!(service.poll_ready(&mut cx).is_ready());
        let mut call = std::pin::pin!(service.call(request()));
        match call.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(out) => assert_eq!(out.is_ok(), n < 3),
            std::task::Poll::Pending => panic!("nobody would wake it"),
        }
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn row_37_no_task_in_a_runtime() {
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = alive();
    let layer = layer(config());
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    refused(&mut service).await;
    advance(5 * SECOND).await;
    send(&mut service, request()).await.unwrap();
    assert_eq!(alive(), before);
}
