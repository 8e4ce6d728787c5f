use tokio::time::{advance, timeout};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_circuit_breaker::State;
use tower_spillway_core::{
    Abandoned, Class, Failure, Plain, Reading, TimedOut,
    call::CallLayer,
    testing::{
        contract::ReadyProbeLayer,
        drops,
        script::{Script, Step},
    },
};

use crate::support::*;

// Row 1: the future of a probe dropped at every await point; the next is admitted at once.
#[tokio::test(start_paused = true)]
async fn row_1_a_probe_dropped_anywhere_gives_its_slot_back() {
    let layer = layer(config());
    let slow = answer(Class::Success).after(SECOND);
    let (_, upstream) = opened(&layer, [slow]).await;
    let service = layer.layer(ReadyProbeLayer::pending_once().layer(upstream));
    advance(5 * SECOND).await;
    let breaker = layer.unnamed_breaker();

    let probe = || {
        let mut service = service.clone();
        async move { send(&mut service, request()).await }
    };
    let drops = drops::walk(probe, |k| {
        let snapshot = breaker.snapshot();
        assert_eq!(snapshot.state, State::HalfOpen, "after {k} polls");
        assert_eq!(snapshot.probes_out, 0, "after {k} polls");
        assert_eq!((snapshot.probes_succeeded, snapshot.probes_failed), (0, 0));
    })
    .await;
    assert!(
        drops >= 2,
        "before the first poll, and while a probe was out"
    );
    assert_eq!(
        breaker.snapshot().probes_succeeded,
        1,
        "the one that was let through"
    );
}

// Row 1, before its first poll: the permit is in the future from `call` on.
#[tokio::test(start_paused = true)]
async fn row_1_a_probe_that_is_never_polled() {
    let layer = layer(config());
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    advance(5 * SECOND).await;
    for _ in 0..100 {
        drop(service.ready().await.unwrap().call(request()));
    }
    send(&mut service, request()).await.unwrap();
    send(&mut service, request()).await.unwrap();
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
}

// Row 2: the state has moved on when a probe is dropped.
#[tokio::test(start_paused = true)]
async fn row_2_a_probe_dropped_after_the_state_moved_on() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let (mut service, _) = opened(&layer, [Step::hang()]).await;
    advance(5 * SECOND).await;
    let old = service.ready().await.unwrap().call(request());
    breaker.reset();
    let before = breaker.snapshot();
    drop(old);
    assert_eq!(breaker.snapshot(), before);

    // Again, and now another probe holds the slot of a later half-open period.
    let (mut service, _) = opened(&layer, [Step::hang()]).await;
    advance(5 * SECOND).await;
    let old = service.ready().await.unwrap().call(request());
    breaker.reset();
    let (mut service, _) = opened(&layer, [Step::hang()]).await;
    advance(5 * SECOND).await;
    let new = service.ready().await.unwrap().call(request());
    drop(old);
    assert_eq!(breaker.snapshot().probes_out, 1);
    drop(new);
    assert_eq!(breaker.snapshot().probes_out, 0);
}

// Row 29: callers that leave say nothing about the target.
#[tokio::test(start_paused = true)]
async fn row_29_a_hundred_dropped_calls_count_for_nothing() {
    let layer = layer(config());
    let upstream: Upstream = Script::always(Step::hang());
    let service = layer.layer(upstream.clone());
    for _ in 0..100 {
        let call = service.clone().oneshot(request());
        assert!(timeout(60 * SECOND, call).await.is_err());
    }
    let snapshot = layer.unnamed_breaker().snapshot();
    assert_eq!(snapshot.state, State::Closed);
    assert_eq!(snapshot.failures_in_a_row, 0);
    assert_eq!(upstream.dropped(), 100);
}

// Row 30: nor do they close anything.
#[tokio::test(start_paused = true)]
async fn row_30_a_dropped_probe_leaves_it_half_open() {
    let layer = layer(config().close_after(1));
    let (service, _) = opened(&layer, [Step::hang()]).await;
    advance(5 * SECOND).await;
    for _ in 0..10 {
        let call = service.clone().oneshot(request());
        assert!(timeout(SECOND, call).await.is_err());
        assert_eq!(layer.unnamed_breaker().state(), State::HalfOpen);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_the_deadline_cut_off_is_a_failure_if_it_was_old_enough() {
    // The age at the cut, and whether it counts: older than 5 s, not 5 s.
    for (age, counts) in [(4, false), (5, false), (6, true)] {
        let layer = layer(config());
        let adapter = Plain(|_: Result<&Reading, Failure<'_>>| Class::Success);
        let service = ServiceBuilder::new()
            .layer(CallLayer::new().deadline(age * SECOND).adapter(adapter))
            .layer(layer.clone())
            .service(Upstream::always(Step::hang()));
        let error = service.oneshot(request()).await.unwrap_err();
        assert!(error.is::<TimedOut>());
        let counted = layer.unnamed_breaker().snapshot().failures_in_a_row;
        assert_eq!(counted, u32::from(counts), "cut off after {age} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_hedge_is_no_failure() {
    let layer = layer(config().failures(1));
    let mut service = layer.layer(Upstream::always(Step::hang()));
    let (request, leg) = request_to("opus");
    let call = service.ready().await.unwrap().call(request);
    advance(60 * SECOND).await;
    leg.abandon(Abandoned::HedgeLost);
    drop(call);
    assert_eq!(layer.breaker("opus").state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_panics_is_a_failure() {
    let layer = layer(config().failures(2));
    let upstream = Script::from_fn(|n, _: &Request| -> Step<Reading> {
        match n {
            1 => panic!("in call"),
            _ => Step::answer_with(|| panic!("in the future")),
        }
    });
    let service = layer.layer(upstream);
    for _ in 0..2 {
        let call = tokio::spawn(service.clone().oneshot(request()));
        assert!(call.await.unwrap_err().is_panic());
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Open);
}

// A panic elsewhere that unwinds through a call drops it like any other.
#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_something_else_panics_is_no_failure() {
    let layer = layer(config().failures(1));
    let service = layer.layer(Upstream::always(Step::hang()));
    let outer = tokio::spawn(async move {
        let _call = service.clone().ready().await.unwrap().call(request());
        panic!("not the call's fault");
    });
    assert!(outer.await.unwrap_err().is_panic());
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
}
