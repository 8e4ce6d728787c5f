//! When a request may be sent again.

use std::io;

use http::{Method, Request, Response};
use tower::Layer;
use tower_spillway_core::{
    BoxError, Cause, Class, Classified, Engine, ErrorReader, Http, Ledger, Reading, RetryLayer,
    TimeLimit, TimedOut,
    testing::script::{Script, Step},
};

use crate::support::*;

/// Sends of a request whose first attempt ends as the step says, and the cause of the first.
async fn sends_of(
    adapter: Http,
    mut request: Request<Body>,
    step: Step<Response<Body>>,
) -> (usize, Option<Cause>) {
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    let upstream = Script::new([step, answer(200, &[])]);
    let client =
        RetryLayer::from_engine(Engine::new(retry(SECOND), adapter)).layer(upstream.clone());
    // The error, if there is one, is the step's own.
    drop(call(&client, request).await);
    (upstream.calls(), ledger.report().attempts[0].cause)
}

fn failing(make: impl Fn() -> BoxError + Send + Sync + 'static) -> Step<Response<Body>> {
    Step::fail(make)
}

fn keyed() -> Request<Body> {
    let mut request = request(Method::POST);
    request
        .headers_mut()
        .insert("idempotency-key", "k1".parse().unwrap());
    request
}

const AMBIGUOUS: (usize, Option<Cause>) = (1, Some(Cause::MayHaveBeenProcessed));
const RESENT: (usize, Option<Cause>) = (2, None);

#[tokio::test(start_paused = true)]
async fn an_ambiguous_post_is_sent_once() {
    for step in [
        answer(500, &[]),
        answer(502, &[]),
        answer(408, &[]),
        failing(|| io::Error::from(io::ErrorKind::ConnectionReset).into()),
        failing(|| TimedOut::new(TimeLimit::Head, SECOND).into()),
        failing(|| "something".into()),
    ] {
        assert_eq!(
            sends_of(Http::new(), request(Method::POST), step.clone()).await,
            AMBIGUOUS
        );
        assert_eq!(
            sends_of(Http::new(), request(Method::PATCH), step).await,
            AMBIGUOUS
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_method_is_sent_again() {
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::HEAD] {
        assert_eq!(
            sends_of(Http::new(), request(method), answer(500, &[])).await,
            RESENT
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_counts_where_the_target_honours_it() {
    let step = || answer(500, &[]);
    let honours = Http::new().honours_idempotency_key(true);
    assert_eq!(sends_of(honours.clone(), keyed(), step()).await, RESENT);
    assert_eq!(sends_of(Http::new(), keyed(), step()).await, AMBIGUOUS);
    assert_eq!(
        sends_of(honours, request(Method::POST), step()).await,
        AMBIGUOUS,
        "honoured, but there is none"
    );
}

#[tokio::test(start_paused = true)]
async fn ambiguous_requests_are_sent_again_if_so_set() {
    let adapter = Http::new().retry_ambiguous(true);
    assert_eq!(
        sends_of(adapter, request(Method::POST), answer(500, &[])).await,
        RESENT
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_not_processed_for_sure_is_sent_again() {
    for step in [
        answer(503, &[]),
        answer(503, &[("retry-after", "1")]),
        answer(429, &[]),
        answer(408, &[("connection", "Close")]),
        failing(|| io::Error::from(io::ErrorKind::ConnectionRefused).into()),
        failing(|| {
            let reading = Reading::new(Class::Transient).unprocessed(true);
            Classified::new(reading, "turned away").into()
        }),
    ] {
        assert_eq!(
            sends_of(Http::new(), request(Method::POST), step).await,
            RESENT
        );
    }
}

#[tokio::test(start_paused = true)]
async fn users_own_errors_are_read_first() {
    #[derive(Debug)]
    struct Busy;
    impl std::fmt::Display for Busy {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("busy")
        }
    }
    impl std::error::Error for Busy {}

    let errors = ErrorReader::new(|e| e.is::<Busy>().then(|| Reading::new(Class::Throttled)));
    let step = || failing(|| io::Error::other(Busy).into());
    assert_eq!(
        sends_of(
            Http::new().read_errors(errors),
            request(Method::POST),
            step()
        )
        .await,
        RESENT
    );
    assert_eq!(
        sends_of(Http::new(), request(Method::POST), step()).await,
        AMBIGUOUS
    );
}

#[tokio::test(start_paused = true)]
async fn an_adviser_does_not_make_an_ambiguous_request_safe() {
    // Whether it may be sent again is the driver's to say, by its adapter.
    let upstream = Script::new([answer(500, &[]), answer(200, &[])]);
    let lenient = Engine::new(retry(SECOND), Http::new().retry_ambiguous(true));
    let strict = Engine::new(retry(SECOND), Http::new());
    let layers = [strict, lenient].map(RetryLayer::from_engine);
    let client = stack(layers, upstream.clone());
    let out = call(&client, request(Method::POST)).await.unwrap();
    assert_eq!(out.status(), 500);
    assert_eq!(upstream.calls(), 1);
}
