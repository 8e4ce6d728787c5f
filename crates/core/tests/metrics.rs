//! Names and labels of what the engine counts.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{collections::BTreeMap, future::Future, time::Duration};

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tower::{Layer, ServiceExt};
use tower_spillway_core::{
    Carried, Class, Engine, Failure, History, Ledger, Limits, Outcome, Plain, Policy, Reading,
    Refusal, Refused, RetryLayer, TimeLimit, TimedOut, Verdict, clock,
    ledger::LegPlan,
    testing::script::{Script, Step},
};

fn classify(out: Result<&u16, Failure<'_>>) -> Reading {
    let reading = Reading::new(match out {
        Ok(200) => Class::Success,
        Ok(429) => Class::Throttled,
        Ok(400) => Class::CallerFault,
        _ => Class::Transient,
    });
    // What a server says is in no label.
    reading.with_reason("secret")
}

#[derive(Clone, Copy, Debug)]
struct Always;

impl<Res> Policy<Res> for Always {
    fn judge(&self, _: &History, _: &Outcome<'_, Res>) -> Verdict {
        Verdict::Retry {
            after: Duration::from_secs(1),
        }
    }
}

type Adapter = Plain<fn(Result<&u16, Failure<'_>>) -> Reading>;

fn retries(sends: u32) -> RetryLayer<Always, Adapter> {
    let adapter: Adapter = Plain(classify);
    let engine = Engine::new(Always, adapter);
    RetryLayer::from_engine(engine.limits(Limits {
        max_attempts: Some(sends),
        ..Limits::default()
    }))
}

/// Every counter as `name{label=value,...}`.
fn counted(run: impl Future) -> BTreeMap<String, u64> {
    let recorder = DebuggingRecorder::new();
    let seen = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        tower_spillway_core::metrics::describe_metrics();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(run);
    });
    let all = seen.snapshot().into_vec().into_iter();
    all.map(|(key, _, help, value)| {
        assert!(help.is_some(), "{key:?} is described");
        let key = key.key();
        let labels: Vec<_> = key
            .labels()
            .map(|l| format!("{}={}", l.key(), l.value()))
            .collect();
        let DebugValue::Counter(n) = value else {
            unreachable!("only counters")
        };
        (format!("{}{{{}}}", key.name(), labels.join(",")), n)
    })
    .collect()
}

fn map<const N: usize>(expected: [(&str, u64); N]) -> BTreeMap<String, u64> {
    expected.map(|(name, n)| (name.to_owned(), n)).into()
}

#[test]
fn attempts_retries_and_stops_of_one_call() {
    let counted = counted(async {
        let upstream = Script::new([
            Step::answer(429),
            Step::fail(|| TimedOut::new(TimeLimit::Head, Duration::from_secs(8))),
            Step::answer(503),
            Step::answer(503),
        ]);
        let client = retries(4).layer(upstream);
        client.oneshot(Carried::new("key")).await.unwrap();
    });
    assert_eq!(
        counted,
        map([
            ("spillway.attempts{target=,class=throttled}", 1),
            ("spillway.attempts{target=,class=transient}", 3),
            ("spillway.retries{target=,cause=throttled}", 1),
            ("spillway.retries{target=,cause=timed_out}", 1),
            ("spillway.retries{target=,cause=transient}", 1),
            // After the 429 it is known that nothing was done.
            ("spillway.possible_duplicates{target=}", 2),
            ("spillway.stops{target=,cause=attempts_exhausted}", 1),
        ])
    );
}

#[test]
fn a_success_is_an_attempt_and_nothing_else() {
    let counted = counted(async {
        let client = retries(4).layer(Script::always(Step::answer(200)));
        for _ in 0..3 {
            client.clone().oneshot(Carried::new("key")).await.unwrap();
        }
    });
    assert_eq!(
        counted,
        map([("spillway.attempts{target=,class=success}", 3)])
    );
}

#[test]
fn the_target_is_the_one_of_the_leg() {
    let counted = counted(async {
        let client = retries(2).layer(Script::new([Step::answer(400)]));
        let mut request = Carried::new("key");
        let ledger = Ledger::enter(&Plain(classify), &mut request);
        let leg = ledger.open_leg(LegPlan::new("opus".into()), clock::now());
        client.oneshot(request.with_ledger(leg)).await.unwrap();
    });
    assert_eq!(
        counted,
        map([
            ("spillway.attempts{target=opus,class=caller_fault}", 1),
            ("spillway.stops{target=opus,cause=caller_fault}", 1),
        ])
    );
}

#[test]
fn what_was_refused_here_is_told_apart() {
    let counted = counted(async {
        let upstream = tower::service_fn(move |request: Carried<&str>| {
            let ledger = request.ledger().unwrap();
            let held = ledger.report().attempts.is_empty();
            if held {
                ledger.advise(Verdict::Retry {
                    after: Duration::from_secs(1),
                });
            }
            std::future::ready(match held {
                true => Err(Refused::new(Refusal::Held)),
                false => Ok(200),
            })
        });
        let client = retries(2).layer(upstream);
        client.oneshot(Carried::new("key")).await.unwrap();
    });
    assert_eq!(
        counted,
        map([
            ("spillway.attempts{target=,class=refused}", 1),
            ("spillway.attempts{target=,class=success}", 1),
            ("spillway.retries{target=,cause=held}", 1),
        ])
    );
}

#[test]
fn two_retrying_layers_count_each_send_once() {
    let counted = counted(async {
        let upstream = Script::always(Step::answer(503));
        let client = (retries(5), retries(3)).layer(upstream.clone());
        client.oneshot(Carried::new("key")).await.unwrap();
        assert_eq!(upstream.calls(), 3);
    });
    assert_eq!(counted["spillway.attempts{target=,class=transient}"], 3);
    assert_eq!(counted["spillway.retries{target=,cause=transient}"], 2);
}
