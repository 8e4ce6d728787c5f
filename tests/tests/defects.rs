//! `DEFECTS.md`: what went wrong elsewhere. Every test that it names is there; those rows that no
//! crate tests by itself are tested here.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{fs, path::Path, sync::Arc, time::Duration};

use common::{SECOND, Upstream, always, answer, get, send};
use tokio::time::{Instant, advance};
use tower::{Layer, ServiceBuilder};
use tower_spillway::{
    circuit_breaker::{BreakerConfig, Rule, State},
    core::{
        Gate,
        gate::{Ask, Grant},
        hint,
        testing::script::{Script, Step},
    },
    jitter_backoff::Jitter,
    prelude::*,
    retry_budget::{ConcurrencyBudget, CostConfig, RatioConfig, ScoreBudget},
};

#[test]
fn every_defect_has_tests_and_they_are_there() {
    let member = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(member.join("DEFECTS.md")).unwrap();
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .filter_map(|(number, row)| Some((number.parse::<usize>().ok()?, row)));
    let mut numbers = Vec::new();
    for (number, row) in rows {
        numbers.push(number);
        let named: Vec<_> = row
            .split('`')
            .filter_map(|code| code.split_once("::"))
            .collect();
        assert!(!named.is_empty(), "row {number} names no test");
        for (file, test) in named {
            let source = fs::read_to_string(member.join("..").join(file))
                .unwrap_or_else(|e| panic!("row {number}: {file}: {e}"));
            assert!(
                source.contains(&format!("fn {test}(")),
                "row {number}: no {test} in {file}"
            );
        }
    }
    assert_eq!(numbers, (1..=38).collect::<Vec<_>>());
}

/// A window of 10 s in parts of 1 s. Whatever the moment of the failure that reaches the number,
/// the very edge of a part included, it counts and opens the breaker.
#[tokio::test(start_paused = true)]
async fn row_12_a_result_at_the_edge_of_the_window_counts() {
    let nano = Duration::from_nanos(1);
    let edges = (1..10).flat_map(|s| [s * SECOND - nano, s * SECOND, s * SECOND + nano]);
    for at in edges.chain([10 * SECOND - nano]) {
        let rules = [Rule::number(2, 10 * SECOND)];
        let config = BreakerConfig::new().rules(rules);
        let breakers = CircuitBreakerLayer::with_config(config).unwrap();
        let breaker = breakers.unnamed_breaker();
        let mut client = breakers.layer(always(500, &[]));
        send(&mut client, get()).await;
        advance(at).await;
        assert_eq!(breaker.state(), State::Closed, "{at:?}");
        send(&mut client, get()).await;
        assert_eq!(breaker.state(), State::Open, "{at:?}");
    }
}

fn ask(gate: &Arc<dyn Gate>) -> Option<Grant> {
    Grant::withdraw(gate, &Ask::retry(Class::Transient, Instant::now()))
}

fn denied_a_thousand_times(gate: &Arc<dyn Gate>) {
    assert!((0..1000).all(|_| ask(gate).is_none()));
}

/// Denials take nothing: what comes in after them is granted at once.
#[tokio::test(start_paused = true)]
async fn row_21_denials_are_free() {
    let ratio = RatioConfig::new().build().unwrap();
    let cost = CostConfig::new().capacity(28).refill_per_second(14.0);
    for gate in [ratio.as_gate(), cost.build().unwrap().as_gate()] {
        while let Some(grant) = ask(&gate) {
            grant.finish(Class::Transient);
        }
        denied_a_thousand_times(&gate);
        advance(10 * SECOND).await;
        assert!(ask(&gate).is_some());
    }

    let flight = ConcurrencyBudget::new(100, 1).unwrap().as_gate();
    let out = ask(&flight).unwrap();
    denied_a_thousand_times(&flight);
    out.finish(Class::Transient);
    assert!(ask(&flight).is_some());

    let score = ScoreBudget::new(10, 1.0).unwrap().as_gate();
    for _ in 0..5 {
        score.attempt_end(Class::Transient, Instant::now());
    }
    denied_a_thousand_times(&score);
    score.attempt_end(Class::Success, Instant::now());
    assert!(ask(&score).is_some());
}

/// What a server may write there, and how long the retry then waits: as said, never overflown,
/// never nothing where something was asked; nonsense is as if it were not there.
#[tokio::test(start_paused = true)]
async fn row_31_huge_negative_and_small_hints() {
    const SCHEDULE: Duration = Duration::from_millis(250);
    let huge = "99999999999999999999999999999999";
    for (name, value, wait) in [
        ("retry-after", "1", Some(SECOND)),
        ("retry-after", "0.25", Some(Duration::from_millis(250))),
        ("retry-after", "0.0001", Some(SCHEDULE)),
        (
            "retry-after-ms",
            "1500.2",
            Some(Duration::from_millis(1501)),
        ),
        ("retry-after", "-1", Some(SCHEDULE)),
        ("retry-after", "NaN", Some(SCHEDULE)),
        ("retry-after", "inf", Some(SCHEDULE)),
        ("retry-after", huge, None),
        ("retry-after-ms", huge, None),
        ("retry-after", "18446744073709551616", None),
        ("retry-after", "9223372036854775807", None),
    ] {
        let step = |status, headers: &[_]| Step::answer(answer(status, headers));
        let upstream: Upstream = Script::new([step(429, &[(name, value)]), step(200, &[])]);
        let stack = ServiceBuilder::new()
            .layer(RetryAfterLayer::new().jitter(hint::Jitter::None))
            .layer(
                JitterBackoffLayer::constant(SCHEDULE)
                    .unwrap()
                    .jitter(Jitter::None),
            )
            .service(upstream.clone());
        let called = send(&mut { stack }, get()).await;
        match wait {
            Some(wait) => {
                assert_eq!(
                    (called.status(), called.took),
                    (200, wait),
                    "{name}: {value}"
                );
            }
            None => {
                assert_eq!(
                    (called.status(), called.took),
                    (429, Duration::ZERO),
                    "{name}"
                );
                let cause = called.report.attempts[0].cause;
                assert_eq!(cause, Some(Cause::HintTooLong), "{name}: {value}");
            }
        }
    }
}

/// The error says which setting it is.
#[test]
fn row_35_nonsense_is_refused_by_its_name() {
    let none = Duration::ZERO;
    let breaker = |config| CircuitBreakerLayer::with_config(config).err();
    let new = BreakerConfig::new;
    for (name, error) in [
        ("failures", breaker(new().failures(0))),
        ("growth", breaker(new().growth(f64::NAN))),
        ("growth", breaker(new().growth(-2.0))),
        ("jitter", breaker(new().jitter(-0.1))),
        ("jitter", breaker(new().jitter(f64::INFINITY))),
        ("probes_at_once", breaker(new().probes_at_once(0))),
        ("close_after", breaker(new().close_after(0))),
        ("reopen_after", breaker(new().reopen_after(0))),
        ("hold", breaker(new().hold(none))),
        ("delay", JitterBackoffLayer::constant(none).err()),
        ("base", JitterBackoffLayer::exponential(none, SECOND).err()),
        (
            "cap",
            JitterBackoffLayer::exponential(2 * SECOND, SECOND).err(),
        ),
        (
            "max_attempts",
            JitterBackoffLayer::new().max_attempts(0).err(),
        ),
        ("max_attempts", RetryAfterLayer::new().max_attempts(0).err()),
        ("max_attempts", RetryBudgetLayer::per_call(SECOND, 0).err()),
        (
            "ratio",
            RetryBudgetLayer::ratio(RatioConfig::new().ratio(-0.1)).err(),
        ),
        (
            "ratio",
            RetryBudgetLayer::ratio(RatioConfig::new().ratio(f64::NAN)).err(),
        ),
        ("percent", ConcurrencyBudget::new(101, 3).err()),
        ("in_flight", InFlightLayer::new(0).err()),
    ] {
        let error = error.map(|error| error.to_string());
        let said = error.as_deref().unwrap_or("accepted");
        assert!(said.contains(name), "{name}: {said}");
    }
}

/// Nothing is sent, nobody waits, and the earliest time to come back is said; then the target that
/// is first back is asked.
#[tokio::test(start_paused = true)]
async fn row_36_with_every_breaker_open_the_caller_hears_when_the_first_is_back() {
    let (a, b) = (always(200, &[]), always(200, &[]));
    let breakers = CircuitBreakerLayer::new();
    let mut client = FailoverService::new([
        Target::new("A", breakers.layer(a.clone())),
        Target::new("B", breakers.layer(b.clone())),
    ])
    .unwrap();
    breakers.breaker("A").force_open_for(30 * SECOND);
    breakers.breaker("B").force_open_for(20 * SECOND);
    let called = send(&mut client, get()).await;
    let error = called.out.unwrap_err();
    assert!(error.downcast_ref::<AllRefused>().is_some(), "{error}");
    assert_eq!(Refused::find(&*error).unwrap().wait(), Some(20 * SECOND));
    assert_eq!((a.calls(), b.calls(), called.took), (0, 0, Duration::ZERO));

    advance(20 * SECOND).await;
    assert_eq!(send(&mut client, get()).await.status(), 200);
    assert_eq!((a.calls(), b.calls()), (0, 1));
}
