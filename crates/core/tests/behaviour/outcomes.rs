//! Every "no" returns the original outcome.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use tower::{Layer, ServiceBuilder};
use tower_spillway_core::{
    BoxError, Cause, Ledger, NotReplayable, ReplayableBody, RetryLayer, TimeLimit, TimedOut,
    call::CallLayer,
    testing::{
        readiness::Readiness,
        script::{Script, Step},
    },
};

use crate::support::*;

fn with_ledger<B>(mut request: Request<B>) -> (Request<B>, Ledger) {
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    (request, ledger)
}

async fn assert_original(out: Response<Body>) {
    assert_eq!(out.status(), 503);
    assert_eq!(out.headers()["x-request-id"], "first");
    assert_eq!(text(out.into_body()).await, "body of a 503");
}

fn first() -> Step<Response<Body>> {
    answer(503, &[("x-request-id", "first")])
}

#[tokio::test(start_paused = true)]
async fn readiness_that_fails_on_a_retry_gives_the_outcome_in_hand() {
    let readiness = Readiness::new();
    let fail = readiness.clone();
    let upstream = Script::from_fn(move |_, _| {
        fail.set_failed("closed");
        first()
    });
    let client = RetryLayer::new(retry(SECOND)).layer(readiness.layer(upstream.clone()));
    let (request, ledger) = with_ledger(request(Method::GET));
    assert_original(call(&client, request).await.unwrap()).await;
    let report = ledger.report();
    assert_eq!(report.attempts.len(), 1);
    assert_eq!(report.attempts[0].cause, Some(Cause::NotReady));
    assert_eq!(report.latency, SECOND, "the wait is part of the latency");
}

#[tokio::test(start_paused = true)]
async fn an_error_in_hand_is_returned_too() {
    let readiness = Readiness::new();
    let fail = readiness.clone();
    let upstream = Script::from_fn(move |_, _: &tower_spillway_core::Carried<u64>| {
        fail.set_failed("closed");
        Step::<u16>::fail(|| std::io::Error::other("the first"))
    });
    let client = plain_retry(retry(SECOND), sends(5)).layer(readiness.layer(upstream));
    let error = call(&client, tower_spillway_core::Carried::new(1))
        .await
        .unwrap_err();
    assert_eq!(
        error.downcast_ref::<std::io::Error>().unwrap().to_string(),
        "the first"
    );
}

#[tokio::test(start_paused = true)]
async fn the_deadline_passes_while_waiting_for_readiness() {
    let readiness = Readiness::new();
    let block = readiness.clone();
    let upstream = Script::from_fn(move |_, _| {
        block.set_pending();
        first()
    });
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(10 * SECOND))
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(readiness)
        .service(upstream.clone());
    let (request, ledger) = with_ledger(request(Method::GET));
    assert_original(call(&client, request).await.unwrap()).await;
    assert_eq!(upstream.calls(), 1);
    let report = ledger.report();
    assert_eq!(report.latency, 10 * SECOND);
    assert_eq!(report.attempts[0].cause, Some(Cause::DeadlineWouldPass));
}

#[tokio::test(start_paused = true)]
async fn readiness_that_comes_in_time_sends_at_once() {
    let readiness = Readiness::new();
    let block = readiness.clone();
    let upstream = Script::from_fn(move |n, _| {
        block.set_pending();
        if n == 1 { first() } else { answer(200, &[]) }
    });
    let client = RetryLayer::new(retry(SECOND)).layer(readiness.layer(upstream.clone()));
    let unblock = async {
        tokio::time::sleep(4 * SECOND).await;
        readiness.set_ready();
    };
    let (out, ()) = tokio::join!(call(&client, request(Method::GET)), unblock);
    assert_eq!(out.unwrap().status(), 200);
    assert_eq!(upstream.times(), [Duration::ZERO, 4 * SECOND]);
}

// -- what is held while waiting --------------------------------------------------------------

/// A body of a known size that counts how many of it are alive.
struct Sized {
    size: u64,
    alive: Arc<AtomicUsize>,
}

impl Sized {
    fn new(size: u64, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self {
            size,
            alive: alive.clone(),
        }
    }
}

impl Drop for Sized {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl http_body::Body for Sized {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.size)
    }
}

const MOST_HELD: u64 = 64 * 1024;

#[tokio::test(start_paused = true)]
async fn a_large_body_is_not_held_while_waiting() {
    for (size, held) in [(MOST_HELD, 1), (MOST_HELD + 1, 0)] {
        let alive = Arc::new(AtomicUsize::new(0));
        let bodies = alive.clone();
        let readiness = Readiness::new();
        let upstream = Script::always(Step::answer_with(move || {
            let mut response = Response::new(Sized::new(size, &bodies));
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            response
        }));
        let client = RetryLayer::new(retry(2 * SECOND)).layer(readiness.layer(upstream));
        let look = async {
            tokio::time::sleep(SECOND).await;
            readiness.set_failed("closed");
            alive.load(Ordering::SeqCst)
        };
        let (out, in_the_wait) = tokio::join!(call(&client, request(Method::GET)), look);
        assert_eq!(in_the_wait, held, "{size} bytes");
        match out {
            Ok(response) => assert_eq!(response.body().size_hint().exact(), Some(MOST_HELD)),
            Err(error) => {
                assert_eq!(held, 0);
                assert_eq!(
                    error.to_string(),
                    "closed",
                    "what failed, for want of the outcome"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_body_is_gone_once_the_next_send_is_under_way() {
    // Over HTTP/1 it pins a connection.
    let alive = Arc::new(AtomicUsize::new(0));
    let bodies = alive.clone();
    let upstream = Script::always(
        Step::answer_with(move || {
            let mut response = Response::new(Sized::new(1, &bodies));
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            response
        })
        .after(2 * SECOND),
    );
    let client = RetryLayer::new(retry(2 * SECOND)).layer(upstream);
    let look = async {
        let mut seen = Vec::new();
        for _ in 0..5 {
            tokio::time::sleep(2 * SECOND - SECOND / 10).await;
            seen.push(alive.load(Ordering::SeqCst));
            tokio::time::sleep(SECOND / 10).await;
        }
        seen
    };
    let (_, seen) = tokio::join!(call(&client, request(Method::GET)), look);
    // Sent, held in the wait, sent, held in the wait, sent.
    assert_eq!(seen, [0, 1, 0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_outweighs_a_refusal_that_follows_it() {
    use tower_spillway_core::{Refusal, Refused};
    let upstream = Script::from_fn(|n, _| match n {
        1 => Step::answer_with(|| {
            let mut response = Response::new(http_body_util::Full::<bytes::Bytes>::from("first"));
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            response
        }),
        _ => Step::fail(|| Refused::new(Refusal::Open)),
    });
    let client = RetryLayer::new(retry(SECOND)).layer(upstream.clone());
    let response = call(&client, request(Method::GET)).await.unwrap();
    assert_eq!(response.status(), http::StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(upstream.calls(), 2, "it was asked again, and refused");
}

#[tokio::test(start_paused = true)]
async fn a_large_body_is_returned_when_no_retry_follows() {
    let alive = Arc::new(AtomicUsize::new(0));
    let bodies = alive.clone();
    let upstream = Script::always(Step::answer_with(move || {
        let mut response = Response::new(Sized::new(MOST_HELD + 1, &bodies));
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        response
    }));
    let client = RetryLayer::new(retry(SECOND)).layer(upstream);
    let out = call(&client, request(Method::GET)).await.unwrap();
    assert_eq!(out.body().size_hint().exact(), Some(MOST_HELD + 1));
    assert_eq!(alive.load(Ordering::SeqCst), 1, "earlier ones are gone");
}

// -- requests that cannot be copied ----------------------------------------------------------

#[derive(Debug)]
struct OneShot;

impl ReplayableBody for OneShot {
    fn try_replay(&self) -> Result<Self, NotReplayable> {
        Err(NotReplayable::new("the body was only half sent"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_copied_is_sent_once() {
    let upstream = Script::always(first());
    let client = RetryLayer::new(retry(SECOND)).layer(upstream.clone());
    let (request, ledger) = with_ledger(Request::new(OneShot));
    assert_original(call(&client, request).await.unwrap()).await;
    assert_eq!(upstream.calls(), 1);
    let report = ledger.report();
    assert_eq!(report.attempts[0].cause, Some(Cause::NotReplayable));
    assert_eq!(report.latency, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_of_copies_where_nobody_wanted_one() {
    let upstream = Script::always(answer(200, &[]));
    let client = RetryLayer::new(retry(SECOND)).layer(upstream.clone());
    let (request, ledger) = with_ledger(Request::new(OneShot));
    call(&client, request).await.unwrap();
    assert_eq!(ledger.report().attempts[0].cause, None);
}

// -- the deadline ----------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_pass_the_deadline_is_not_begun() {
    for (wait, sent) in [(10, 1), (9, 2)] {
        let upstream = Script::new([first(), answer(200, &[])]);
        let client = ServiceBuilder::new()
            .layer(CallLayer::new().deadline(10 * SECOND))
            .layer(RetryLayer::new(retry(wait * SECOND)))
            .service(upstream.clone());
        let (request, ledger) = with_ledger(request(Method::GET));
        let out = call(&client, request).await.unwrap();
        assert_eq!(upstream.calls(), sent);
        let report = ledger.report();
        if sent == 1 {
            assert_original(out).await;
            assert_eq!(report.latency, Duration::ZERO, "at once");
            assert_eq!(report.attempts[0].cause, Some(Cause::DeadlineWouldPass));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_out_at_the_deadline_is_dropped() {
    let upstream = Script::new([first().after(SECOND), Step::hang()]);
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(10 * SECOND))
        .layer(RetryLayer::new(retry(SECOND)))
        .service(upstream.clone());
    let error: BoxError = call(&client, request(Method::GET)).await.unwrap_err();
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!(*timed_out, TimedOut::new(TimeLimit::Call, 10 * SECOND));
    assert_eq!((upstream.in_flight(), upstream.dropped()), (0, 1));
}
