//! Readiness, clones and cancellation.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering},
    },
};

use tokio::time::Instant;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_retry_after::{RetryAfter, RetryAfterLayer};
use tower_spillway_core::{
    Class, Gate, Ledger, Retry,
    gate::{Ask, Receipt, Settled},
    hint,
    testing::{
        contract::ReadyProbeLayer,
        drops,
        readiness::Readiness,
        script::{Script, Step},
    },
};

use crate::support::{MS, SECOND, answers, get, response};

#[tokio::test(start_paused = true)]
async fn every_send_uses_an_instance_that_was_polled_ready() {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let upstream = answers([(503, "1")]);
        let mut service = ServiceBuilder::new()
            .layer(RetryAfterLayer::new())
            .layer(probe.clone())
            .service(upstream.clone());
        for _ in 0..2 {
            let call = service.ready().await.unwrap().call(get());
            assert_eq!(call.await.unwrap().status(), 503);
        }
        drop(service);
        assert_eq!((upstream.calls(), probe.reserved()), (6, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn no_readiness_is_held_while_sleeping() {
    let probe = ReadyProbeLayer::new();
    let upstream = answers([(503, "1")]);
    let service = ServiceBuilder::new()
        .layer(RetryAfterLayer::new().jitter(hint::Jitter::None))
        .layer(probe.clone())
        .service(upstream.clone());
    let call = tokio::spawn(service.oneshot(get()));
    tokio::time::sleep(50 * MS).await;
    assert_eq!((upstream.calls(), probe.reserved()), (1, 0));
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_before_a_resend_gives_the_answer_in_hand() {
    let ready = Readiness::new();
    let breaks = ready.clone();
    let upstream = Script::from_fn(move |_, _: &http::Request<String>| {
        breaks.set_failed("pool closed");
        Step::answer_with(|| response(503, "1"))
    });
    let service = ServiceBuilder::new()
        .layer(RetryAfterLayer::new())
        .layer(ready)
        .service(upstream.clone());
    let answer = service.oneshot(get()).await.unwrap();
    assert_eq!(answer.body(), response(503, "1").body());
    assert_eq!(upstream.calls(), 1);
}

/// Counts what is reserved and what was entered.
#[derive(Default)]
struct Counting {
    reserved: AtomicIsize,
    entered: AtomicIsize,
}

impl Counting {
    fn open(&self) -> (isize, isize) {
        let read = |n: &AtomicIsize| n.load(Ordering::SeqCst);
        (read(&self.reserved), read(&self.entered))
    }
}

impl Gate for Counting {
    fn enter(&self, _now: Instant) {
        self.entered.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self, _now: Instant) {
        self.entered.fetch_sub(1, Ordering::SeqCst);
    }

    fn withdraw(&self, _ask: &Ask) -> Option<Receipt> {
        self.reserved.fetch_add(1, Ordering::SeqCst);
        Some(Receipt(0))
    }

    fn settle(&self, _receipt: Receipt, _settled: Settled) {
        self.reserved.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_point_it_leaves_nothing_open() {
    let gate = Arc::new(Counting::default());
    let upstream = Script::always(Step::answer_with(|| response(503, "1")).after(SECOND));
    let service = ServiceBuilder::new()
        .layer(RetryAfterLayer::new().gate(gate.clone()))
        .layer(ReadyProbeLayer::pending_once())
        .service(upstream.clone());
    let last = RefCell::new((Ledger::new(), 0));
    let drops = drops::walk(
        || {
            let ledger = Ledger::new();
            let mut request = get();
            request.extensions_mut().insert(ledger.clone());
            last.replace((ledger, upstream.calls()));
            service.clone().oneshot(request)
        },
        |polls| {
            assert_eq!(gate.open(), (0, 0), "after {polls} polls");
            assert_eq!(upstream.in_flight(), 0, "after {polls} polls");
            let (ledger, before) = &*last.borrow();
            let attempts = ledger.report().attempts;
            // Every send is on record; the one that was out at the drop as cancelled.
            assert_eq!(
                attempts.len(),
                upstream.calls() - before,
                "after {polls} polls"
            );
            for (attempt, next) in attempts.iter().zip(attempts.iter().skip(1)) {
                assert_eq!(attempt.class, Class::Throttled, "before {next:?}");
            }
        },
    )
    .await;
    // Unpolled, readiness, and at least call, sleep and readiness of each further send.
    assert!(drops >= 8, "{drops}");
    assert_eq!(gate.open(), (0, 0));
}

#[test]
fn auto_traits() {
    fn all<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    all::<RetryAfterLayer>();
    all::<RetryAfter>();
    all::<Retry<Script<(), ()>, RetryAfter>>();
}
