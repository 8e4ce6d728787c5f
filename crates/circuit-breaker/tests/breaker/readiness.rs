use std::time::Duration;

use tokio::time::advance;
use tower::{Layer, Service, ServiceExt};
use tower_circuit_breaker::{Refusal, Refused, State};
use tower_spillway_core::{
    Class,
    testing::{
        contract::ReadyProbeLayer,
        readiness::Readiness,
        script::{Script, Step},
    },
};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn inner_is_called_only_by_the_instance_that_was_ready() {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let steps = [
            Class::Transient,
            Class::Transient,
            Class::Transient,
            Class::Success,
        ];
        let upstream = Script::new(steps.map(answer));
        let layer = layer(config());
        let mut service = layer.layer(probe.layer(upstream.clone()));
        let mut clone = service.clone();
        for _ in 0..2 {
            send(&mut service, request()).await.unwrap();
            if layer.unnamed_breaker().state() == State::Closed {
                send(&mut clone, request()).await.unwrap();
            }
        }
        for _ in 0..3 {
            refused(&mut service).await;
            refused(&mut clone).await;
        }
        advance(5 * SECOND).await;
        for _ in 0..3 {
            send(&mut clone, request()).await.unwrap();
            send(&mut service, request()).await.unwrap();
        }
        drop(clone);
        assert_eq!(upstream.calls(), 3 + 6);
        drop(service);
        assert_eq!(probe.reserved(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn while_open_a_pending_inner_keeps_nobody_waiting() {
    let readiness = Readiness::new();
    let layer = layer(config());
    let upstream: Upstream = Script::always(answer(Class::Transient));
    let mut service = layer.layer(readiness.layer(upstream.clone()));
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    readiness.set_pending();
    assert_eq!(refused(&mut service).await.refusal(), Refusal::Open);
    readiness.set_failed("inner is gone");
    assert_eq!(refused(&mut service).await.refusal(), Refusal::Open);
    // When the open time is over, inner answers for itself.
    advance(5 * SECOND).await;
    let error = service.ready().await.unwrap_err();
    assert_eq!(error.to_string(), "inner is gone");
    assert_eq!(upstream.calls(), 3);
    assert_eq!(layer.unnamed_breaker().snapshot().probes_failed, 0);
}

#[tokio::test(start_paused = true)]
async fn ready_without_inner_is_refused_even_if_the_open_time_has_ended_since() {
    let probe = ReadyProbeLayer::new();
    let layer = layer(config());
    let upstream: Upstream = Script::always(answer(Class::Transient));
    let mut service = layer.layer(probe.layer(upstream.clone()));
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    assert!(ready_now(&mut service));
    advance(6 * SECOND).await;
    // The probe under it panics if it is called now.
    let error = service.call(request()).await.unwrap_err();
    let refused = Refused::find(&*error).unwrap();
    assert_eq!(refused.refusal(), Refusal::Open);
    assert_eq!(refused.wait(), Some(Duration::ZERO));
    assert_eq!(layer.unnamed_breaker().snapshot().probes_out, 0);
    // Once only: the next readiness is inner's.
    send(&mut service, request()).await.unwrap();
    assert_eq!(upstream.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn polled_again_after_the_open_time_it_asks_inner_and_so_does_a_clone() {
    let probe = ReadyProbeLayer::new();
    let layer = layer(config());
    let upstream: Upstream = Script::new(
        [
            Class::Transient,
            Class::Transient,
            Class::Transient,
            Class::Success,
        ]
        .map(answer),
    );
    let mut service = layer.layer(probe.layer(upstream.clone()));
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    assert!(ready_now(&mut service));
    let mut clone = service.clone();
    assert_eq!(probe.reserved(), 0, "inner is not asked while open");
    advance(5 * SECOND).await;
    for service in [&mut service, &mut clone] {
        assert!(ready_now(service));
        assert_eq!(probe.reserved(), 1);
        service.call(request()).await.unwrap();
    }
    assert_eq!(upstream.calls(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_permit_is_taken_in_call_and_not_in_poll_ready() {
    let layer = layer(config());
    let (service, _) = opened(&layer, [answer(Class::Success)]).await;
    advance(5 * SECOND).await;
    let mut waiting: Vec<_> = (0..10).map(|_| service.clone()).collect();
    for service in &mut waiting {
        assert!(ready_now(service));
    }
    assert_eq!(layer.unnamed_breaker().snapshot().probes_out, 0);
    let mut last = waiting.pop().unwrap();
    last.call(request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn opened_between_ready_and_call() {
    let layer = layer(config());
    let upstream: Upstream = Script::always(answer(Class::Transient));
    let mut service = layer.layer(upstream.clone());
    let mut waiting = service.clone();
    assert!(ready_now(&mut waiting));
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    let error = waiting.call(request()).await.unwrap_err();
    assert!(Refused::find(&*error).is_some());
    assert_eq!(upstream.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_inner_stays_downcastable_and_counts() {
    #[derive(Debug, PartialEq)]
    struct Gone(u8);
    impl std::fmt::Display for Gone {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("gone")
        }
    }
    impl std::error::Error for Gone {}

    let layer = layer(config());
    let mut service = layer.layer(Upstream::always(Step::fail(|| Gone(3))));
    for _ in 0..3 {
        let error = send(&mut service, request()).await.unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Gone(3)));
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Open);
}
