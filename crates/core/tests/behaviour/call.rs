//! The outermost layer, the caller's own ledger, and the report.

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Response};
use tower::{Layer, ServiceBuilder};
use tower_service::Service;
use tower_spillway_core::{
    Abandoned, BoxError, Carried, Carry, Cause, Class, Ledger, Limits, RetryLayer, TimeLimit,
    TimedOut,
    call::CallLayer,
    testing::script::{Script, Step},
};

use crate::support::*;

fn offered() -> (Carried<u64>, Ledger) {
    let ledger = Ledger::new();
    (Carried::new(1).with_ledger(ledger.clone()), ledger)
}

#[tokio::test(start_paused = true)]
async fn the_report_tells_attempts_waits_and_latency() {
    let upstream = Script::new([
        Step::answer(500).after(SECOND),
        Step::answer(429).after(2 * SECOND),
        Step::answer(200).after(3 * SECOND),
    ]);
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().adapter(plain()))
        .layer(plain_retry(retry(10 * SECOND), sends(5)))
        .service(upstream);
    let (request, ledger) = offered();
    call(&client, request).await.unwrap();
    let report = ledger.report();
    let rows: Vec<_> = report
        .attempts
        .iter()
        .map(|a| (a.start.as_secs(), a.elapsed.as_secs(), a.class, a.wait))
        .collect();
    let wait = Some(10 * SECOND);
    assert_eq!(
        rows,
        [
            (0, 1, Class::Transient, wait),
            (11, 2, Class::Throttled, wait),
            (23, 3, Class::Success, None),
        ]
    );
    assert_eq!((report.latency_ms(), report.waited), (26_000, 20 * SECOND));
    assert_eq!((report.sends(), report.target), (3, None));
    assert_eq!(report.fallback_reason, None);
}

#[tokio::test(start_paused = true)]
async fn a_stack_without_a_retrying_layer_has_one_attempt() {
    let client = CallLayer::new()
        .adapter(plain())
        .layer(Script::always(Step::answer(400).after(SECOND)));
    let (request, ledger) = offered();
    call(&client, request).await.unwrap();
    let report = ledger.report();
    assert_eq!(report.attempts.len(), 1);
    assert_eq!(report.attempts[0].class, Class::CallerFault);
    assert_eq!(report.attempts[0].elapsed, SECOND);
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_at_the_deadline_gave_no_outcome() {
    let client = CallLayer::new()
        .deadline(SECOND)
        .adapter(plain())
        .layer(Script::<_, u16>::always(Step::hang()));
    let (request, ledger) = offered();
    assert!(call(&client, request).await.unwrap_err().is::<TimedOut>());
    let report = ledger.report();
    assert_eq!(report.attempts[0].class, Class::Cancelled);
    assert_eq!(report.latency, SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_ledger_serves_one_call() {
    let client = plain_retry(retry(SECOND), Limits::default()).layer(then(&[500, 200, 500, 200]));
    let (request, ledger) = offered();
    let again = request.clone();
    call(&client, request).await.unwrap();
    let first = ledger.report();
    assert_eq!(first.attempts.len(), 2);
    call(&client, again).await.unwrap();
    assert_eq!(ledger.report(), first, "the second call has a fresh one");
}

#[tokio::test(start_paused = true)]
async fn a_ledger_starts_when_its_call_does() {
    let (request, ledger) = offered();
    tokio::time::sleep(9 * SECOND).await;
    let client = CallLayer::new()
        .adapter(plain())
        .layer(Script::always(Step::answer(200).after(SECOND)));
    call(&client, request).await.unwrap();
    assert_eq!(ledger.report().latency, SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_response_carries_the_ledger_over_http() {
    let upstream = Script::new([answer(503, &[]), answer(200, &[]), answer(200, &[])]).recording();
    let with_call = ServiceBuilder::new()
        .layer(CallLayer::new())
        .layer(RetryLayer::new(retry(SECOND)))
        .service(upstream.clone());
    let out: Response<Body> = call(&with_call, request(Method::GET)).await.unwrap();
    let ledger = out.extensions().get::<Ledger>().unwrap().clone();
    assert_eq!(ledger.report().attempts.len(), 2);

    // Put back into a request it opens a fresh ledger, and the layer drives as ever.
    let alone = RetryLayer::new(retry(SECOND)).layer(Script::always(answer(503, &[])));
    let mut again = request(Method::GET);
    again.extensions_mut().insert(ledger.clone());
    let out: Response<Body> = call(&alone, again).await.unwrap();
    assert_eq!(ledger.report().attempts.len(), 2);
    let fresh = out.extensions().get::<Ledger>().unwrap();
    assert_eq!(fresh.report().sends(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_ledger_tells_of_a_call_that_was_dropped() {
    let client = plain_retry(retry(SECOND), Limits::default())
        .layer(Script::new([Step::answer(500), Step::hang()]));
    let (request, ledger) = offered();
    let timeout = tokio::time::timeout(5 * SECOND, call(&client, request)).await;
    assert!(timeout.is_err());
    let report = ledger.report();
    let classes: Vec<_> = report.attempts.iter().map(|a| a.class).collect();
    assert_eq!(classes, [Class::Transient, Class::Cancelled]);
    assert_eq!(report.attempts[1].elapsed, 4 * SECOND);
    assert_eq!(report.latency, 5 * SECOND);
}

// -- the deadline ----------------------------------------------------------------------------

/// Hangs, and tells why it was dropped.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<Option<Abandoned>>>>);

struct Hangs {
    ledger: Ledger,
    log: Witness,
}

impl Future for Hangs {
    type Output = Result<u16, BoxError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}

impl Drop for Hangs {
    fn drop(&mut self) {
        self.log.0.lock().unwrap().push(self.ledger.abandoned());
    }
}

impl Service<Carried<u64>> for Witness {
    type Response = u16;
    type Error = BoxError;
    type Future = Hangs;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Carried<u64>) -> Hangs {
        Hangs {
            ledger: plain().ledger_mut(&mut request).unwrap().clone(),
            log: self.clone(),
        }
    }
}

fn bounded(
    witness: &Witness,
) -> impl Service<Carried<u64>, Response = u16, Error = BoxError> + Clone {
    ServiceBuilder::new()
        .layer(CallLayer::new().deadline(3 * SECOND).adapter(plain()))
        .layer(plain_retry(retry(SECOND), Limits::default()))
        .service(witness.clone())
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_what_is_below_can_read_why_it_is_dropped() {
    let witness = Witness::default();
    let (request, ledger) = offered();
    let error = call(&bounded(&witness), request).await.unwrap_err();
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!(*timed_out, TimedOut::new(TimeLimit::Call, 3 * SECOND));
    assert_eq!(*witness.0.lock().unwrap(), [Some(Abandoned::Deadline)]);
    let report = ledger.report();
    assert_eq!(report.attempts[0].class, Class::Cancelled);
    assert_eq!(report.latency, 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_makes_no_mark() {
    let witness = Witness::default();
    let (request, ledger) = offered();
    let timeout = tokio::time::timeout(SECOND, call(&bounded(&witness), request)).await;
    assert!(timeout.is_err());
    assert_eq!(*witness.0.lock().unwrap(), [None]);
    assert_eq!(ledger.report().attempts[0].class, Class::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_mark_on_one_attempt_does_not_stay_for_the_next() {
    // The inner layer bounds each attempt; the caller leaves during the second.
    let witness = Witness::default();
    let client = plain_retry(retry(SECOND), Limits::default()).layer(
        CallLayer::new()
            .deadline(3 * SECOND)
            .adapter(plain())
            .layer(witness.clone()),
    );
    let timeout = tokio::time::timeout(5 * SECOND, call(&client, Carried::new(1))).await;
    assert!(timeout.is_err());
    assert_eq!(
        *witness.0.lock().unwrap(),
        [Some(Abandoned::Deadline), None]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_deadline_is_an_answer() {
    let client = CallLayer::new()
        .deadline(SECOND)
        .adapter(plain())
        .layer(Script::always(Step::answer(200).after(SECOND)));
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_too_far_away_is_none() {
    let client = CallLayer::new()
        .deadline(Duration::MAX)
        .adapter(plain())
        .layer(Script::always(Step::answer(200).after(SECOND)));
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 200);
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline_a_call_may_take_for_ever() {
    let client = CallLayer::new()
        .adapter(plain())
        .layer(tower::service_fn(|_: Carried<u64>| {
            pending::<Result<u16, BoxError>>()
        }));
    let day = Duration::from_secs(86_400);
    let timeout = tokio::time::timeout(day, call(&client, Carried::new(1))).await;
    assert!(timeout.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_all_time_is_bounded_by_the_deadline() {
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(SECOND).adapter(plain()))
        .layer(plain_retry(retry(Duration::MAX), Limits::default()))
        .service(always(500));
    let (request, ledger) = offered();
    assert_eq!(call(&client, request).await.unwrap(), 500);
    let cause = ledger.report().attempts[0].cause;
    assert_eq!(cause, Some(Cause::DeadlineWouldPass));

    let alone = plain_retry(retry(Duration::MAX), Limits::default()).layer(always(500));
    let day = Duration::from_secs(86_400);
    let timeout = tokio::time::timeout(day, call(&alone, Carried::new(1))).await;
    assert!(timeout.is_err(), "it waits, and does not overflow");
}
