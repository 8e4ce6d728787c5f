//! How often a request is sent, and when: the layers act as one, in any order.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::time::Duration;

use common::{Called, SECOND, always, answer, get, post, send};
use tower::{Service, util::BoxCloneSyncService};
use tower_layer::Layer;
use tower_spillway::{
    core::{
        Chance, Http,
        hint::Jitter as HintJitter,
        testing::script::{Script, Step},
    },
    jitter_backoff::Jitter,
    prelude::*,
};

use crate::common::{Req, Res, Upstream};

type Stack = BoxCloneSyncService<Req, Res, BoxError>;

const ALWAYS_429: [(&str, &str); 1] = [("retry-after", "2")];

fn backoff(jitter: bool) -> JitterBackoffLayer {
    let layer = JitterBackoffLayer::new().max_attempts(3).unwrap();
    match jitter {
        true => layer,
        false => layer.jitter(Jitter::None),
    }
}

fn retry_after(jitter: bool) -> RetryAfterLayer {
    let layer = RetryAfterLayer::new().max_attempts(4).unwrap();
    match jitter {
        true => layer,
        false => layer.jitter(HintJitter::None),
    }
}

/// The two retrying layers around a service, in both orders.
fn both_orders(upstream: &Upstream, jitter: bool) -> [Stack; 2] {
    let (outer, inner) = (backoff(jitter), retry_after(jitter));
    [
        Stack::new(outer.layer(inner.layer(upstream.clone()))),
        Stack::new(inner.layer(outer.layer(upstream.clone()))),
    ]
}

#[tokio::test(start_paused = true)]
async fn backoff_of_3_and_retry_after_of_4_make_3_sends_and_exactly_4_s_in_both_orders() {
    for order in 0..2 {
        let upstream = always(429, &ALWAYS_429);
        let mut stack = both_orders(&upstream, false)[order].clone();
        let called = send(&mut stack, post()).await;
        assert_eq!(called.status(), 429);
        assert_eq!(upstream.calls(), 3, "order {order}");
        assert_eq!(called.took, 4 * SECOND, "order {order}");
        let last = called.report.attempts.last().unwrap();
        assert_eq!(last.cause, Some(Cause::AttemptsExhausted));
    }
}

#[tokio::test(start_paused = true)]
async fn with_jitter_the_two_waits_take_4_to_6_s() {
    let mut seen = Vec::new();
    for order in [0, 1].repeat(50) {
        let upstream = always(429, &ALWAYS_429);
        let mut stack = both_orders(&upstream, true)[order].clone();
        let called = send(&mut stack, post()).await;
        assert_eq!(upstream.calls(), 3);
        assert!(
            (4 * SECOND..=6 * SECOND).contains(&called.took),
            "{:?}",
            called.took
        );
        seen.push(called.took);
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 50, "{} distinct of 100", seen.len());
}

#[tokio::test(start_paused = true)]
async fn an_hour_is_not_waited_the_original_429_comes_at_once() {
    for order in 0..2 {
        let upstream = always(429, &[("retry-after", "3600"), ("x-original", "yes")]);
        let mut stack = both_orders(&upstream, true)[order].clone();
        let called = send(&mut stack, post()).await;
        assert_eq!(upstream.calls(), 1);
        assert_eq!(called.took, Duration::ZERO);
        assert_eq!(called.report.attempts[0].cause, Some(Cause::HintTooLong));
        let response = called.out.unwrap();
        assert_eq!(response.headers()["retry-after"], "3600");
        assert_eq!(response.headers()["x-original"], "yes");
    }
    // With JitterBackoff alone too: an hour is never cut to a second.
    let upstream = always(429, &[("retry-after", "3600")]);
    let called = send(
        &mut JitterBackoffLayer::new().layer(upstream.clone()),
        post(),
    )
    .await;
    assert_eq!((upstream.calls(), called.took), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn five_retrying_layers_still_make_3_sends() {
    let upstream = always(429, &ALWAYS_429);
    let mut stack = JitterBackoffLayer::new().layer(
        RetryAfterLayer::new().layer(JitterBackoffLayer::new().layer(
            RetryAfterLayer::new().layer(JitterBackoffLayer::new().layer(upstream.clone())),
        )),
    );
    let called = send(&mut stack, post()).await;
    assert_eq!(upstream.calls(), 3);
    assert_eq!(called.report.sends(), 3);
    assert!(called.took <= 6 * SECOND, "{:?}", called.took);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_sends_the_call_to_the_next_target_in_no_time() {
    let (opus, gemini) = (always(500, &[]), always(200, &[]));
    let breakers = CircuitBreakerLayer::new();
    let target =
        |upstream: &Upstream| JitterBackoffLayer::new().layer(breakers.layer(upstream.clone()));
    let mut service = FailoverService::new([
        Target::new("opus", target(&opus)).retry_ambiguous(true),
        Target::new("gemini", target(&gemini)),
    ])
    .unwrap();
    breakers.breaker("opus").force_open();
    let called = send(&mut service, post()).await;
    assert_eq!(called.status(), 200);
    assert_eq!(called.took, Duration::ZERO, "a refusal is not backed off");
    assert_eq!((opus.calls(), gemini.calls()), (0, 1));
    assert_eq!(called.report.fallback_reason.unwrap().class, Class::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_denied_budget_gives_the_original_answer() {
    let upstream = always(503, &[("x-original", "yes")]);
    let mut stack = RetryBudgetLayer::per_call(Duration::ZERO, 5)
        .unwrap()
        .layer(JitterBackoffLayer::new().layer(upstream.clone()));
    let called = send(&mut stack, post()).await;
    assert_eq!((called.status(), upstream.calls()), (503, 1));
    assert_eq!(called.took, Duration::ZERO);
    assert!(matches!(
        called.report.attempts[0].cause,
        Some(Cause::BudgetDenied { waited: Duration::ZERO, next }) if next > Duration::ZERO
    ));
    assert_eq!(called.out.unwrap().headers()["x-original"], "yes");
}

#[tokio::test(start_paused = true)]
async fn a_hint_of_20_s_with_a_deadline_of_10_s_is_one_send() {
    let upstream = always(429, &[("retry-after", "20")]);
    let mut stack = CallLayer::new()
        .deadline(10 * SECOND)
        .layer(both_orders(&upstream, true)[0].clone());
    let called = send(&mut stack, post()).await;
    assert_eq!((called.status(), upstream.calls()), (429, 1));
    assert_eq!(called.took, Duration::ZERO, "not slept into the deadline");
    assert_eq!(
        called.report.attempts[0].cause,
        Some(Cause::DeadlineWouldPass)
    );
}

#[tokio::test(start_paused = true)]
async fn a_hung_primary_with_another_target_usable_gets_one_send_then_the_hop() {
    let opus: Upstream = Script::always(Step::hang());
    let gemini = always(200, &[]);
    let target = |upstream: &Upstream| {
        let attempt = AttemptTimeoutLayer::to_head(8 * SECOND).layer(upstream.clone());
        JitterBackoffLayer::new().layer(RetryAfterLayer::new().layer(attempt))
    };
    let mut service = FailoverService::new([
        Target::new("opus", target(&opus)).retry_ambiguous(true),
        Target::new("gemini", target(&gemini)),
    ])
    .unwrap();
    let called = send(&mut service, post()).await;
    assert_eq!(called.status(), 200);
    assert_eq!((opus.calls(), gemini.calls()), (1, 1));
    assert_eq!(called.took, 8 * SECOND);
}

/// A call through a stack in which every send fails with 500.
async fn against_500<S>(wrap: impl Fn(Upstream) -> S, request: Req) -> (usize, Called)
where
    S: Service<Req, Response = Res, Error = BoxError>,
{
    let upstream = always(500, &[]);
    let called = send(&mut wrap(upstream.clone()), request).await;
    (upstream.calls(), called)
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_post_is_sent_once_by_any_order_of_the_retrying_layers() {
    let chance = Chance::seeded(1);
    let layered = |upstream: Upstream| {
        RetryAfterLayer::new().layer(
            JitterBackoffLayer::new()
                .chance(chance.clone())
                .layer(upstream),
        )
    };
    let (sends, called) = against_500(layered, post()).await;
    assert_eq!(sends, 1);
    assert_eq!(
        called.report.attempts[0].cause,
        Some(Cause::MayHaveBeenProcessed)
    );
    assert_eq!(against_500(layered, get()).await.0, 3);

    let allowed = Http::new().retry_ambiguous(true);
    let layered = |upstream: Upstream| {
        RetryAfterLayer::new().adapter(allowed.clone()).layer(
            JitterBackoffLayer::new()
                .adapter(allowed.clone())
                .layer(upstream),
        )
    };
    assert_eq!(against_500(layered, post()).await.0, 3);
}

#[tokio::test(start_paused = true)]
async fn the_newest_hint_counts_not_the_first() {
    let upstream: Upstream = Script::new([
        Step::answer(answer(429, &[("retry-after", "1")])),
        Step::answer(answer(429, &[("retry-after", "5")])),
        Step::answer(answer(200, &[])),
    ]);
    let mut stack = both_orders(&upstream, false)[0].clone();
    let called = send(&mut stack, post()).await;
    assert_eq!(called.status(), 200);
    assert_eq!(called.took, 6 * SECOND);
}
