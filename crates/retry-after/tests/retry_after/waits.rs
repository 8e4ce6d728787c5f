//! How long it waits, and when it passes the answer through.

use std::{sync::Arc, time::Duration};

use http::Response;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};
use tower_retry_after::RetryAfterLayer;
use tower_spillway_core::{
    Cause, Chance, Class, Gate, Http, Ledger, RetryLayer, Verdict,
    call::CallLayer,
    clock::Wall,
    gate::{Ask, Receipt},
    hint::Jitter,
    testing::{
        script::{Script, Step},
        wall::ManualWall,
    },
};

use crate::support::{MS, SECOND, Upstream, answers, get, response};

fn exact() -> RetryAfterLayer {
    RetryAfterLayer::new().jitter(Jitter::None)
}

async fn call(layer: RetryAfterLayer, upstream: &Upstream) -> Response<String> {
    layer.layer(upstream.clone()).oneshot(get()).await.unwrap()
}

/// The original answer, at once, after one send.
async fn passes_through(layer: RetryAfterLayer, hint: &'static str) -> Cause {
    let upstream = answers([(429, hint)]);
    let started = Instant::now();
    let answer = call(layer, &upstream).await;
    assert_eq!((upstream.calls(), started.elapsed()), (1, Duration::ZERO));
    let original = response(429, hint);
    assert_eq!(answer.status(), original.status());
    assert_eq!(answer.headers(), original.headers());
    assert_eq!(answer.body(), original.body());
    let report = answer.extensions().get::<Ledger>().unwrap().report();
    report.attempts[0].cause.unwrap()
}

#[tokio::test(start_paused = true)]
async fn waits_exactly_what_was_asked_without_jitter() {
    let upstream = answers([(429, "2"), (503, "1"), (200, "")]);
    assert_eq!(call(exact(), &upstream).await.status(), 200);
    assert_eq!(upstream.times(), [0, 2, 3].map(|s| s * SECOND));
}

/// A new hint replaces the one before.
#[tokio::test(start_paused = true)]
async fn src_litellm_stale_hint() {
    let upstream = answers([(429, "1"), (429, "5"), (200, "")]);
    assert_eq!(call(exact(), &upstream).await.status(), 200);
    assert_eq!(upstream.times(), [0, 1, 6].map(|s| s * SECOND));
}

#[tokio::test(start_paused = true)]
async fn milliseconds_and_decimals_are_not_rounded_away() {
    let step = |name: &'static str, value: &'static str| {
        Step::answer_with(move || {
            let builder = Response::builder().status(429).header(name, value);
            builder.body(String::new()).unwrap()
        })
    };
    let upstream = Script::new([
        step("retry-after-ms", "250"),
        step("retry-after", "0.5"),
        Step::answer_with(|| response(200, "")),
    ]);
    assert_eq!(call(exact(), &upstream).await.status(), 200);
    assert_eq!(upstream.times(), [0, 250, 750].map(|ms| ms * MS));
}

#[tokio::test(start_paused = true)]
async fn a_date_is_read_against_the_wall_clock() {
    // Sun, 06 Nov 1994 08:49:37 GMT is 784,111,777 s after the epoch; the clock is 7 s earlier.
    let wall = ManualWall::at(std::time::SystemTime::UNIX_EPOCH + 784_111_770 * SECOND);
    let upstream = answers([(503, "Sun, 06 Nov 1994 08:49:37 GMT"), (200, "")]);
    let layer = exact().adapter(Http::new().wall_clock(Wall::new(wall)));
    let answer = layer.layer(upstream.clone()).oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(upstream.times(), [Duration::ZERO, 7 * SECOND]);
}

#[tokio::test(start_paused = true)]
async fn jitter_only_adds_at_most_half_or_5_s() {
    for (hint, draw, wait_ms) in [
        ("2", 0, 2_000),
        ("2", u64::MAX, 2_999),
        ("60", u64::MAX, 65_000),
    ] {
        let upstream = answers([(429, hint), (200, "")]);
        let layer = RetryAfterLayer::new().chance(Chance::fixed(draw));
        assert_eq!(call(layer, &upstream).await.status(), 200);
        let wait = Duration::from_millis(wait_ms);
        assert_eq!(upstream.times(), [Duration::ZERO, wait]);
    }
}

/// Row 18: synchronised wake after equal hints.
#[tokio::test(start_paused = true)]
async fn row_18_100_callers_spread_over_at_least_4_s_and_none_early() {
    let upstream = Script::from_fn(|n, _: &http::Request<String>| {
        Step::answer_with(move || match n {
            ..=100 => response(429, "60"),
            _ => response(200, ""),
        })
    });
    let service = RetryAfterLayer::new()
        .chance(Chance::seeded(18))
        .layer(upstream.clone());
    let calls: Vec<_> = (0..100)
        .map(|_| tokio::spawn(service.clone().oneshot(get())))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    let again = &upstream.times()[100..];
    assert!(again[0] >= 60 * SECOND);
    assert!(again[99] - again[0] >= 4 * SECOND, "{again:?}");
    assert!(again[99] <= 65 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_hint_above_the_longest_wait_passes_through_at_once() {
    assert_eq!(passes_through(exact(), "61").await, Cause::HintTooLong);
    assert_eq!(passes_through(exact(), "3600").await, Cause::HintTooLong);
    // Row 31: beyond any integer.
    let endless = "99999999999999999999999999";
    assert_eq!(passes_through(exact(), endless).await, Cause::HintTooLong);
    let longer = exact().longest_wait(300 * SECOND);
    assert_eq!(passes_through(longer, "301").await, Cause::HintTooLong);
}

/// It compares what was asked: equal passes whatever jitter adds.
#[tokio::test(start_paused = true)]
async fn a_hint_equal_to_the_longest_wait_is_waited_out() {
    for (layer, hint, wait) in [
        (RetryAfterLayer::new(), "60", 65),
        (
            RetryAfterLayer::new().longest_wait(300 * SECOND),
            "300",
            305,
        ),
    ] {
        let upstream = answers([(429, hint), (200, "")]);
        let layer = layer.chance(Chance::fixed(u64::MAX));
        assert_eq!(call(layer, &upstream).await.status(), 200);
        assert_eq!(upstream.times(), [Duration::ZERO, wait * SECOND]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_longer_than_the_deadline_passes_through_at_once() {
    for (hint, sends) in [("20", 1), ("10", 1), ("9", 2)] {
        let upstream = answers([(429, hint), (200, "")]);
        let layers = (CallLayer::new().deadline(10 * SECOND), exact());
        let started = Instant::now();
        let answer = layers.layer(upstream.clone()).oneshot(get()).await.unwrap();
        assert_eq!(upstream.calls(), sends, "hint {hint}");
        if sends == 1 {
            assert_eq!(
                (answer.status().as_u16(), started.elapsed()),
                (429, Duration::ZERO)
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn total_wait_counts_jitter_too() {
    let upstream = answers([(429, "2")]);
    let layer = RetryAfterLayer::new()
        .chance(Chance::fixed(u64::MAX))
        .max_total_wait(5 * SECOND);
    let answer = call(layer, &upstream).await;
    assert_eq!(answer.status(), 429);
    let drawn = Duration::from_millis(2999);
    assert_eq!(upstream.times(), [Duration::ZERO, drawn]);
    let report = answer.extensions().get::<Ledger>().unwrap().report();
    let (waited, next) = (drawn, drawn);
    assert_eq!(
        report.attempts[1].cause,
        Some(Cause::BudgetDenied { waited, next })
    );
}

#[tokio::test(start_paused = true)]
async fn sends_are_bounded() {
    for (layer, sends) in [(exact(), 3), (exact().max_attempts(5).unwrap(), 5)] {
        let upstream = answers([(429, "1")]);
        assert_eq!(call(layer, &upstream).await.status(), 429);
        assert_eq!(upstream.calls(), sends);
    }
    assert_eq!(exact().max_attempts(0).unwrap_err().what(), "max_attempts");
}

#[tokio::test(start_paused = true)]
async fn without_a_hint_it_has_no_opinion() {
    // Garbage and negative values are no hint.
    for (status, hint) in [(429, ""), (503, ""), (429, "soon"), (429, "-5"), (404, "1")] {
        let upstream = answers([(status, hint)]);
        let answer = call(exact(), &upstream).await;
        assert_eq!(answer.status().as_u16(), status);
        assert_eq!(upstream.calls(), 1, "{status} {hint}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_of_zero_waits_1_ms_alone_and_the_schedule_in_a_stack() {
    let upstream = answers([(429, "0"), (200, "")]);
    assert_eq!(call(exact(), &upstream).await.status(), 200);
    assert_eq!(upstream.times(), [Duration::ZERO, MS]);

    let schedule =
        RetryLayer::new(
            |_: &_, _: &tower_spillway_core::Outcome<'_, _>| Verdict::Retry { after: 100 * MS },
        );
    let upstream = answers([(429, "0"), (200, "")]);
    let layers = (exact(), schedule);
    let answer = layers.layer(upstream.clone()).oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(upstream.times(), [Duration::ZERO, 100 * MS]);
}

struct Denies;

impl Gate for Denies {
    fn withdraw(&self, ask: &Ask) -> Option<Receipt> {
        assert_eq!(ask.class, Class::Throttled);
        None
    }
}

/// Row 25: a budget's "no" replaces the result.
#[tokio::test(start_paused = true)]
async fn row_25_a_denied_retry_gives_the_very_same_response() {
    let cause = passes_through(exact().gate(Arc::new(Denies)), "2").await;
    assert_eq!(
        cause,
        Cause::BudgetDenied {
            waited: Duration::ZERO,
            next: 2 * SECOND
        }
    );
}

/// Row 27: retries multiply through layers.
#[tokio::test(start_paused = true)]
async fn row_27_nested_layers_do_not_multiply() {
    let upstream = answers([(429, "2")]);
    let layers = (
        exact().max_attempts(3).unwrap(),
        exact().max_attempts(4).unwrap(),
    );
    let answer = layers.layer(upstream.clone()).oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(upstream.times(), [0, 2, 4].map(|s| s * SECOND));
}
