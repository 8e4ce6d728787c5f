use std::time::Duration;

use tokio::time::advance;
use tower::{Layer, Service, ServiceExt};
use tower_circuit_breaker::{Refusal, State};
use tower_spillway_core::{
    Class,
    testing::script::{Script, Step},
};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn an_outage_from_end_to_end() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let steps = [Class::Transient, Class::Success].map(answer);
    let (mut service, upstream) = opened(&layer, steps).await;

    let first = refused(&mut service).await;
    assert_eq!(first.refusal(), Refusal::Open);
    assert_eq!(first.wait(), Some(5 * SECOND));
    assert_eq!(first.detail(), Some("consecutive"));
    advance(SECOND).await;
    assert_eq!(refused(&mut service).await.wait(), Some(4 * SECOND));
    assert_eq!(upstream.calls(), 3);

    // Exactly what the refusal said. The probe fails: twice as long.
    advance(4 * SECOND).await;
    assert_eq!(breaker.state(), State::HalfOpen);
    send(&mut service, request()).await.unwrap();
    let second = refused(&mut service).await;
    assert_eq!(second.wait(), Some(10 * SECOND));
    assert_eq!(second.detail(), Some("probe_failed"));

    advance(10 * SECOND).await;
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.state(), State::HalfOpen);
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.state(), State::Closed);
    for _ in 0..10 {
        send(&mut service, request()).await.unwrap();
    }
    assert_eq!(upstream.calls(), 3 + 1 + 2 + 10);
}

// Row 4: all clones rush in at the end of the open time.
#[tokio::test(start_paused = true)]
async fn row_4_of_100_clones_only_the_allowed_probes_get_in() {
    for probes in [1, 3] {
        let layer = layer(config().probes_at_once(probes).close_after(3));
        let slow = answer(Class::Success).after(SECOND);
        let (service, upstream) = opened(&layer, [slow]).await;
        advance(5 * SECOND).await;

        let calls: Vec<_> = (0..100)
            .map(|_| tokio::spawn(service.clone().oneshot(request())))
            .collect();
        let mut refusals = 0;
        for call in calls {
            if let Err(error) = call.await.unwrap() {
                let refused = tower_circuit_breaker::Refused::find(&*error).unwrap();
                assert_eq!(refused.refusal(), Refusal::ProbesBusy);
                assert_eq!(refused.wait(), Some(5 * SECOND), "the lease");
                assert_eq!(refused.detail(), Some("consecutive"));
                refusals += 1;
            }
        }
        let probes = probes as usize;
        assert_eq!((upstream.calls(), refusals), (3 + probes, 100 - probes));
    }
}

// Row 6: a call from before the outage ends well while a probe is out.
#[tokio::test(start_paused = true)]
async fn row_6_a_late_success_closes_nothing() {
    let layer = layer(config().close_after(1));
    let upstream = Script::from_fn(|n, _: &Request| match n {
        1 => answer(Class::Success).after(7 * SECOND),
        2..=4 => answer(Class::Transient),
        _ => Step::hang(),
    });
    let mut service = layer.layer(upstream.clone());
    let late = tokio::spawn(service.clone().oneshot(request()));
    tokio::task::yield_now().await;
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    advance(5 * SECOND).await;
    let probe = service.ready().await.unwrap().call(request());
    let breaker = layer.unnamed_breaker();
    assert_eq!(breaker.state(), State::HalfOpen);
    assert_eq!(late.await.unwrap().unwrap().class(), Class::Success);
    assert_eq!(breaker.state(), State::HalfOpen);
    assert_eq!(breaker.snapshot().probes_succeeded, 0);
    assert_eq!(refused(&mut service).await.refusal(), Refusal::ProbesBusy);
    drop(probe);
}

// Row 7: failures that were under way when it opened.
#[tokio::test(start_paused = true)]
async fn row_7_late_failures_do_not_prolong() {
    let layer = layer(config());
    let slow = answer(Class::Transient).after(4 * SECOND);
    let upstream = Script::from_fn(move |n, _: &Request| match n {
        1..=5 => slow.clone(),
        _ => answer(Class::Transient),
    });
    let mut service = layer.layer(upstream);
    let late: Vec<_> = (0..5)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    tokio::task::yield_now().await;
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    for call in late {
        call.await.unwrap().unwrap();
    }
    assert_eq!(refused(&mut service).await.wait(), Some(SECOND));
    assert_eq!(layer.unnamed_breaker().snapshot().trips, 1);
}

#[tokio::test(start_paused = true)]
async fn a_hung_probe_is_not_the_end() {
    let layer = layer(config());
    let steps = [Step::hang(), answer(Class::Success)];
    let (mut service, upstream) = opened(&layer, steps).await;
    advance(5 * SECOND).await;
    let hung = service.ready().await.unwrap().call(request());
    assert_eq!(refused(&mut service).await.refusal(), Refusal::ProbesBusy);
    advance(5 * SECOND).await;
    send(&mut service, request()).await.unwrap();
    send(&mut service, request()).await.unwrap();
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
    drop(hung);
    assert_eq!((upstream.dropped(), upstream.calls()), (1, 6));
}

#[tokio::test(start_paused = true)]
async fn row_14_and_32_the_longest_and_the_shortest_open_time() {
    let century = SECOND * 3_155_760_000;
    let longest = layer(config().open_time(Duration::MAX));
    let (mut service, _) = opened(&longest, [answer(Class::Success)]).await;
    assert!(refused(&mut service).await.wait() > Some(century));

    for open_time in [Duration::ZERO, Duration::from_nanos(1)] {
        let layer = layer(config().open_time(open_time));
        let steps = [Class::Transient, Class::Transient, Class::Success].map(answer);
        let (mut service, upstream) = opened(&layer, steps).await;
        for _ in 0..4 {
            advance(4 * open_time).await;
            send(&mut service, request()).await.unwrap();
        }
        assert_eq!(layer.unnamed_breaker().state(), State::Closed);
        assert_eq!(upstream.calls(), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn row_9_days_pass_between_two_calls() {
    let layer = layer(config());
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    advance(SECOND * 86_400 * 60).await;
    send(&mut service, request()).await.unwrap();
    send(&mut service, request()).await.unwrap();
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
}
