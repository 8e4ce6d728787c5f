//! A limit for each attempt: to the head, and to the last byte.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Response};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use tokio::time::{Instant, Interval, interval_at};
use tower::{Layer, ServiceBuilder};
use tower_spillway_core::{
    BoxError, Carried, Class, Ledger, RetryLayer, TimeLimit, TimedOut,
    attempt_timeout::{AttemptLimits, AttemptTimeoutLayer},
    call::CallLayer,
    testing::script::{Script, Step},
};

use crate::support::*;

fn timed_out(error: &(dyn std::error::Error + 'static)) -> Option<TimedOut> {
    tower_spillway_core::error::find(error).copied()
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_a_head_in_time_ends_in_a_typed_error() {
    let upstream: Script<_, Response<Body>> = Script::always(Step::hang());
    let client = AttemptTimeoutLayer::to_head(8 * SECOND).layer(upstream.clone());
    let started = Instant::now();
    let error = call(&client, request(Method::GET)).await.unwrap_err();
    assert_eq!(started.elapsed(), 8 * SECOND);
    assert_eq!(
        timed_out(&*error),
        Some(TimedOut::new(TimeLimit::Head, 8 * SECOND))
    );
    assert_eq!(upstream.dropped(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_the_whole_limit() {
    let upstream = Script::new([Step::hang(), answer(200, &[]).after(SECOND)]);
    let client = ServiceBuilder::new()
        .layer(CallLayer::new())
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(AttemptTimeoutLayer::to_head(2 * SECOND))
        .service(upstream.clone());
    let out = call(&client, request(Method::GET)).await.unwrap();
    assert_eq!(out.status(), 200);
    assert_eq!(upstream.times(), [Duration::ZERO, 3 * SECOND]);
    let report = out.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(report.attempts[0].class, Class::Transient);
    assert_eq!(report.attempts[0].elapsed, 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_head_at_the_limit_is_a_head() {
    let upstream = Script::always(answer(200, &[]).after(SECOND));
    let client = AttemptTimeoutLayer::to_head(SECOND).layer(upstream);
    assert_eq!(
        call(&client, request(Method::GET)).await.unwrap().status(),
        200
    );
}

#[tokio::test(start_paused = true)]
async fn limits_of_the_request_take_the_place_of_the_layers() {
    let upstream = || Script::always(answer(200, &[]).after(5 * SECOND));
    let with = async |layer: AttemptTimeoutLayer, limits: AttemptLimits| {
        let mut request = request(Method::GET);
        request.extensions_mut().insert(limits);
        call(&layer.layer(upstream()), request).await.is_ok()
    };
    let head = |seconds| AttemptLimits {
        head: Some(seconds * SECOND),
        ..AttemptLimits::default()
    };
    assert!(with(AttemptTimeoutLayer::to_head(SECOND), head(9)).await);
    assert!(!with(AttemptTimeoutLayer::to_head(9 * SECOND), head(1)).await);
    let none = AttemptLimits::default();
    assert!(with(AttemptTimeoutLayer::to_head(SECOND), none).await);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_not_http_have_the_layers_limit() {
    let upstream = Script::always(Step::<u16>::hang());
    let client = AttemptTimeoutLayer::to_head(SECOND)
        .adapter(plain())
        .layer(upstream);
    let error = call(&client, Carried::new(1)).await.unwrap_err();
    assert!(error.is::<TimedOut>());
}

/// One byte a second, for ever or so many times.
struct Drip {
    every: Interval,
    left: usize,
}

impl Drip {
    fn new(left: usize) -> Self {
        Self {
            every: interval_at(Instant::now() + SECOND, SECOND),
            left,
        }
    }
}

impl http_body::Body for Drip {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        std::task::ready!(self.every.poll_tick(cx));
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b".")))))
    }
}

fn drip(head: Duration, bytes: usize) -> Script<http::Request<Body>, Response<Drip>> {
    Script::always(Step::answer_with(move || Response::new(Drip::new(bytes))).after(head))
}

#[tokio::test(start_paused = true)]
async fn a_body_over_its_time_yields_one_error_and_ends() {
    let client = AttemptTimeoutLayer::to_head(3 * SECOND)
        .and_last_byte(Some(5 * SECOND + SECOND / 2))
        .layer(drip(2 * SECOND, usize::MAX));
    let started = Instant::now();
    let out = call(&client, request(Method::GET)).await.unwrap();
    let mut body = std::pin::pin!(out.into_body());
    let mut frames = 0;
    let error = loop {
        match body.frame().await.unwrap() {
            Ok(_) => frames += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(frames, 3);
    assert_eq!(
        started.elapsed(),
        5 * SECOND + SECOND / 2,
        "from the sending"
    );
    assert_eq!(
        timed_out(&*error),
        Some(TimedOut::new(TimeLimit::LastByte, 5 * SECOND + SECOND / 2))
    );
    assert!(body.frame().await.is_none());
    assert!(body.is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn a_body_in_time_is_whole() {
    let client = AttemptTimeoutLayer::to_head(3 * SECOND)
        .and_last_byte(Some(9 * SECOND))
        .layer(drip(2 * SECOND, 4));
    let out = call(&client, request(Method::GET)).await.unwrap();
    assert_eq!(text(out.into_body()).await, "....");
}

#[tokio::test(start_paused = true)]
async fn a_limit_to_the_last_byte_alone_bounds_the_head_too() {
    let limits = AttemptLimits {
        head: None,
        last_byte: Some(4 * SECOND),
    };
    let client = AttemptTimeoutLayer::new(AttemptLimits::default())
        .and_last_byte(None)
        .layer(Script::<_, Response<Drip>>::always(Step::hang()));
    let mut request = request(Method::GET);
    request.extensions_mut().insert(limits);
    let started = Instant::now();
    assert!(call(&client, request).await.is_err());
    assert_eq!(started.elapsed(), 4 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn size_hints_pass_through() {
    let client = AttemptTimeoutLayer::to_head(SECOND)
        .and_last_byte(Some(SECOND))
        .layer(Script::always(answer(200, &[])));
    let body = call(&client, request(Method::GET))
        .await
        .unwrap()
        .into_body();
    assert_eq!(body.size_hint().exact(), Some(13));
    assert!(!body.is_end_stream());
    assert_eq!(text(body).await, "body of a 200");
}

/// A body that always has more.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b".")))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_always_has_more_is_cut_all_the_same() {
    let client = AttemptTimeoutLayer::to_head(SECOND)
        .and_last_byte(Some(4 * SECOND))
        .layer(Script::always(Step::answer_with(|| Response::new(Endless))));
    let out = call(&client, request(Method::GET)).await.unwrap();
    let mut body = pin!(out.into_body());
    for _ in 0..=4 {
        assert!(body.frame().await.unwrap().is_ok());
        tokio::time::advance(SECOND).await;
    }
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(
        timed_out(&*error),
        Some(TimedOut::new(TimeLimit::LastByte, 4 * SECOND))
    );
    assert!(body.frame().await.is_none());
}
