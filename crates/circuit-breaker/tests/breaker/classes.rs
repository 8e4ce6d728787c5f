use std::time::Duration;

use tokio::time::advance;
use tower::Layer;
use tower_circuit_breaker::{Rule, State, TripReason};
use tower_spillway_core::{Class, Reading, Refused, hint::Hint, testing::script::Step};

use crate::support::*;

/// What a breaker is in after `reading` came back once, and for how long.
async fn after(reading: Reading) -> (State, Option<Duration>) {
    let layer = layer(config());
    let mut service = layer.layer(Upstream::always(answer(reading)));
    send(&mut service, request()).await.unwrap();
    let snapshot = layer.unnamed_breaker().snapshot();
    if snapshot.state == State::Open {
        assert_eq!(snapshot.reason, Some(TripReason::Held));
        assert_eq!(refused(&mut service).await.detail(), Some("held"));
    }
    (snapshot.state, snapshot.retry_in)
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_down_is_held_at_the_first_word() {
    let down = || Reading::new(Class::TargetDown);
    let minute = 60 * SECOND;
    for (reading, held) in [
        (down(), minute),
        (down().with_hint(Some(Hint::Never)), minute),
        (down().with_hint(hint(Duration::ZERO)), minute),
        (down().with_hint(hint(600 * SECOND)), 600 * SECOND),
        (down().with_hint(hint(86_400 * SECOND)), 15 * minute),
    ] {
        assert_eq!(after(reading).await, (State::Open, Some(held)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_hint_trips_only_from_a_vendors_table() {
    let long = 61 * SECOND;
    for class in [Class::Throttled, Class::Transient] {
        let reading = |wait| Reading::new(class).with_hint(hint(wait));
        assert_eq!(after(reading(long)).await.0, State::Closed);
        assert_eq!(
            after(reading(60 * SECOND).from_vendor()).await.0,
            State::Closed
        );
        let tripped = after(reading(long).from_vendor()).await;
        assert_eq!(tripped, (State::Open, Some(long)));
    }
    let fine = Reading::new(Class::Success)
        .with_hint(hint(long))
        .from_vendor();
    assert_eq!(after(fine).await.0, State::Closed);
}

#[tokio::test(start_paused = true)]
async fn after_a_hold_an_ordinary_probe() {
    let layer = layer(config());
    let steps = [Class::TargetDown, Class::Success].map(answer);
    let mut service = layer.layer(Upstream::new(steps));
    send(&mut service, request()).await.unwrap();
    advance(60 * SECOND).await;
    send(&mut service, request()).await.unwrap();
    send(&mut service, request()).await.unwrap();
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_hint_of_the_last_failure_lengthens_the_open_time() {
    for (wait, open) in [(2, 5), (30, 30)] {
        let layer = layer(config());
        let failing = Reading::new(Class::Transient).with_hint(hint(wait * SECOND));
        let mut service = layer.layer(Upstream::always(answer(failing)));
        for _ in 0..3 {
            send(&mut service, request()).await.unwrap();
        }
        assert_eq!(refused(&mut service).await.wait(), Some(open * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_about_the_target_is_not_heard() {
    let layer = layer(config());
    let silent = [
        Class::Throttled,
        Class::NotHere,
        Class::CallerFault,
        Class::Cancelled,
    ];
    let mut service = layer.layer(Upstream::new(silent.map(answer).into_iter().chain([
        Step::fail(|| Refused::new(tower_spillway_core::Refusal::Held)),
        answer(Class::Transient),
        answer(Class::Transient),
        answer(Class::NotHere),
        answer(Class::Transient),
    ])));
    for _ in 0..5 {
        let _ = send(&mut service, request()).await;
    }
    let breaker = layer.unnamed_breaker();
    assert_eq!(breaker.snapshot().failures_in_a_row, 0);
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    assert_eq!(
        breaker.snapshot().failures_in_a_row,
        2,
        "and it ends no run"
    );
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_429_trips_no_run_and_closes_nothing() {
    let layer = layer(config().rules([Rule::run(3)]).close_after(1));
    let mut service = layer.layer(Upstream::always(answer(Class::Throttled)));
    for _ in 0..100 {
        send(&mut service, request()).await.unwrap();
    }
    let breaker = layer.unnamed_breaker();
    assert_eq!(breaker.state(), State::Closed);

    let (mut service, _) = opened(&layer, [answer(Class::Throttled)]).await;
    advance(5 * SECOND).await;
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.state(), State::Open);
}

// But half of the calls that are rate-limited are as good as failed.
#[tokio::test(start_paused = true)]
async fn twenty_429s_trip_by_rate() {
    let layer = layer(config());
    let mut service = layer.layer(Upstream::always(answer(Class::Throttled)));
    for _ in 0..20 {
        send(&mut service, request()).await.unwrap();
    }
    assert_eq!(refused(&mut service).await.detail(), Some("rate"));
}

// A breaker over a breaker: the refusal of the inner one is no failure for the outer.
#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_seen_by_a_breaker_outside() {
    let (inner, outer) = (layer(config()), layer(config().failures(4)));
    let upstream = Upstream::always(answer(Class::Transient));
    let mut service = outer.layer(inner.layer(upstream.clone()));
    for _ in 0..50 {
        let _ = send(&mut service, request()).await;
    }
    assert_eq!(upstream.calls(), 3);
    assert_eq!(outer.unnamed_breaker().snapshot().failures_in_a_row, 3);
}
