//! Reports of request bodies that retries lost or refused, each by its id.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod common;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use common::{Res, SECOND, answer, timed};
use http::Request;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_spillway::prelude::*;

/// Not `Clone`.
type Streamed = UnsyncBoxBody<Bytes, BoxError>;

fn streamed(text: &'static str) -> Request<Streamed> {
    let body = Full::from(text).map_err(|e| match e {});
    Request::post("/").body(UnsyncBoxBody::new(body)).unwrap()
}

/// One call of a streamed body: the outcome, the report, how long it took, and the bodies that the
/// upstream read.
async fn call(
    limit: usize,
    statuses: &'static [u16],
) -> (Res, tower_spillway::core::Report, Duration, Vec<Bytes>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let upstream = service_fn(move |request: Request<ReplayBody<Streamed>>| {
        let log = log.clone();
        async move {
            let body = request.into_body().collect().await?.to_bytes();
            let mut log = log.lock().unwrap();
            log.push(body);
            Ok::<_, BoxError>(answer(statuses[log.len() - 1], &[]))
        }
    });
    let stack = ServiceBuilder::new()
        .layer(ReplayLayer::up_to(limit).unwrap())
        .layer(JitterBackoffLayer::constant(SECOND).unwrap())
        .layer(RetryAfterLayer::new())
        .service(upstream);
    let (response, took) = timed(stack.oneshot(streamed("the question"))).await;
    let response = response.unwrap();
    let report = response.extensions().get::<Ledger>().unwrap().report();
    let seen = seen.lock().unwrap().clone();
    (response, report, took, seen)
}

#[tokio::test(start_paused = true)]
async fn consumed_body_masks_429() {
    // What can be sent again is, as it was.
    let (response, report, _, seen) = call(100, &[429, 200]).await;
    assert_eq!(response.status(), 200);
    assert_eq!(report.sends(), 2);
    assert_eq!(seen, ["the question", "the question"]);

    // What cannot is not waited for: the real error, at once.
    let (response, report, took, seen) = call(3, &[429]).await;
    assert_eq!(response.status(), 429);
    assert_eq!(took, Duration::ZERO);
    assert_eq!(report.waited, Duration::ZERO);
    assert_eq!(seen, ["the question"]);
    assert_eq!(report.attempts[0].cause, Some(Cause::NotReplayable));
}

#[tokio::test(start_paused = true)]
async fn streaming_body_hard_error() {
    // A body that cannot be kept passes through: retries are off for it, nothing fails.
    for limit in [3, 100] {
        let (response, report, _, seen) = call(limit, &[200]).await;
        assert_eq!(response.status(), 200);
        assert_eq!(report.sends(), 1);
        assert_eq!(seen, ["the question"]);
    }
}
