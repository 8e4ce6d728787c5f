//! Budgets: asked last, once per retry really made, given back otherwise.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;
use tower::{Layer, ServiceBuilder};
use tower_spillway_core::{
    BoxError, Carried, Cause, Class, Gate, Ledger, Limits, Refusal, Refused, Verdict,
    call::CallLayer,
    gate::{Ask, Receipt, Settled},
    testing::{
        drops,
        gate::CountingGate,
        readiness::Readiness,
        script::{Script, Step},
    },
};

use crate::support::*;

fn offered() -> (Carried<u64>, Ledger) {
    let ledger = Ledger::new();
    (Carried::new(1).with_ledger(ledger.clone()), ledger)
}

#[tokio::test(start_paused = true)]
async fn each_retry_is_granted_and_settled_once() {
    let gate = CountingGate::allowing(9);
    let upstream = then(&[500, 429, 200]);
    let client = plain_retry(retry(SECOND), sends(5))
        .gate(gate.as_gate())
        .layer(upstream);
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 200);
    assert_eq!(gate.asked(), 2);
    assert_eq!(
        gate.settled(),
        [
            Settled::Sent(Class::Throttled),
            Settled::Sent(Class::Success)
        ]
    );
    assert_eq!(
        gate.ends(),
        [Class::Transient, Class::Throttled, Class::Success]
    );
    assert_eq!(gate.entered_and_left(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_denial_gives_the_original_outcome() {
    let gate = CountingGate::allowing(1);
    let upstream = Script::new([Step::answer(500), Step::answer(429), Step::answer(200)]);
    let client = plain_retry(retry(SECOND), sends(5))
        .gate(gate.as_gate())
        .layer(upstream.clone());
    let (request, ledger) = offered();
    assert_eq!(call(&client, request).await.unwrap(), 429);
    assert_eq!(upstream.calls(), 2);
    assert_eq!(
        ledger.report().attempts[1].cause,
        Some(Cause::BudgetDenied {
            waited: SECOND,
            next: SECOND
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_gate_is_asked_after_every_other_check() {
    // Each of these calls ends for another reason than the budget.
    let stop = Verdict::Stop(Cause::OtherTargetFirst);
    let run = async |layer: tower_spillway_core::RetryLayer<_, _>, status: u16| {
        let gate = CountingGate::allowing(0);
        let client = ServiceBuilder::new()
            .layer(CallLayer::new().deadline(SECOND).adapter(plain()))
            .layer(layer.gate(gate.as_gate()))
            .service(always(status));
        call(&client, Carried::new(1)).await.unwrap();
        gate.asked()
    };
    assert_eq!(run(plain_retry(retry(SECOND), sends(5)), 500).await, 0);
    assert_eq!(run(plain_retry(retry(SECOND / 2), sends(1)), 500).await, 0);
    assert_eq!(run(plain_retry(retry(SECOND / 2), sends(5)), 400).await, 0);
    let run_verdict = async |v| {
        let gate = CountingGate::allowing(0);
        let client = plain_retry(verdict(v), sends(5))
            .gate(gate.as_gate())
            .layer(always(500));
        call(&client, Carried::new(1)).await.unwrap();
        gate.asked()
    };
    assert_eq!(run_verdict(stop).await, 0);
    assert_eq!(run_verdict(Verdict::Pass).await, 0);
    assert_eq!(run_verdict(Verdict::Retry { after: SECOND }).await, 1);
}

#[tokio::test(start_paused = true)]
async fn one_gate_through_two_layers_is_one_gate() {
    let gate = CountingGate::allowing(9);
    let layers = [5, 4].map(|most| plain_retry(retry(SECOND), sends(most)).gate(gate.as_gate()));
    let upstream = always(500);
    let client = stack(layers, upstream.clone());
    call(&client, Carried::new(1)).await.unwrap();
    assert_eq!(upstream.calls(), 4);
    assert_eq!((gate.asked(), gate.ends().len()), (3, 4));
    assert_eq!(gate.entered_and_left(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn two_gates_grant_both_or_nothing() {
    let generous = CountingGate::allowing(9);
    let strict = CountingGate::allowing(1);
    for order in [[&generous, &strict], [&strict, &generous]] {
        let before = (generous.balance(), strict.balance());
        let layers = order.map(|gate| plain_retry(retry(SECOND), sends(5)).gate(gate.as_gate()));
        let upstream = always(500);
        let client = stack(layers, upstream.clone());
        call(&client, Carried::new(1)).await.unwrap();
        let sent = upstream.calls() - 1;
        assert_eq!(sent, before.1.min(1));
        assert_eq!(
            (generous.balance(), strict.balance()),
            (before.0 - sent, before.1 - sent),
            "what one gave for a retry that another denied is given back"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_call_anywhere_gives_back_what_was_not_sent() {
    let gate = CountingGate::allowing(1);
    let client = plain_retry(retry(SECOND), sends(2))
        .gate(gate.as_gate())
        .layer(Script::from_fn(|_, _| Step::answer(500).after(SECOND)));
    let walked = drops::walk(
        || call(&client, Carried::new(1)),
        |k| {
            let settled = gate.settled();
            let (entered, left) = gate.entered_and_left();
            assert_eq!(entered, left, "after {k} polls");
            assert_eq!(gate.asked(), settled.len(), "after {k} polls");
            match settled.last() {
                None => assert!(k <= 1, "after {k} polls"),
                Some(Settled::NotSent) => assert_eq!(gate.balance(), 1),
                Some(sent) => assert_eq!(*sent, Settled::Sent(Class::Cancelled)),
            }
        },
    )
    .await;
    assert!(
        walked >= 3,
        "in the first attempt, the sleep and the second: {walked}"
    );
    assert!(gate.settled().contains(&Settled::NotSent));
    assert!(gate.settled().contains(&Settled::Sent(Class::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_sent_for_want_of_readiness_is_given_back() {
    let gate = CountingGate::allowing(1);
    let readiness = Readiness::new();
    let fail = readiness.clone();
    let upstream = Script::from_fn(move |_, _| {
        fail.set_failed("closed");
        Step::answer(500)
    });
    let client = plain_retry(retry(SECOND), sends(5))
        .gate(gate.as_gate())
        .layer(readiness.layer(upstream));
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 500);
    assert_eq!(gate.settled(), [Settled::NotSent]);
    assert_eq!((gate.balance(), gate.entered_and_left()), (1, (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_gate_is_told_of_first_attempts_that_were_dropped() {
    let gate = CountingGate::allowing(1);
    let client = plain_retry(retry(SECOND), Limits::default())
        .gate(gate.as_gate())
        .layer(Script::always(Step::hang()));
    let timeout = tokio::time::timeout(SECOND, call(&client, Carried::new(1))).await;
    assert!(timeout.is_err());
    assert_eq!(gate.ends(), [Class::Cancelled]);
    assert_eq!(gate.entered_and_left(), (1, 1));
}

/// Writes down what it is told, and what is in flight when its leg is left.
struct Diary {
    upstream: Upstream,
    lines: Mutex<Vec<String>>,
}

impl Diary {
    fn of(upstream: &Upstream) -> Arc<Self> {
        Arc::new(Self {
            upstream: upstream.clone(),
            lines: Mutex::default(),
        })
    }

    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }

    fn write(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

impl Gate for Diary {
    fn leave(&self, _: Instant) {
        self.write(format!("left, {} in flight", self.upstream.in_flight()));
    }

    fn attempt_end(&self, class: Class, _: Instant) {
        self.write(format!("ended {class}"));
    }

    fn withdraw(&self, _: &Ask) -> Option<Receipt> {
        self.write("asked".into());
        Some(Receipt::default())
    }

    fn settle(&self, _: Receipt, settled: Settled) {
        self.write(format!("settled {settled:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_drop_is_told_in_the_order_of_an_outcome() {
    let upstream = Script::from_fn(|n, _: &Carried<u64>| match n {
        1 => Step::answer(500),
        _ => Step::answer(200).after(SECOND),
    });
    let diary = Diary::of(&upstream);
    let client = plain_retry(retry(SECOND), Limits::default())
        .gate(diary.clone())
        .layer(upstream);
    call(&client, Carried::new(1)).await.unwrap();
    assert_eq!(
        diary.lines(),
        [
            "ended transient",
            "asked",
            "settled Sent(Success)",
            "ended success",
            "left, 0 in flight"
        ]
    );

    let upstream = Script::new([Step::answer(500), Step::hang()]);
    let diary = Diary::of(&upstream);
    let client = plain_retry(retry(SECOND), Limits::default())
        .gate(diary.clone())
        .layer(upstream);
    let timeout = tokio::time::timeout(2 * SECOND, call(&client, Carried::new(1))).await;
    assert!(timeout.is_err());
    assert_eq!(
        diary.lines(),
        [
            "ended transient",
            "asked",
            "settled Sent(Cancelled)",
            "ended cancelled",
            "left, 0 in flight"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_given_back_before_the_leg_is_left() {
    let readiness = Readiness::new();
    let fail = readiness.clone();
    let upstream = Script::from_fn(move |_, _| {
        fail.set_failed("closed");
        Step::answer(500)
    });
    let diary = Diary::of(&upstream);
    let client = plain_retry(retry(SECOND), Limits::default())
        .gate(diary.clone())
        .layer(readiness.layer(upstream));
    call(&client, Carried::new(1)).await.unwrap();
    assert_eq!(
        diary.lines(),
        [
            "ended transient",
            "asked",
            "settled NotSent",
            "left, 0 in flight"
        ]
    );
}

/// Writes down what it is told.
#[derive(Default)]
struct Firsts {
    told: Mutex<Vec<Class>>,
    open: Mutex<(u32, u32)>,
}

impl Firsts {
    fn told(&self) -> Vec<Class> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

impl Gate for Firsts {
    fn first_end(&self, class: Class, _: Instant) {
        self.told.lock().unwrap().push(class);
    }

    fn withdraw(&self, _: &Ask) -> Option<Receipt> {
        self.open.lock().unwrap().0 += 1;
        Some(Receipt::default())
    }

    fn settle(&self, _: Receipt, settled: Settled) {
        if settled == Settled::NotSent {
            self.open.lock().unwrap().0 -= 1;
        } else {
            self.open.lock().unwrap().1 += 1;
        }
    }
}

/// Refused unsent at these calls.
fn refused_at(calls: &'static [usize]) -> impl Fn(usize) -> Step<u16> {
    move |n| match calls.contains(&n) {
        true => Step::fail(|| Refused::new(Refusal::Open)),
        false => Step::answer(500),
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_is_told_once_of_the_first_attempt_of_a_call() {
    let gate = Arc::new(Firsts::default());
    let layers = [1, 2].map(|_| plain_retry(retry(SECOND), sends(3)).gate(gate.clone()));
    let client = stack(layers, then(&[429, 500, 200, 400]));
    call(&client, Carried::new(1)).await.unwrap();
    assert_eq!(gate.told(), [Class::Throttled]);
    call(&client, Carried::new(1)).await.unwrap();
    assert_eq!(gate.told(), [Class::CallerFault]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_refused_unsent_is_no_first_attempt() {
    let gate = Arc::new(Firsts::default());
    let step = refused_at(&[1]);
    let upstream = Script::from_fn(move |n, _: &Carried<u64>| step(n));
    let client = plain_retry(retry(SECOND), sends(1))
        .gate(gate.clone())
        .layer(upstream);
    call(&client, Carried::new(1)).await.unwrap_err();
    assert_eq!(gate.told(), []);
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 500);
    assert_eq!(gate.told(), [Class::Transient]);
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_that_is_dropped_under_way_was_sent() {
    let gate = Arc::new(Firsts::default());
    let client = plain_retry(retry(SECOND), sends(3))
        .gate(gate.clone())
        .layer(Script::always(Step::answer(200).after(SECOND)));
    let waiting = tokio::time::timeout(SECOND / 2, call(&client, Carried::new(1)));
    waiting.await.unwrap_err();
    assert_eq!(gate.told(), [Class::Cancelled]);
}

/// The retry is granted, held here twice, then sent: one reservation, charged once.
#[tokio::test(start_paused = true)]
async fn a_retry_that_is_held_keeps_its_reservation() {
    let gate = Arc::new(Firsts::default());
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let held = {
        let calls = calls.clone();
        tower::service_fn(move |request: Carried<u64>| {
            let n = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let ledger = request.ledger().unwrap().clone();
            std::future::ready(match n {
                0 | 3 => Ok::<u16, BoxError>(500),
                _ => {
                    ledger.advise(Verdict::Retry { after: SECOND });
                    Err(Refused::new(Refusal::Held).into())
                }
            })
        })
    };
    let client = plain_retry(retry(SECOND), sends(2))
        .gate(gate.clone())
        .layer(held);
    let mut waiting = Box::pin(call(&client, Carried::new(1)));
    tokio::time::timeout(SECOND * 5 / 2, &mut waiting)
        .await
        .unwrap_err();
    assert_eq!(*gate.open.lock().unwrap(), (1, 0), "held, still reserved");
    assert_eq!(waiting.await.unwrap(), 500);
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 4);
    assert_eq!(*gate.open.lock().unwrap(), (1, 1), "asked once, sent once");
}

/// A retry that is granted and then refused for good goes back.
#[tokio::test(start_paused = true)]
async fn a_retry_that_is_refused_for_good_is_given_back() {
    let gate = Arc::new(Firsts::default());
    let step = refused_at(&[2]);
    let upstream = Script::from_fn(move |n, _: &Carried<u64>| step(n));
    let client = plain_retry(retry(SECOND), sends(3))
        .gate(gate.clone())
        .layer(upstream);
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 500);
    assert_eq!(*gate.open.lock().unwrap(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_first_call_leaves_the_gate() {
    let gate = CountingGate::allowing(9);
    let client = plain_retry(retry(SECOND), sends(3))
        .gate(gate.as_gate())
        .layer(tower::service_fn(|request: Carried<u64>| {
            assert_ne!(*request.get_ref(), 1, "in call");
            std::future::ready(Ok::<u16, std::io::Error>(200))
        }));
    let (request, ledger) = offered();
    let mut ready = client.clone();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        tower_service::Service::call(&mut ready, request)
    }));
    assert!(unwound.is_err());
    assert_eq!(gate.entered_and_left(), (1, 1));
    assert_eq!(ledger.report().attempts[0].class, Class::Cancelled);
}
