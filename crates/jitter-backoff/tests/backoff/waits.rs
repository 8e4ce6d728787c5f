//! How long it waits, and when it does not.

use std::time::Duration;

use http::Response;
use tower::{Layer, ServiceExt};
use tower_jitter_backoff::{Exponential, Jitter, JitterBackoffLayer};
use tower_spillway_core::{
    Cause, Chance, Class, History, InvalidConfig, Ledger, Outcome, call::CallLayer,
    testing::gate::CountingGate,
};

use crate::support::{MS, SECOND, Upstream, answers, get, response};

fn exact() -> JitterBackoffLayer {
    JitterBackoffLayer::new().jitter(Jitter::None)
}

async fn status(layer: JitterBackoffLayer, upstream: &Upstream) -> u16 {
    let service = layer.layer(upstream.clone());
    service.oneshot(get()).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn three_sends_by_default_the_first_included() {
    let upstream = answers([(503, "")]);
    assert_eq!(status(exact(), &upstream).await, 503);
    assert_eq!(upstream.times(), [0, 100, 300].map(|ms| ms * MS));
}

#[tokio::test(start_paused = true)]
async fn a_success_is_sent_once() {
    let upstream = answers([(200, "")]);
    assert_eq!(status(exact(), &upstream).await, 200);
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_delay_each_time() {
    let upstream = answers([(503, "")]);
    let layer = JitterBackoffLayer::constant(SECOND).unwrap();
    let layer = layer.jitter(Jitter::None).max_attempts(4).unwrap();
    assert_eq!(status(layer, &upstream).await, 503);
    assert_eq!(upstream.times(), [0, 1, 2, 3].map(|s| s * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_cap_holds_for_the_schedule() {
    let upstream = answers([(503, "")]);
    let layer = exact().cap(150 * MS).unwrap().max_attempts(5).unwrap();
    assert_eq!(status(layer, &upstream).await, 503);
    assert_eq!(upstream.times(), [0, 100, 250, 400, 550].map(|ms| ms * MS));
}

#[tokio::test(start_paused = true)]
async fn full_jitter_waits_between_1_ms_and_the_ceiling() {
    for (draw, wait) in [(0, 100), (u64::MAX, 1)] {
        let upstream = answers([(503, ""), (200, "")]);
        let layer = JitterBackoffLayer::new().chance(Chance::fixed(draw));
        assert_eq!(status(layer, &upstream).await, 200);
        assert_eq!(upstream.times(), [Duration::ZERO, wait * MS]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_waits_the_same() {
    let times = |seed| async move {
        let upstream = answers([(503, "")]);
        let layer = JitterBackoffLayer::new().chance(Chance::seeded(seed));
        status(layer.max_attempts(6).unwrap(), &upstream).await;
        upstream.times()
    };
    assert_eq!(times(7).await, times(7).await);
    assert_ne!(times(7).await, times(8).await);
}

/// Row 17: base 1 ns, and base equal to the cap.
#[tokio::test(start_paused = true)]
async fn row_17_tiny_and_capped_bases_wait_at_least_1_ms() {
    for base in [Duration::from_nanos(1), MS] {
        let upstream = answers([(503, "")]);
        let layer = JitterBackoffLayer::exponential(base, MS).unwrap();
        assert_eq!(status(layer, &upstream).await, 503);
        assert_eq!(upstream.times(), [0, 1, 2].map(|ms| ms * MS));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_a_floor_and_after_it_the_schedule_starts_again() {
    let upstream = answers([(503, ""), (503, ""), (429, "30"), (503, ""), (200, "")]);
    let layer = exact().cap(SECOND).unwrap().max_attempts(5).unwrap();
    assert_eq!(status(layer, &upstream).await, 200);
    let waits = [100, 200, 30_000, 100];
    let times: Vec<_> = waits
        .iter()
        .scan(0, |at, wait| {
            *at += wait;
            Some(*at * MS)
        })
        .collect();
    assert_eq!(upstream.times()[1..], times);
}

#[tokio::test(start_paused = true)]
async fn a_hint_of_an_hour_is_not_waited_out_nor_cut_short() {
    let upstream = answers([(429, "3600")]);
    let started = tokio::time::Instant::now();
    let answer = exact().layer(upstream.clone()).oneshot(get()).await;
    let answer = answer.unwrap();
    assert_eq!(answer.headers()["retry-after"], "3600");
    assert_eq!(answer.body(), response(429, "3600").body());
    assert_eq!((upstream.calls(), started.elapsed()), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn only_the_classes_asked_for_are_sent_again() {
    let layer = exact().retry_on([Class::Throttled]).unwrap();
    let (broken, throttled) = (answers([(503, "")]), answers([(429, "")]));
    status(layer.clone(), &broken).await;
    status(layer, &throttled).await;
    assert_eq!((broken.calls(), throttled.calls()), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn no_wait_begins_that_would_pass_the_deadline() {
    let upstream = answers([(503, "")]);
    let layer = (CallLayer::new().deadline(300 * MS), exact());
    let started = tokio::time::Instant::now();
    let answer = layer.layer(upstream.clone()).oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 503);
    let report = answer.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(
        report.attempts[1].cause,
        Some(Cause::DeadlineWouldPass),
        "the second wait, 200 ms at 100 ms, ends at the deadline"
    );
    assert_eq!(started.elapsed(), 100 * MS);
}

#[tokio::test(start_paused = true)]
async fn total_wait_equal_passes_and_more_does_not() {
    for (most, sends) in [(300, 3), (299, 2), (0, 1)] {
        let upstream = answers([(503, "")]);
        let layer = exact().max_total_wait(most * MS).max_attempts(9).unwrap();
        let answer = layer.layer(upstream.clone()).oneshot(get()).await.unwrap();
        assert_eq!(upstream.calls(), sends, "at most {most} ms");
        let report = answer.extensions().get::<Ledger>().unwrap().report();
        let cause = report.attempts.last().unwrap().cause.unwrap();
        assert_eq!(cause.as_str(), "budget_denied");
    }
}

/// Row 25: a budget's "no" replaces the result.
#[tokio::test(start_paused = true)]
async fn row_25_a_denied_retry_gives_the_very_same_response() {
    let upstream = answers([(503, "5")]);
    let layer = exact().gate(CountingGate::allowing(0).as_gate());
    let answer = layer.layer(upstream.clone()).oneshot(get()).await.unwrap();
    let original = response(503, "5");
    assert_eq!(answer.status(), original.status());
    assert_eq!(answer.headers(), original.headers());
    assert_eq!(answer.body(), original.body());
    assert_eq!(upstream.calls(), 1);
}

/// Row 27: retries multiply through layers.
#[tokio::test(start_paused = true)]
async fn row_27_nested_layers_do_not_multiply() {
    for (outer, inner) in [(3, 5), (5, 3)] {
        let upstream = answers([(503, "")]);
        let layers = (
            exact().max_attempts(outer).unwrap(),
            exact().max_attempts(inner).unwrap(),
        );
        let answer = layers.layer(upstream.clone()).oneshot(get()).await;
        assert_eq!(answer.unwrap().status(), 503);
        assert_eq!(upstream.calls(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_processed_is_sent_again_only_if_safe() {
    let post = || {
        let mut request = get();
        *request.method_mut() = http::Method::POST;
        request
    };
    for (answer, sends) in [(500, 1), (503, 3), (429, 3)] {
        let upstream = answers([(answer, "")]);
        let service = exact().layer(upstream.clone());
        assert_eq!(service.oneshot(post()).await.unwrap().status(), answer);
        assert_eq!(upstream.calls(), sends, "POST answered by {answer}");
    }
}

#[test]
fn wrong_values_are_refused_by_name() {
    let error = |r: Result<JitterBackoffLayer, InvalidConfig>| r.unwrap_err().to_string();
    assert_eq!(
        error(JitterBackoffLayer::constant(Duration::ZERO)),
        "delay must be above zero"
    );
    assert_eq!(
        error(JitterBackoffLayer::exponential(SECOND, MS)),
        "cap must be not below the base"
    );
    assert_eq!(
        error(exact().max_attempts(0)),
        "max_attempts must be at least 1"
    );
    assert_eq!(error(exact().cap(MS)), "cap must be not below the base");
    assert_eq!(
        error(exact().retry_on([])),
        "retry_on must be one or both of Throttled and Transient"
    );
}

fn exponential(base: Duration) -> Exponential {
    Exponential::new(base, 20 * SECOND).unwrap()
}

/// Throttled answers in a row wait ever longer, from a base of their own; failures between them
/// neither grow with them nor start them again.
#[tokio::test(start_paused = true)]
async fn throttled_answers_in_a_row_grow_on_their_own() {
    let statuses = [429, 503, 429, 503, 429, 200];
    let upstream = answers(statuses.map(|status| (status, "")));
    let layer = JitterBackoffLayer::with_schedule(exponential(50 * MS))
        .throttled(exponential(SECOND))
        .jitter(Jitter::None)
        .max_attempts(9)
        .unwrap();
    assert_eq!(status(layer, &upstream).await, 200);
    let times = upstream.times();
    let waits: Vec<_> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(waits, [1000, 50, 2000, 100, 4000].map(|ms| ms * MS));
}

#[tokio::test(start_paused = true)]
async fn a_hinted_wait_starts_the_throttled_schedule_again() {
    let upstream = answers([(429, ""), (429, ""), (429, "3"), (429, ""), (200, "")]);
    let layer = JitterBackoffLayer::with_schedule(exponential(50 * MS))
        .throttled(exponential(SECOND))
        .jitter(Jitter::None)
        .max_attempts(9)
        .unwrap();
    assert_eq!(status(layer, &upstream).await, 200);
    let times = upstream.times();
    let waits: Vec<_> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(waits, [1, 2, 3, 1].map(|s| s * SECOND));
}

#[tokio::test(start_paused = true)]
async fn linear_waits_so_much_more_each_time() {
    let upstream = answers([(503, "")]);
    let layer = JitterBackoffLayer::linear(SECOND, 3 * SECOND).unwrap();
    let layer = layer.jitter(Jitter::None).max_attempts(6).unwrap();
    assert_eq!(status(layer, &upstream).await, 503);
    assert_eq!(upstream.times(), [0, 1, 3, 6, 9, 12].map(|s| s * SECOND));
}

/// The state of decorrelated jitter is the call's: another call begins at the base.
#[tokio::test(start_paused = true)]
async fn decorrelated_jitter_goes_by_the_waits_of_its_own_call() {
    let layer = JitterBackoffLayer::with_schedule(exponential(SECOND))
        .jitter(Jitter::Decorrelated)
        .chance(Chance::fixed(u64::MAX))
        .max_attempts(5)
        .unwrap();
    for _ in 0..2 {
        let upstream = answers([(503, "")]);
        assert_eq!(status(layer.clone(), &upstream).await, 503);
        assert_eq!(upstream.times(), [0, 3, 12, 32, 52].map(|s| s * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_sees_the_answer_and_the_history() {
    let upstream = answers([(503, ""), (500, ""), (503, ""), (200, "")]);
    let layer =
        JitterBackoffLayer::from_fn(|past: &History, outcome: &Outcome<'_, Response<String>>| {
            let status = outcome.response().map_or(0, |r| r.status().as_u16());
            past.sends * Duration::from_millis(u64::from(status))
        });
    let layer = layer.jitter(Jitter::None).max_attempts(9).unwrap();
    let service = layer.layer(upstream.clone());
    assert_eq!(service.oneshot(get()).await.unwrap().status(), 200);
    let times = upstream.times();
    let waits: Vec<_> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(waits, [503, 1000, 1509].map(|ms| ms * MS));
}

#[tokio::test(start_paused = true)]
async fn a_cap_holds_for_both_schedules() {
    let layer = JitterBackoffLayer::with_schedule(exponential(50 * MS))
        .throttled(exponential(SECOND))
        .cap(2 * SECOND)
        .unwrap();
    let layer = layer.jitter(Jitter::None).max_attempts(5).unwrap();
    let upstream = answers([(429, "")]);
    assert_eq!(status(layer.clone(), &upstream).await, 429);
    assert_eq!(upstream.times(), [0, 1, 3, 5, 7].map(|s| s * SECOND));
    assert_eq!(layer.cap(SECOND / 2).unwrap_err().what(), "cap");
}
