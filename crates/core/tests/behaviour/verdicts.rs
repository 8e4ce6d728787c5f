//! What policies, classes and hints say, together.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::Method;
use tower::Layer;
use tower_spillway_core::{
    Carried, Cause, Class, History, Ledger, Limits, Outcome, RetryLayer, Verdict,
    hint::{Hint, Source},
    testing::script::{Script, Step},
};
use tower_spillway_core::{Classified, Reading};

use crate::support::*;

/// Calls per verdicts of two stacked layers, in both orders, and the cause of the last attempt.
async fn both_orders(a: Verdict, b: Verdict) -> [(Vec<Duration>, Option<Cause>); 2] {
    let run = async |verdicts: [Verdict; 2]| {
        let upstream = always(500);
        let layers = verdicts.map(|v| plain_retry(verdict(v), Limits::default()));
        let client = stack(layers, upstream.clone());
        let ledger = Ledger::new();
        let request = Carried::new(1).with_ledger(ledger.clone());
        assert_eq!(call(&client, request).await.unwrap(), 500);
        let cause = ledger.report().attempts.last().unwrap().cause;
        (upstream.times(), cause)
    };
    [run([a, b]).await, run([b, a]).await]
}

const RETRY: Verdict = Verdict::Retry { after: SECOND };

#[tokio::test(start_paused = true)]
async fn stop_beats_retry() {
    let stop = Verdict::Stop(Cause::OtherTargetFirst);
    for (times, cause) in both_orders(stop, RETRY).await {
        assert_eq!(times.len(), 1);
        assert_eq!(cause, Some(Cause::OtherTargetFirst));
    }
}

#[tokio::test(start_paused = true)]
async fn retry_beats_pass() {
    for (times, cause) in both_orders(Verdict::Pass, RETRY).await {
        assert_eq!(times.len(), 3);
        assert_eq!(cause, Some(Cause::AttemptsExhausted));
    }
}

#[tokio::test(start_paused = true)]
async fn all_pass_returns_the_outcome_without_a_cause() {
    for (times, cause) in both_orders(Verdict::Pass, Verdict::Pass).await {
        assert_eq!((times.len(), cause), (1, None));
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_waits_the_later() {
    let later = Verdict::Retry { after: 5 * SECOND };
    for (times, _) in both_orders(RETRY, later).await {
        assert_eq!(times, [Duration::ZERO, 5 * SECOND, 10 * SECOND]);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_stops_the_stronger_cause() {
    let weak = Verdict::Stop(Cause::NotReady);
    let strong = Verdict::Stop(Cause::ServerForbids);
    for (_, cause) in both_orders(weak, strong).await {
        assert_eq!(cause, Some(Cause::ServerForbids));
    }
}

#[tokio::test(start_paused = true)]
async fn advice_does_not_outlive_its_attempt() {
    // The adviser speaks once; what it said then must not hold for the next attempt.
    let upstream = always(500);
    let once = |past: &History, _: &Outcome<'_, u16>| match past.sends {
        1 => Verdict::Retry { after: SECOND },
        _ => Verdict::Pass,
    };
    let client = plain_retry(verdict(Verdict::Pass), sends(9))
        .layer(plain_retry(once, Limits::default()).layer(upstream.clone()));
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 500);
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn classes_that_forbid_a_retry_ask_no_policy() {
    for (status, cause) in [
        (200, None),
        (400, Some(Cause::CallerFault)),
        (401, Some(Cause::TargetDown)),
        (413, Some(Cause::NotHere)),
    ] {
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        let policy = move |_: &History, _: &Outcome<'_, u16>| {
            *count.lock().unwrap() += 1;
            RETRY
        };
        let upstream = always(status);
        let client = stack(
            [
                plain_retry(policy.clone(), sends(5)),
                plain_retry(policy, sends(5)),
            ],
            upstream.clone(),
        );
        let ledger = Ledger::new();
        let request = Carried::new(1).with_ledger(ledger.clone());
        assert_eq!(call(&client, request).await.unwrap(), status);
        assert_eq!((upstream.calls(), *asked.lock().unwrap()), (1, 0));
        assert_eq!(ledger.report().attempts[0].cause, cause);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_of_never_stops() {
    let never = || {
        let reading = Reading::new(Class::Throttled).with_hint(Some(Hint::Never));
        Classified::new(reading, "slow down")
    };
    let upstream = Script::always(Step::<u16>::fail(never));
    let client = plain_retry(retry(SECOND), sends(5)).layer(upstream.clone());
    let ledger = Ledger::new();
    let request = Carried::new(1).with_ledger(ledger.clone());
    let error = call(&client, request).await.unwrap_err();
    assert!(error.is::<Classified>());
    assert_eq!(upstream.calls(), 1);
    let attempt = &ledger.report().attempts[0];
    assert_eq!(attempt.cause, Some(Cause::ServerForbids));
    assert_eq!(attempt.class, Class::Throttled, "the class counts as usual");
}

#[tokio::test(start_paused = true)]
async fn a_hint_above_the_longest_wait_returns_the_answer_at_once() {
    let upstream = Script::always(answer(429, &[("retry-after", "3600")]));
    let client = RetryLayer::new(retry(SECOND)).layer(upstream.clone());
    let ledger = Ledger::new();
    let mut request = request(Method::GET);
    request.extensions_mut().insert(ledger.clone());
    let out = call(&client, request).await.unwrap();
    assert_eq!(out.headers()["retry-after"], "3600");
    assert_eq!(text(out.into_body()).await, "body of a 429");
    assert_eq!(upstream.calls(), 1);
    let report = ledger.report();
    assert_eq!(report.attempts[0].cause, Some(Cause::HintTooLong));
    assert_eq!(report.latency, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_longest_wait_of_any_layer_holds_and_equal_passes() {
    for longest in [4, 5] {
        let limits = Limits {
            longest_hint: Some(longest * SECOND),
            ..Limits::default()
        };
        let upstream = Script::new([answer(429, &[("retry-after", "5")]), answer(200, &[])]);
        let client = stack(
            [
                RetryLayer::new(retry(6 * SECOND)),
                RetryLayer::new(retry(6 * SECOND)).limits(limits),
            ],
            upstream.clone(),
        );
        let out = call(&client, request(Method::GET)).await.unwrap();
        assert_eq!(out.status(), if longest == 5 { 200 } else { 429 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_sees_the_history_of_its_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let policy = move |past: &History, out: &Outcome<'_, u16>| {
        log.lock().unwrap().push((*past, out.class()));
        Verdict::Retry { after: 2 * SECOND }
    };
    let upstream = Script::new([
        Step::answer(500).after(SECOND),
        Step::answer(429),
        Step::answer(500),
    ]);
    let client = plain_retry(policy, Limits::default()).layer(upstream);
    call(&client, Carried::new(1)).await.unwrap();
    let seen = seen.lock().unwrap();
    let of = |f: fn(&History) -> u64| seen.iter().map(|(h, _)| f(h)).collect::<Vec<_>>();
    assert_eq!(of(|h| h.sends.into()), [1, 2, 3]);
    assert_eq!(of(|h| h.streak.into()), [1, 1, 2], "each class its own");
    assert_eq!(of(|h| h.elapsed.as_secs()), [1, 3, 5]);
    assert_eq!(of(|h| h.waited.as_secs()), [0, 2, 4]);
    let last_waits: Vec<_> = seen.iter().map(|(h, _)| h.last_wait).collect();
    assert_eq!(last_waits, [None, Some(2 * SECOND), Some(2 * SECOND)]);
}

#[tokio::test(start_paused = true)]
async fn a_hinted_wait_starts_the_streak_again() {
    let hinted = || {
        let hint = Hint::After {
            wait: SECOND,
            source: Source::RetryAfterSeconds,
        };
        let reading = Reading::new(Class::Throttled).with_hint(Some(hint));
        Classified::new(reading, "slow down")
    };
    let streaks = Arc::new(Mutex::new(Vec::new()));
    let log = streaks.clone();
    let policy = move |past: &History, _: &Outcome<'_, u16>| {
        log.lock().unwrap().push((past.streak, past.last_wait));
        Verdict::Retry { after: SECOND }
    };
    let upstream = Script::new([
        Step::answer(500),
        Step::answer(500),
        Step::fail(hinted),
        Step::answer(500),
        Step::answer(200),
    ]);
    let client = plain_retry(policy, sends(9)).layer(upstream);
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 200);
    let wait = Some(SECOND);
    assert_eq!(
        *streaks.lock().unwrap(),
        [(1, None), (2, wait), (0, None), (1, None)]
    );
}
