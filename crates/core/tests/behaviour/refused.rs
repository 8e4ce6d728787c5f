//! Calls that were turned away here, unsent.

use std::{
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tower::Layer;
use tower_service::Service;
use tower_spillway_core::{
    BoxError, Carried, Cause, Class, Engine, Ledger, Limits, NotReplayable, Plain, Read, Reading,
    Refusal, Refused, Resend, ResendTerms, RetryLayer, Verdict,
    adapter::MayCarry,
    testing::{
        gate::CountingGate,
        script::{Script, Step},
    },
};

use crate::support::*;

/// Refuses so many calls, with advice if it has some, then answers.
#[derive(Clone)]
struct Held {
    refuse: usize,
    advice: Option<Verdict>,
    answer: u16,
    calls: Arc<AtomicUsize>,
}

impl Held {
    fn new(refuse: usize, advice: Option<Verdict>) -> Self {
        Self {
            refuse,
            advice,
            answer: 200,
            calls: Arc::default(),
        }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Service<Carried<u64>> for Held {
    type Response = u16;
    type Error = BoxError;
    type Future = Ready<Result<u16, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Carried<u64>) -> Self::Future {
        let n = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if n > self.refuse {
            return ready(Ok(self.answer));
        }
        if let Some(advice) = self.advice {
            request.ledger().unwrap().advise(advice);
        }
        ready(Err(Refused::new(Refusal::Held).into()))
    }
}

const LATER: Option<Verdict> = Some(Verdict::Retry { after: SECOND });

fn offered() -> (Carried<u64>, Ledger) {
    let ledger = Ledger::new();
    (Carried::new(1).with_ledger(ledger.clone()), ledger)
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_advice_stops() {
    let held = Held::new(1, None);
    let client = plain_retry(retry(SECOND), sends(5)).layer(held.clone());
    let (request, ledger) = offered();
    let error = call(&client, request).await.unwrap_err();
    assert!(error.is::<Refused>());
    assert_eq!(held.calls(), 1);
    let report = ledger.report();
    assert_eq!(report.sends(), 0);
    assert_eq!(report.attempts[0].class, Class::Refused);
    assert_eq!(report.attempts[0].cause, Some(Cause::Refused));
}

#[tokio::test(start_paused = true)]
async fn an_unsent_retry_is_no_send_and_asks_no_gate() {
    // More refusals than sends are allowed, and a budget that grants nothing.
    for most in [1, 2] {
        let gate = CountingGate::allowing(0);
        let held = Held::new(5, LATER);
        let client = plain_retry(retry(9 * SECOND), sends(most))
            .gate(gate.as_gate())
            .layer(held.clone());
        let (request, ledger) = offered();
        assert_eq!(call(&client, request).await.unwrap(), 200);
        assert_eq!((held.calls(), gate.asked()), (6, 0));
        assert_eq!(gate.ends(), [Class::Success], "refusals are no attempts");
        let report = ledger.report();
        assert_eq!((report.sends(), report.waited), (1, 5 * SECOND));
        assert_eq!(report.latency, 5 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn all_sends_are_left_after_unsent_retries() {
    let held = Held {
        answer: 500,
        ..Held::new(5, LATER)
    };
    let client = plain_retry(retry(SECOND), sends(2)).layer(held.clone());
    let (request, ledger) = offered();
    assert_eq!(call(&client, request).await.unwrap(), 500);
    assert_eq!(held.calls(), 5 + 2);
    let report = ledger.report();
    assert_eq!((report.attempts.len(), report.sends()), (7, 2));
}

#[tokio::test(start_paused = true)]
async fn unsent_retries_end_after_32() {
    let held = Held::new(usize::MAX, LATER);
    let client = plain_retry(retry(SECOND), Limits::default()).layer(held.clone());
    let error = call(&client, Carried::new(1)).await.unwrap_err();
    assert!(error.is::<Refused>());
    assert_eq!(held.calls(), 33);
}

#[tokio::test(start_paused = true)]
async fn unsent_retries_stay_within_deadline_and_total_wait() {
    let total = Limits {
        max_total_wait: Some(3 * SECOND),
        ..Limits::default()
    };
    let held = Held::new(usize::MAX, LATER);
    let client = plain_retry(retry(SECOND), total).layer(held.clone());
    call(&client, Carried::new(1)).await.unwrap_err();
    assert_eq!(held.calls(), 4);

    let held = Held::new(usize::MAX, LATER);
    let client = tower::ServiceBuilder::new()
        .layer(
            tower_spillway_core::call::CallLayer::new()
                .deadline(3 * SECOND)
                .adapter(plain()),
        )
        .layer(plain_retry(retry(SECOND), Limits::default()))
        .service(held.clone());
    let (request, ledger) = offered();
    assert!(call(&client, request).await.unwrap_err().is::<Refused>());
    assert_eq!(held.calls(), 3);
    assert_eq!(
        ledger.report().latency,
        2 * SECOND,
        "the third wait is not begun"
    );
}

#[tokio::test(start_paused = true)]
async fn an_adviser_between_leaves_a_refusal_alone() {
    let held = Held::new(1, LATER);
    let client = plain_retry(retry(9 * SECOND), sends(5))
        .layer(plain_retry(retry(7 * SECOND), sends(5)).layer(held.clone()));
    let (request, ledger) = offered();
    assert_eq!(call(&client, request).await.unwrap(), 200);
    assert_eq!(ledger.report().waited, SECOND);
}

/// Copies nothing.
#[derive(Clone)]
struct Uncopied(Plain<Classify>);

impl MayCarry<Carried<u64>> for Uncopied {
    fn carrier(&self) -> Option<&dyn tower_spillway_core::Carry<Carried<u64>>> {
        Some(&self.0)
    }
}

impl Resend<Carried<u64>> for Uncopied {
    fn try_clone(&self, _: &Carried<u64>) -> Result<Carried<u64>, NotReplayable> {
        Err(NotReplayable::new("it is one of a kind"))
    }

    fn resend_safe(&self, _: &Carried<u64>, _: ResendTerms) -> bool {
        true
    }
}

impl Read<u16> for Uncopied {
    fn read(&self, result: Result<&u16, &(dyn std::error::Error + 'static)>) -> Reading {
        self.0.read(result)
    }

    fn holdable(&self, _: &u16) -> bool {
        true
    }

    fn attach(&self, _: &mut u16, _: &Ledger) {}
}

#[tokio::test(start_paused = true)]
async fn without_a_copy_a_refusal_is_returned_at_once() {
    let held = Held::new(1, LATER);
    let engine = Engine::new(retry(SECOND), Uncopied(plain()));
    let client = RetryLayer::from_engine(engine).layer(held.clone());
    let (request, ledger) = offered();
    assert!(call(&client, request).await.unwrap_err().is::<Refused>());
    let report = ledger.report();
    assert_eq!(report.attempts[0].cause, Some(Cause::NotReplayable));
    assert_eq!(report.latency, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_error_in_hand_is_better_than_a_refusal_that_takes_its_time() {
    let upstream: Upstream = Script::new([
        Step::fail(|| "reset"),
        Step::fail(|| Refused::new(Refusal::Overloaded)).after(SECOND),
    ]);
    let client = plain_retry(retry(SECOND), sends(5)).layer(upstream.clone());
    let error = call(&client, Carried::new(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "reset");
    assert_eq!(upstream.calls(), 2);
}
