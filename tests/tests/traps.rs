//! The traps of stacking, each by name. Those about keys, bodies that cannot be sent twice and
//! readiness have files of their own: `keys.rs`, `compile_fail.rs`, `contract.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use common::{Req, Res, SECOND, Upstream, always, answer, get, post, send};
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;
use tower_spillway::{
    circuit_breaker::{BreakerConfig, Rule, State},
    core::{
        NotReplayable, ReplayableBody,
        clock::Wall,
        gate::Settled,
        testing::{
            gate::CountingGate,
            readiness::Readiness,
            script::{Script, Step},
            wall::ManualWall,
        },
    },
    jitter_backoff::Jitter,
    prelude::*,
};

fn count(n: &AtomicU32) -> u32 {
    n.load(Ordering::SeqCst)
}

fn quiet() -> JitterBackoffLayer {
    JitterBackoffLayer::constant(SECOND)
        .unwrap()
        .jitter(Jitter::None)
}

fn breaker(failures: u32) -> CircuitBreakerLayer {
    let config = BreakerConfig::new()
        .rules([Rule::run(failures)])
        .open_time(5 * SECOND)
        .jitter(0.0);
    CircuitBreakerLayer::with_config(config).unwrap()
}

#[tokio::test(start_paused = true)]
async fn trap_01_a_loop_inside_a_loop_does_not_multiply_sends() {
    let upstream = always(429, &[("retry-after", "1")]);
    let inner = RetryAfterLayer::new().max_attempts(5).unwrap();
    let outer = JitterBackoffLayer::new().max_attempts(3).unwrap();
    send(&mut outer.layer(inner.layer(upstream.clone())), post()).await;
    assert_eq!(upstream.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn trap_02_no_policy_counts_across_calls() {
    let upstream = always(503, &[]);
    let mut stack = RetryAfterLayer::new().layer(quiet().layer(upstream.clone()));
    for calls in 1..4 {
        send(&mut stack, post()).await;
        assert_eq!(upstream.calls(), 3 * calls);
    }
}

#[tokio::test(start_paused = true)]
async fn trap_03_a_long_hint_is_neither_cut_nor_ignored() {
    let upstream = always(429, &[("retry-after", "61")]);
    let called = send(
        &mut JitterBackoffLayer::new().layer(upstream.clone()),
        post(),
    )
    .await;
    assert_eq!((upstream.calls(), called.took), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn trap_04_a_hint_past_the_deadline_returns_now() {
    let upstream = always(503, &[("retry-after", "30")]);
    let stack = RetryAfterLayer::new().layer(upstream.clone());
    let called = send(
        &mut CallLayer::new().deadline(10 * SECOND).layer(stack),
        post(),
    )
    .await;
    assert_eq!((called.status(), upstream.calls()), (503, 1));
    assert_eq!(called.took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn trap_05_one_budget_through_two_layers_is_asked_once_per_retry_made_and_entered_once() {
    let budget = CountingGate::allowing(9);
    let upstream = always(503, &[]);
    let mut stack = RetryAfterLayer::new()
        .gate(budget.as_gate())
        .layer(quiet().gate(budget.as_gate()).layer(upstream.clone()));
    send(&mut stack, post()).await;
    assert_eq!(upstream.calls(), 3);
    assert_eq!(budget.asked(), 2, "after the check of the attempts");
    assert_eq!(budget.entered_and_left(), (1, 1));
    assert!(!budget.settled().contains(&Settled::NotSent));
}

#[tokio::test(start_paused = true)]
async fn trap_06_every_no_gives_the_original_answer_byte_for_byte() {
    let original = |called: common::Called| async move {
        let response = called.out.unwrap();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["x-original"], "yes");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "status 503");
    };
    let failing = || always(503, &[("x-original", "yes")]);

    let denies = CountingGate::allowing(0);
    let stack = quiet().gate(denies.as_gate()).layer(failing());
    original(send(&mut { stack }, post()).await).await;

    let stack = CallLayer::new()
        .deadline(SECOND / 2)
        .layer(quiet().layer(failing()));
    original(send(&mut { stack }, post()).await).await;

    // Not ready again after the wait.
    let readiness = Readiness::new();
    let mut stack = quiet().layer(readiness.layer(failing()));
    let (called, ()) = tokio::join!(send(&mut stack, post()), async {
        tokio::time::sleep(SECOND / 2).await;
        readiness.set_failed("gone");
    });
    original(called).await;
}

#[tokio::test(start_paused = true)]
async fn trap_07_a_breaker_inside_counts_attempts_and_neither_its_refusals_nor_dropped_calls() {
    let breakers = breaker(3);
    let upstream = always(503, &[]);
    let mut stack = quiet().layer(breakers.layer(upstream.clone()));
    send(&mut stack, post()).await;
    assert_eq!(
        breakers.unnamed_breaker().state(),
        State::Open,
        "3 attempts of one call"
    );
    for _ in 0..10 {
        send(&mut stack, post()).await;
    }
    tokio::time::advance(5 * SECOND).await;
    assert_eq!(upstream.calls(), 3);
    send(&mut stack, post()).await;
    assert_eq!(
        upstream.calls(),
        4,
        "the refusals did not lengthen the open time"
    );

    let breakers = breaker(1);
    let hanging: Upstream = Script::always(Step::hang());
    let mut stack = breakers.layer(hanging.clone());
    for _ in 0..100 {
        let call = send(&mut stack, post());
        let _ = tokio::time::timeout(SECOND, call).await.unwrap_err();
    }
    assert_eq!(hanging.calls(), 100);
    assert_eq!(breakers.unnamed_breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn trap_08_a_refusal_is_not_backed_off_and_stops_its_own_leg_only() {
    let (opus, gemini) = (always(200, &[]), always(503, &[]));
    let breakers = breaker(100);
    let stack = |upstream: &Upstream| quiet().layer(breakers.layer(upstream.clone()));
    let mut service = FailoverService::new([
        Target::new("opus", stack(&opus)),
        Target::new("gemini", stack(&gemini)),
    ])
    .unwrap();
    breakers.breaker("opus").force_open();
    let called = send(&mut service, post()).await;
    assert_eq!(
        (opus.calls(), gemini.calls()),
        (0, 3),
        "the next target retries in full"
    );
    assert_eq!(called.took, 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn trap_09_an_open_breaker_is_ready_and_refuses_without_polling_inner() {
    let readiness = Readiness::new();
    let breakers = breaker(1);
    let mut service = breakers.layer(readiness.layer(always(500, &[])));
    send(&mut service, post()).await;
    readiness.set_pending();
    let called = send(&mut service, post()).await;
    assert_eq!(called.took, Duration::ZERO);
    let error = called.out.unwrap_err();
    assert_eq!(Refused::find(&*error).unwrap().wait(), Some(5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn trap_10_the_probe_slot_is_taken_in_call_and_given_back_in_drop() {
    let breakers = breaker(1);
    let upstream: Upstream = Script::from_fn(|n, _| match n {
        1 => Step::answer(answer(500, &[])),
        2 => Step::hang(),
        _ => Step::answer(answer(200, &[])),
    });
    let mut service = breakers.layer(upstream.clone());
    send(&mut service, post()).await;
    tokio::time::advance(5 * SECOND).await;
    // Ready and never called: no slot is taken.
    let mut idle = service.clone();
    idle.ready().await.unwrap();
    let probe = send(&mut service, post());
    let _ = tokio::time::timeout(SECOND / 10, probe).await.unwrap_err();
    assert_eq!(upstream.calls(), 2, "the probe was sent, and dropped");
    let called = send(&mut service, post()).await;
    assert_eq!(called.status(), 200, "the next probe is admitted at once");
    drop(idle);
}

#[tokio::test(start_paused = true)]
async fn trap_11_a_429_neither_trips_the_run_nor_closes_a_half_open_breaker() {
    let breakers = breaker(3);
    let mut service = breakers.layer(always(429, &[]));
    for _ in 0..50 {
        send(&mut service, post()).await;
    }
    assert_eq!(breakers.unnamed_breaker().state(), State::Closed);

    let breakers = breaker(1);
    let upstream: Upstream = Script::new([
        Step::answer(answer(500, &[])),
        Step::answer(answer(429, &[])),
    ]);
    let mut service = breakers.layer(upstream);
    send(&mut service, post()).await;
    tokio::time::advance(5 * SECOND).await;
    send(&mut service, post()).await;
    assert_ne!(breakers.unnamed_breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn trap_13_a_layer_that_drops_extensions_brings_multiplied_sends_back_and_is_noticed() {
    let upstream = always(503, &[]);
    let inner = quiet().layer(upstream.clone());
    let forgetful = service_fn(move |request: Req| {
        let (parts, body) = request.into_parts();
        let mut fresh = Request::new(body);
        *fresh.method_mut() = parts.method;
        inner.clone().oneshot(fresh)
    });
    let called = send(&mut quiet().layer(forgetful.clone()), post()).await;
    assert_eq!(
        upstream.calls(),
        9,
        "each attempt of the outer one is driven below"
    );
    assert_eq!(called.report.sends(), 3, "which its record cannot know");

    // Without a driver above the layer in between, the call's ledger reaches nobody: the warning
    // of `warn_if_detached` says so.
    let warnings = common::warnings(async {
        let stack = CallLayer::new().warn_if_detached().layer(forgetful);
        send(&mut { stack }, post()).await;
        let stack = CallLayer::new()
            .warn_if_detached()
            .layer(quiet().layer(always(200, &[])));
        send(&mut { stack }, post()).await;
    })
    .await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("no retrying layer saw the ledger"));
}

#[tokio::test(start_paused = true)]
async fn trap_15_a_backoff_around_a_failover_does_not_multiply_targets() {
    let (opus, gemini) = (always(503, &[]), always(503, &[]));
    let failover = FailoverService::new([
        Target::new("opus", quiet().layer(opus.clone())),
        Target::new("gemini", quiet().layer(gemini.clone())),
    ])
    .unwrap();
    send(&mut quiet().layer(failover), post()).await;
    assert_eq!((opus.calls(), gemini.calls()), (2, 3));
}

/// A body that can be read once.
struct Once;

impl ReplayableBody for Once {
    fn try_replay(&self) -> Result<Self, NotReplayable> {
        Err(NotReplayable::new("it streams from a file"))
    }
}

#[tokio::test(start_paused = true)]
async fn trap_16_a_body_that_cannot_be_sent_twice_is_sent_once_and_says_so() {
    let client = service_fn(|_: Request<Once>| async { Ok::<Res, BoxError>(answer(503, &[])) });
    let ledger = Ledger::new();
    let mut request = Request::post("/").body(Once).unwrap();
    request.extensions_mut().insert(ledger.clone());
    let response = quiet().layer(client).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 503);
    let report = ledger.report();
    assert_eq!(report.sends(), 1);
    assert_eq!(report.attempts[0].cause, Some(Cause::NotReplayable));
}

/// A body of this length that may break.
#[derive(Clone, Debug)]
struct Sized {
    length: u64,
    breaks: bool,
    dropped: Arc<AtomicU32>,
}

impl http_body::Body for Sized {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.breaks.then(|| Err("cut".into())))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

impl Drop for Sized {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn with_body(
    status: u16,
    body: impl Fn() -> Sized + Send + Sync + 'static,
) -> Script<Req, Response<Sized>> {
    Script::always(Step::answer_with(move || {
        let mut response = Response::new(body());
        *response.status_mut() = common::server::status_of(status);
        response
    }))
}

#[tokio::test(start_paused = true)]
async fn trap_17_after_a_200_head_nothing_is_retried() {
    let upstream = with_body(200, || Sized {
        length: 10,
        breaks: true,
        dropped: Arc::default(),
    });
    let response = quiet()
        .layer(upstream.clone())
        .oneshot(get())
        .await
        .unwrap();
    assert!(
        response.into_body().collect().await.is_err(),
        "the caller's to see"
    );
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_19_a_large_answer_is_let_go_before_the_wait_a_small_one_is_kept() {
    for (length, dropped_in_the_wait) in [(64 * 1024, 0), (64 * 1024 + 1, 1)] {
        let dropped = Arc::new(AtomicU32::new(0));
        let seen = dropped.clone();
        let upstream = with_body(503, move || Sized {
            length,
            breaks: false,
            dropped: seen.clone(),
        });
        let call = tokio::spawn(quiet().layer(upstream).oneshot(get()));
        tokio::time::sleep(SECOND / 2).await;
        assert_eq!(count(&dropped), dropped_in_the_wait, "{length} bytes");
        call.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn trap_20_what_may_be_sent_again_by_method_and_outcome() {
    for (status, headers, post_sends) in [
        (429, &[][..], 3),
        (503, &[][..], 3),
        (408, &[("connection", "close")][..], 3),
        (408, &[][..], 1),
        (500, &[][..], 1),
        (502, &[][..], 1),
        (504, &[][..], 1),
        (400, &[][..], 1),
    ] {
        let upstream = always(status, headers);
        send(&mut quiet().layer(upstream.clone()), post()).await;
        assert_eq!(upstream.calls(), post_sends, "POST, {status} {headers:?}");
        let upstream = always(status, headers);
        send(&mut quiet().layer(upstream.clone()), get()).await;
        let get_sends = if status == 400 { 1 } else { 3 };
        assert_eq!(upstream.calls(), get_sends, "GET, {status} {headers:?}");
    }
    let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let upstream: Upstream = Script::always(Step::fail(refused));
    send(&mut quiet().layer(upstream.clone()), post()).await;
    assert_eq!(upstream.calls(), 3, "nothing was sent");
    let reset = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let upstream: Upstream = Script::always(Step::fail(reset));
    send(&mut quiet().layer(upstream.clone()), post()).await;
    assert_eq!(upstream.calls(), 1, "it may have been processed");
}

#[tokio::test(start_paused = true)]
async fn trap_21_huge_hints_and_schedules_saturate() {
    let upstream = always(429, &[("retry-after", "99999999999999999999999999")]);
    let patient = RetryAfterLayer::new().longest_wait(Duration::MAX);
    let mut stack = CallLayer::new()
        .deadline(Duration::MAX)
        .layer(patient.layer(upstream.clone()));
    let call = send(&mut stack, post());
    let waiting = tokio::time::timeout(86_400 * SECOND, call).await;
    assert!(waiting.is_err(), "it waits for the end of time");
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_22_a_date_is_measured_by_the_injected_wall_clock() {
    let wall = ManualWall::at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480));
    let adapter = Http::new().wall_clock(Wall::new(wall));
    let upstream: Upstream = Script::new([
        Step::answer(answer(
            429,
            &[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")],
        )),
        Step::answer(answer(200, &[])),
    ]);
    let layer = RetryAfterLayer::new()
        .jitter(tower_spillway::core::hint::Jitter::None)
        .adapter(adapter);
    let called = send(&mut layer.layer(upstream), post()).await;
    assert_eq!(called.took, 30 * SECOND);
}
