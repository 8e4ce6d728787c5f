//! Public reports of breakers gone wrong: the right behaviour, by the id of the row in
//! `bugs.jsonl`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod common;
mod streams;

use std::time::Duration;

use bytes::Bytes;
use common::{Req, Res, SECOND, Upstream, always, answer, get, send};
use http_body_util::BodyExt;
use streams::{Do, Told};
use tokio::time::{Instant, advance, timeout};
use tower::{Service, ServiceExt};
use tower_layer::Layer;
use tower_spillway::{
    circuit_breaker::{BreakerConfig, CircuitBreaker, Rule, State},
    core::testing::script::{Script, Step},
    prelude::*,
};

fn layer(config: BreakerConfig) -> CircuitBreakerLayer {
    CircuitBreakerLayer::with_config(config.jitter(0.0)).unwrap()
}

/// Answers with these statuses, then with 200.
fn statuses(statuses: impl IntoIterator<Item = u16>) -> Upstream {
    let last = Step::answer(answer(200, &[]));
    let steps = statuses.into_iter().map(|s| Step::answer(answer(s, &[])));
    Script::new(steps.chain([last]))
}

async fn status(service: &mut CircuitBreaker<Upstream>) -> Option<u16> {
    let out = service.ready().await.unwrap().call(get()).await;
    out.ok().map(|response: Res| response.status().as_u16())
}

#[tokio::test(start_paused = true)]
async fn breaker_counts_4xx() {
    let breakers = layer(BreakerConfig::new());
    let mut service = breakers.layer(statuses([400; 6]));
    for _ in 0..6 {
        assert_eq!(status(&mut service).await, Some(400));
    }
    let snapshot = breakers.unnamed_breaker().snapshot();
    assert_eq!((snapshot.state, snapshot.calls), (State::Closed, 0));
    assert_eq!(status(&mut service).await, Some(200));
}

#[tokio::test(start_paused = true)]
async fn one_of_one_is_100_percent() {
    let half = Rule::rate(0.5, 5, 30 * SECOND);
    let breakers = layer(BreakerConfig::new().rules([half]));
    let mut service = breakers.layer(always(500, &[]));
    for failures in 1..=5 {
        let state = breakers.unnamed_breaker().state();
        assert_eq!(state, State::Closed, "before failure {failures}");
        status(&mut service).await;
    }
    assert_eq!(breakers.unnamed_breaker().state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn halfopen_probe_never_settles() {
    let config = BreakerConfig::new().failures(12).open_time(30 * SECOND);
    let breakers = layer(config);
    let down = std::iter::repeat_n(Step::answer(answer(503, &[])), 12);
    let upstream: Upstream =
        Script::new(down.chain([Step::hang(), Step::answer(answer(200, &[]))]));
    let mut service = breakers.layer(upstream.clone());
    for _ in 0..12 {
        status(&mut service).await;
    }
    advance(30 * SECOND).await;
    let mut probing = service.clone();
    let hung = tokio::spawn(async move { status(&mut probing).await });
    advance(Duration::from_millis(1)).await;
    assert_eq!(upstream.calls(), 13, "the probe is out");
    assert_eq!(status(&mut service).await, None, "and no other");
    advance(65 * SECOND).await;
    assert_eq!(status(&mut service).await, Some(200), "r reaches A");
    hung.abort();
}

#[tokio::test(start_paused = true)]
async fn halfopen_failure_forgotten() {
    let config = BreakerConfig::new().failures(10).open_time(30 * SECOND);
    let breakers = layer(config.close_after(3));
    let mut service = breakers.layer(statuses([503; 11]));
    for _ in 0..10 {
        status(&mut service).await;
    }
    advance(30 * SECOND).await;
    assert_eq!(status(&mut service).await, Some(503));
    let breaker = breakers.unnamed_breaker();
    assert_eq!(breaker.state(), State::Open);
    advance(Duration::from_millis(10)).await;
    for _ in 0..3 {
        assert_eq!(status(&mut service).await, None);
    }
    let left = 60 * SECOND - Duration::from_millis(10);
    assert_eq!(
        breaker.snapshot().retry_in,
        Some(left),
        "the time began again"
    );
}

/// A pipeline of two targets with a breaker each.
fn pipeline(
    breakers: &CircuitBreakerLayer,
    opus: &Upstream,
    gemini: &Upstream,
) -> impl Service<Req, Response = Res, Error = BoxError, Future: Send> + Clone + use<> {
    let target = |name, upstream: &Upstream| {
        Target::new(name, breakers.layer(upstream.clone())).retry_ambiguous(true)
    };
    FailoverService::new([target("A", opus), target("B", gemini)]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn never_returns_to_primary() {
    let begin = Instant::now();
    let primary: Upstream = Script::from_fn(move |_, _: &Req| {
        let down = begin.elapsed() < 60 * SECOND;
        Step::answer(answer(if down { 503 } else { 200 }, &[]))
    });
    let fallback = always(200, &[]);
    let breakers = layer(BreakerConfig::new().max_open_time(30 * SECOND));
    let mut client = pipeline(&breakers, &primary, &fallback);
    let mut back = None;
    for _ in 0..120 {
        let before = fallback.calls();
        assert_eq!(send(&mut client, get()).await.status(), 200);
        if fallback.calls() == before {
            back.get_or_insert(begin.elapsed());
        }
        advance(SECOND).await;
    }
    let back = back.expect("it comes back");
    assert!(back >= 60 * SECOND && back <= 90 * SECOND, "{back:?}");
    assert_eq!(breakers.breaker("A").state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn no_cross_request_memory() {
    let slow = Step::answer(answer(500, &[])).after(Duration::from_millis(300));
    let (primary, fallback): (Upstream, _) = (Script::always(slow), always(200, &[]));
    let breakers = layer(BreakerConfig::new());
    let client = pipeline(&breakers, &primary, &fallback);
    for _ in 0..20 {
        // Each request on a clone of its own.
        let response = client.clone().oneshot(get()).await.unwrap();
        assert_eq!(response.status(), 200);
    }
    assert!(primary.calls() <= 6, "{}", primary.calls());
}

#[tokio::test(start_paused = true)]
async fn lease_leak_on_cancel() {
    let breakers = layer(BreakerConfig::new().failures(1).probes_at_once(64));
    let steps = std::iter::once(Step::answer(answer(500, &[])));
    let hang = std::iter::repeat_n(Step::hang(), 64);
    let upstream: Upstream = Script::new(steps.chain(hang).chain([Step::answer(answer(200, &[]))]));
    let mut service = breakers.layer(upstream);
    status(&mut service).await;
    advance(5 * SECOND).await;
    for _ in 0..64 {
        let call = service.clone().oneshot(get());
        assert!(timeout(Duration::from_millis(10), call).await.is_err());
    }
    assert_eq!(breakers.unnamed_breaker().snapshot().probes_out, 0);
    advance(SECOND).await;
    assert_eq!(status(&mut service).await, Some(200), "r is admitted");
}

#[tokio::test(start_paused = true)]
async fn src_helicone_window_snaps() {
    let most = Rule::rate(1.0, 1000, 60 * SECOND);
    let breakers = layer(BreakerConfig::new().rules([most]));
    let mut service = breakers.layer(always(500, &[]));
    advance(58 * SECOND).await;
    for _ in 0..50 {
        status(&mut service).await;
    }
    advance(3 * SECOND).await;
    let snapshot = breakers.unnamed_breaker().snapshot();
    assert_eq!(snapshot.bad_calls, 50, "at 61 s");
}

/// The slot of a probe is in the body of its stream: one that is dropped half way gives it back at
/// once, and so does one that ends.
#[tokio::test(start_paused = true)]
async fn slot_leak_on_stream_abort() {
    let upstream = tower::service_fn(|_: Req| async {
        let token = || Do::Send(Bytes::from_static(b"data: token\n\n"));
        let steps = [token(), Do::At(Duration::from_millis(100)), token()];
        Ok::<_, BoxError>(http::Response::new(Told::new(steps)))
    });
    let breakers = layer(BreakerConfig::new()).outcome_at_body_end();
    let breaker = breakers.unnamed_breaker();
    let client = breakers.layer(upstream);
    let ask = || client.clone().oneshot(get());
    breaker.trip();
    advance(5 * SECOND).await;

    let mut stream = ask().await.unwrap().into_body();
    stream.frame().await.unwrap().unwrap();
    advance(Duration::from_millis(50)).await;
    let error = ask().await.err().unwrap();
    assert!(Refused::find(&*error).is_some(), "the one slot is taken");
    drop(stream);
    let snapshot = breaker.snapshot();
    let probes = (snapshot.probes_succeeded, snapshot.probes_failed);
    assert_eq!((snapshot.probes_out, probes), (0, (0, 0)));

    for _ in 0..2 {
        assert_eq!(breaker.state(), State::HalfOpen);
        let answer = ask().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.unwrap();
    }
    assert_eq!(breaker.state(), State::Closed);
}
