//! Legs that a failover opens: what crosses into them and what does not.

use std::task::{Context, Poll};

use tower::Layer;
use tower_service::Service;
use tower_spillway_core::{
    BoxError, Carried, Carry, Class, Ledger, Limits, Plain, Read, Retry,
    ledger::{LegPlan, Onward},
    testing::{gate::CountingGate, script::Step},
};

use crate::support::*;

/// A failover in its barest form: all legs in turn, the outcome of the last.
#[derive(Clone)]
struct Legs<S> {
    targets: Vec<(LegPlan, S)>,
}

impl<S> Service<Carried<u64>> for Legs<S>
where
    S: Service<Carried<u64>, Response = u16, Error = BoxError> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    type Response = u16;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<u16, BoxError>> + Send + 'static>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Carried<u64>) -> Self::Future {
        let mut ledger = Ledger::enter(&plain(), &mut request);
        let targets = self.targets.clone();
        Box::pin(async move {
            let mut last = Ok(0);
            let adapter: Plain<Classify> = plain();
            for (plan, service) in targets {
                let mut copy = request.clone();
                let leg = ledger.open_leg(plan, ledger.now());
                adapter.open(&mut copy, leg.clone());
                last = call(&service, copy).await;
                let view = last.as_ref().map_err(|e: &BoxError| &**e as _);
                leg.end_leg(&Read::<u16>::read(&adapter, view));
                if matches!(last, Ok(200)) {
                    leg.serve();
                    break;
                }
            }
            ledger.finish(&adapter, &mut last);
            last
        })
    }
}

type Leg<P> = Retry<Upstream, P, Plain<Classify>>;

fn leg<P: tower_spillway_core::Policy<u16> + Clone>(
    policy: P,
    most: u32,
    upstream: &Upstream,
) -> Leg<P> {
    plain_retry(policy, sends(most)).layer(upstream.clone())
}

fn offered() -> (Carried<u64>, Ledger) {
    let ledger = Ledger::new();
    (Carried::new(1).with_ledger(ledger.clone()), ledger)
}

#[tokio::test(start_paused = true)]
async fn a_driver_outside_does_not_mute_the_drivers_of_the_legs() {
    let (a, b) = (always(500), always(500));
    let legs = Legs {
        targets: vec![
            (LegPlan::new("a".into()), leg(retry(SECOND), 2, &a)),
            (LegPlan::new("b".into()), leg(retry(SECOND), 3, &b)),
        ],
    };
    let client = plain_retry(verdict(tower_spillway_core::Verdict::Pass), sends(5)).layer(legs);
    let (request, ledger) = offered();
    assert_eq!(call(&client, request).await.unwrap(), 500);
    assert_eq!((a.calls(), b.calls()), (2, 3));
    let report = ledger.report();
    assert_eq!(
        report.attempts.len(),
        5,
        "what the outer one sends is no attempt"
    );
    let targets: Vec<_> = report
        .attempts
        .iter()
        .map(|a| a.target.as_ref().unwrap().as_str())
        .collect();
    assert_eq!(targets, ["a", "a", "b", "b", "b"]);
    assert_eq!(report.fallback_reason.unwrap().target.as_str(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_cap_on_all_sends_counts_over_legs() {
    let (a, b) = (always(500), always(500));
    let legs = Legs {
        targets: vec![
            (LegPlan::new("a".into()), leg(retry(SECOND), 2, &a)),
            (LegPlan::new("b".into()), leg(retry(SECOND), 9, &b)),
        ],
    };
    let client = tower_spillway_core::call::CallLayer::new()
        .max_sends(4)
        .adapter(plain())
        .layer(legs);
    call(&client, Carried::new(1)).await.unwrap();
    assert_eq!((a.calls(), b.calls()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_gate_outside_covers_the_retries_of_all_legs() {
    // Above an outer driver, and below it: either way it is outside of all legs.
    for below in [false, true] {
        let gate = CountingGate::allowing(9);
        let (a, b) = (always(500), always(500));
        let legs = Legs {
            targets: vec![
                (LegPlan::new("a".into()), leg(retry(SECOND), 2, &a)),
                (LegPlan::new("b".into()), leg(retry(SECOND), 2, &b)),
            ],
        };
        let budget = Budget { gate: gate.clone() };
        let outer = plain_retry(verdict(tower_spillway_core::Verdict::Pass), sends(5));
        let request = Carried::new(1);
        let out = if below {
            call(&outer.layer(budget.layer(legs)), request).await
        } else {
            call(&budget.layer(outer.layer(legs)), request).await
        };
        assert_eq!(out.unwrap(), 500);
        assert_eq!(gate.asked(), 2, "below {below}");
        assert_eq!(gate.ends().len(), 4, "attempts, not passes: below {below}");
        assert_eq!(gate.entered_and_left(), (1, 1), "below {below}");
    }
}

/// A budget layer in its barest form.
#[derive(Clone)]
struct Budget {
    gate: CountingGate,
}

impl<S> Layer<S> for Budget {
    type Service = Budgeted<S>;

    fn layer(&self, inner: S) -> Budgeted<S> {
        Budgeted {
            inner,
            gate: self.gate.clone(),
        }
    }
}

#[derive(Clone)]
struct Budgeted<S> {
    inner: S,
    gate: CountingGate,
}

impl<S> Service<Carried<u64>> for Budgeted<S>
where
    S: Service<Carried<u64>, Response = u16, Error = BoxError, Future: Send + 'static>,
{
    type Response = u16;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<u16, BoxError>> + Send + 'static>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Carried<u64>) -> Self::Future {
        let ledger = Ledger::enter(&plain(), &mut request);
        let entry = ledger.enter_gate(self.gate.as_gate(), ledger.now());
        let call = self.inner.call(request);
        Box::pin(async move {
            let _open = (entry, ledger);
            call.await
        })
    }
}

/// Another target is usable as long as this says so.
struct Others(bool);

impl Onward for Others {
    fn usable_after(&self, _tried: usize) -> bool {
        self.0
    }
}

fn plan(others: bool) -> LegPlan {
    let mut plan = LegPlan::new("a".into());
    plan.onward = Some((std::sync::Arc::new(Others(others)), 0));
    plan
}

#[tokio::test(start_paused = true)]
async fn while_another_target_is_usable_a_failure_is_re_sent_once_at_most() {
    for (others, wait, sent) in [
        (true, 1, 2),
        (true, 2, 2),
        (true, 3, 1),
        (false, 1, 5),
        (false, 3, 5),
    ] {
        let upstream = always(500);
        let targets = vec![(plan(others), leg(retry(wait * SECOND), 5, &upstream))];
        call(&Legs { targets }, Carried::new(1)).await.unwrap();
        assert_eq!(upstream.calls(), sent, "{others}, waits of {wait} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_inside_one_leg_leaves_the_next_alone() {
    let a = Upstream::always(Step::hang());
    let b = then(&[500, 200]);
    let bounded = |upstream: &Upstream| {
        tower_spillway_core::call::CallLayer::new()
            .deadline(3 * SECOND)
            .adapter(plain())
            .layer(leg(retry(2 * SECOND), 5, upstream))
    };
    let legs = Legs {
        targets: vec![
            (LegPlan::new("a".into()), bounded(&a)),
            (LegPlan::new("b".into()), bounded(&b)),
        ],
    };
    let (request, ledger) = offered();
    assert_eq!(call(&legs, request).await.unwrap(), 200);
    assert_eq!(b.calls(), 2, "the second leg has a deadline of its own");
    let report = ledger.report();
    assert_eq!(report.attempts[0].class, Class::Cancelled);
    assert_eq!(report.target.unwrap().as_str(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_cap_inside_one_leg_is_of_that_leg() {
    let (a, b) = (always(500), always(500));
    let capped = |upstream: &Upstream| {
        tower_spillway_core::call::CallLayer::new()
            .max_sends(2)
            .adapter(plain())
            .layer(leg(retry(SECOND), 5, upstream))
    };
    let legs = Legs {
        targets: vec![
            (LegPlan::new("a".into()), capped(&a)),
            (LegPlan::new("b".into()), capped(&b)),
        ],
    };
    call(&legs, Carried::new(1)).await.unwrap();
    assert_eq!((a.calls(), b.calls()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_layer_below_a_driver_bounds_each_attempt() {
    let upstream = Upstream::new([Step::hang(), Step::answer(200)]);
    let client = plain_retry(retry(SECOND), Limits::default()).layer(
        tower_spillway_core::call::CallLayer::new()
            .deadline(3 * SECOND)
            .adapter(plain())
            .layer(upstream.clone()),
    );
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 200);
    assert_eq!(upstream.times(), [std::time::Duration::ZERO, 4 * SECOND]);
}

#[tokio::test(start_paused = true)]
async fn limits_of_a_target_bind_the_legs_of_a_failover_inside_it() {
    let run = async |limits: Limits| {
        let (a, b) = (always(500), always(500));
        let inside = Legs {
            targets: vec![
                (LegPlan::new("a".into()), leg(retry(SECOND), 9, &a)),
                (LegPlan::new("b".into()), leg(retry(SECOND), 9, &b)),
            ],
        };
        let of_target = Limited { limits, inside };
        let client = Legs {
            targets: vec![(LegPlan::new("outside".into()), of_target)],
        };
        call(&client, Carried::new(1)).await.unwrap();
        (a.calls(), b.calls())
    };
    assert_eq!(run(Limits::default()).await, (9, 9));
    // `Legs` itself goes on whatever the limits are: the second gets its first send.
    assert_eq!(run(sends(4)).await, (4, 1));
    let waits = Limits {
        max_total_wait: Some(3 * SECOND),
        ..Limits::default()
    };
    assert_eq!(run(waits).await, (4, 1));
}

/// Sets limits over all that is sent below, as a budget does.
#[derive(Clone)]
struct Limited<S> {
    limits: Limits,
    inside: S,
}

impl<S: Service<Carried<u64>>> Service<Carried<u64>> for Limited<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inside.poll_ready(cx)
    }

    fn call(&mut self, mut request: Carried<u64>) -> S::Future {
        let ledger = plain().ledger_mut(&mut request).unwrap();
        ledger.limit_all(self.limits);
        self.inside.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_is_met_after_the_driver_left_is_not_entered() {
    let gate = CountingGate::allowing(9);
    let below = Budget { gate: gate.clone() }.layer(always(200));
    // As a buffer: it calls what is below when it gets to it, though the caller may have left.
    let queue = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&queue);
    let buffer = tower::service_fn(move |request: Carried<u64>| {
        kept.lock().unwrap().push(request);
        std::future::pending::<Result<u16, BoxError>>()
    });
    let client = plain_retry(retry(SECOND), sends(3)).layer(buffer);
    let left = tokio::time::timeout(SECOND, call(&client, Carried::new(1))).await;
    assert!(left.is_err());
    let late = queue.lock().unwrap().pop().unwrap();
    call(&below, late).await.unwrap();
    let (entered, left) = gate.entered_and_left();
    assert_eq!(entered, left);
}
