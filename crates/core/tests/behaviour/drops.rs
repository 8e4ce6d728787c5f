//! Every future of the core, dropped at every await point, leaves nothing open.

use std::sync::{Arc, Mutex};

use http::{Method, Response};
use tower::{Layer, ServiceBuilder};
use tower_service::Service;
use tower_spillway_core::{
    BoxError, Class, Failure, Ledger, RetryLayer,
    attempt_timeout::AttemptTimeoutLayer,
    call::CallLayer,
    classify::ClassifyLayer,
    testing::{
        contract::ReadyProbeLayer,
        drops,
        gate::CountingGate,
        script::{Script, Step},
    },
};

use crate::support::*;

/// Walks a stack whose upstream fails once, answers then, and takes a second each time. After each
/// drop nothing is in flight and the ledger is whole.
async fn walk<S, R>(
    upstream: Script<http::Request<Body>, Response<Body>>,
    client: S,
    probe: &ReadyProbeLayer,
    mut check: impl FnMut(usize),
) -> usize
where
    S: Service<http::Request<Body>, Response = Response<R>, Error = BoxError> + Clone,
{
    let last = Mutex::new(None);
    let calls = Mutex::new(0);
    drops::walk(
        || {
            let ledger = Ledger::new();
            let mut request = request(Method::GET);
            request.extensions_mut().insert(ledger.clone());
            *last.lock().unwrap() = Some(ledger);
            *calls.lock().unwrap() = upstream.calls();
            call(&client, request)
        },
        |k| {
            assert_eq!(upstream.in_flight(), 0, "after {k} polls");
            assert_eq!(probe.reserved(), 0, "after {k} polls");
            let report = last.lock().unwrap().as_ref().unwrap().report();
            let made = upstream.calls() - *calls.lock().unwrap();
            assert_eq!(report.sends(), made, "after {k} polls");
            if let Some(attempt) = report.attempts.last() {
                // In flight it was cancelled; in a wait it had ended.
                assert_eq!(
                    attempt.class == Class::Cancelled,
                    attempt.wait.is_none(),
                    "after {k} polls"
                );
            }
            check(k);
        },
    )
    .await
}

/// Fails at every call but each second one of its ledger.
fn flaky() -> Script<http::Request<Body>, Response<Body>> {
    Script::from_fn(|_, request: &http::Request<Body>| {
        let attempt = request
            .extensions()
            .get::<Ledger>()
            .map_or(0, Ledger::attempt);
        answer(if attempt == 1 { 503 } else { 200 }, &[]).after(SECOND)
    })
}

#[tokio::test(start_paused = true)]
async fn a_retry_alone() {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let upstream = flaky();
        let gate = CountingGate::allowing(1);
        let client = RetryLayer::new(retry(SECOND))
            .gate(gate.as_gate())
            .layer(probe.layer(upstream.clone()));
        let walked = walk(upstream.clone(), client, &probe, |k| {
            let (entered, left) = gate.entered_and_left();
            assert_eq!(entered, left, "after {k} polls");
            assert_eq!(gate.asked(), gate.settled().len(), "after {k} polls");
            // Only what was sent is used up; the next walk needs one again.
            gate.allow(1);
        })
        .await;
        assert!(walked >= 4, "unpolled, attempt, wait, attempt: {walked}");
        assert!(upstream.dropped() >= 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_stack() {
    let probe = ReadyProbeLayer::pending_once();
    let upstream = flaky();
    let gate = CountingGate::allowing(usize::MAX / 2);
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(90 * SECOND))
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(RetryLayer::new(retry(SECOND)).gate(gate.as_gate()))
        .layer(AttemptTimeoutLayer::to_head(5 * SECOND).and_last_byte(Some(9 * SECOND)))
        .layer(ClassifyLayer::new(
            |_: Result<&Response<Body>, Failure<'_>>| None,
        ))
        .layer(probe.clone())
        .service(upstream.clone());
    let walked = walk(upstream, client, &probe, |k| {
        let (entered, left) = gate.entered_and_left();
        assert_eq!(entered, left, "after {k} polls");
        assert_eq!(gate.asked(), gate.settled().len(), "after {k} polls");
    })
    .await;
    assert!(walked >= 5, "{walked}");
}

#[tokio::test(start_paused = true)]
async fn a_call_and_a_timeout_without_a_retry() {
    let probe = ReadyProbeLayer::new();
    let upstream = Script::always(answer(200, &[]).after(SECOND));
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(9 * SECOND))
        .layer(AttemptTimeoutLayer::to_head(5 * SECOND))
        .layer(probe.clone())
        .service(upstream.clone());
    let walked = walk(upstream, client, &probe, |_| ()).await;
    assert_eq!(walked, 2, "unpolled, and in the attempt");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_at_its_deadline() {
    let probe = ReadyProbeLayer::new();
    let upstream: Script<http::Request<Body>, Response<Body>> = Script::always(Step::hang());
    let seen = Arc::new(Mutex::new(0));
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(9 * SECOND))
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(probe.clone())
        .service(upstream.clone());
    let walked = walk(upstream.clone(), client, &probe, |_| {
        *seen.lock().unwrap() += 1;
    })
    .await;
    assert_eq!(walked, 2);
    assert_eq!(upstream.dropped(), 2, "by the caller, and at the deadline");
}
