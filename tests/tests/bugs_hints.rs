//! Public reports of hints gone wrong: the right behaviour, by the id of the row in `bugs.jsonl`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod rows;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use tokio::{task::JoinSet, time::Instant};
use tower::{Layer, ServiceExt};
use tower_jitter_backoff::JitterBackoffLayer;
use tower_retry_after::RetryAfterLayer;
use tower_spillway_core::{
    Chance,
    call::CallLayer,
    hint::{self, Hint, Jitter},
    testing::script::{Script, Step},
};

const SECOND: Duration = Duration::from_secs(1);

type Upstream = Script<Request<Full<Bytes>>, Response<Full<Bytes>>>;
type Fields<'a> = &'a [(&'static str, &'static str)];

fn headers(fields: Fields<'_>) -> HeaderMap {
    let fields = fields
        .iter()
        .map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap()));
    fields.collect()
}

fn answer(status: u16, fields: Fields<'_>) -> Step<Response<Full<Bytes>>> {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    *response.headers_mut() = headers(fields);
    Step::answer(response)
}

/// Answers as written, then well.
fn upstream<'a>(answers: impl IntoIterator<Item = (u16, Fields<'a>)>) -> Upstream {
    let steps = answers
        .into_iter()
        .map(|(status, fields)| answer(status, fields));
    Script::new(steps.chain([answer(200, &[])]))
}

fn asked(fields: Fields<'_>) -> Option<Duration> {
    let now = rows::date("2026-01-01T00:00:00Z").unwrap();
    let signals = hint::read(StatusCode::TOO_MANY_REQUESTS, &headers(fields), || now);
    signals.hint().and_then(Hint::after)
}

fn exact() -> RetryAfterLayer {
    RetryAfterLayer::new().jitter(Jitter::None)
}

/// The status that a caller gets, and when.
async fn call(layer: &RetryAfterLayer, upstream: &Upstream) -> (u16, Duration) {
    let start = Instant::now();
    let response = layer
        .layer(upstream.clone())
        .oneshot(rows::get())
        .await
        .unwrap();
    (response.status().as_u16(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn ra_over_cap_shortened() {
    let asks: Fields<'_> = &[("retry-after", "65")];
    let upstream = upstream([(429, asks)]);
    assert_eq!(call(&exact(), &upstream).await, (429, Duration::ZERO));
    assert_eq!(upstream.calls(), 1, "no shorter wait in its place");
}

#[tokio::test(start_paused = true)]
async fn ra_uncapped_sleep() {
    let rows: [(Fields<'_>, u16, Duration); 4] = [
        (&[("retry-after", "1800")], 429, Duration::ZERO),
        (&[("retry-after", "60")], 200, 60 * SECOND),
        (&[("retry-after-ms", "60000")], 200, 60 * SECOND),
        (&[("retry-after", "0")], 200, Duration::from_millis(1)),
    ];
    for (asks, status, took) in rows {
        assert_eq!(
            call(&exact(), &upstream([(429, asks)])).await,
            (status, took),
            "{asks:?}"
        );
    }
}

#[test]
fn ra_negative_parsed_as_year() {
    assert_eq!(asked(&[("retry-after", "-5")]), None);
    assert_eq!(asked(&[("retry-after", "2030")]), Some(2030 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn ra_beyond_deadline() {
    let asks: Fields<'_> = &[("retry-after", "30")];
    let upstream = upstream([(503, asks)]);
    let layers = (CallLayer::new().deadline(10 * SECOND), exact());
    let start = Instant::now();
    let response = layers
        .layer(upstream.clone())
        .oneshot(rows::get())
        .await
        .unwrap();
    assert_eq!(response.status(), 503, "the upstream's own answer");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn ra_no_jitter_herd() {
    let layer = RetryAfterLayer::new().chance(Chance::seeded(1));
    let upstream: Upstream = Script::from_fn(|call, _| match call {
        ..=30 => answer(429, &[("retry-after", "2")]),
        _ => answer(200, &[]),
    });
    let mut callers = JoinSet::new();
    for _ in 0..30 {
        callers.spawn(layer.layer(upstream.clone()).oneshot(rows::get()));
    }
    for response in callers.join_all().await {
        assert_eq!(response.unwrap().status(), 200);
    }
    let mut retries = upstream.times().split_off(30);
    retries.sort();
    assert_eq!(retries.len(), 30);
    assert!(retries[0] >= 2 * SECOND, "none early: {retries:?}");
    for start in &retries {
        let window = *start..*start + Duration::from_millis(50);
        let together = retries.iter().filter(|t| window.contains(t)).count();
        assert!(together <= 6, "{together} within 50 ms: {retries:?}");
    }
}

#[test]
fn src_helicone_http_date() {
    let now = rows::date("2026-01-01T00:00:00Z").unwrap();
    let then = rows::date("2100-12-31T23:59:59Z").unwrap();
    for date in ["Fri, 31 Dec 2100 23:59:59 GMT", "Fri Dec 31 23:59:59 2100"] {
        assert_eq!(
            asked(&[("retry-after", date)]),
            then.duration_since(now).ok()
        );
    }
    let soon = asked(&[("retry-after", "Thursday, 01-Jan-26 00:00:09 GMT")]);
    assert_eq!(soon, Some(9 * SECOND));
}

#[test]
fn src_agentgateway_min_reset() {
    let fields = [
        ("x-ratelimit-remaining-requests", "499"),
        ("x-ratelimit-reset-requests", "120ms"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    assert_eq!(asked(&fields), Some(360 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn src_litellm_stale_hint() {
    let (one, five): (Fields<'_>, Fields<'_>) = (&[("retry-after", "1")], &[("retry-after", "5")]);
    let upstream = upstream([(429, one), (429, five)]);
    assert_eq!(call(&exact(), &upstream).await.0, 200);
    assert_eq!(upstream.times(), [0, 1, 6].map(|s| s * SECOND));
}

#[tokio::test(start_paused = true)]
async fn src_async_openai_uncapped() {
    for date_or_seconds in ["3600", "Sun, 06 Nov 2094 08:49:37 GMT"] {
        let asks = [("retry-after", date_or_seconds)];
        let upstream = upstream([(429, asks.as_slice())]);
        let layers = (
            CallLayer::new().deadline(20 * SECOND),
            RetryAfterLayer::new(),
            JitterBackoffLayer::new(),
        );
        let start = Instant::now();
        let response = layers
            .layer(upstream.clone())
            .oneshot(rows::get())
            .await
            .unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(
            upstream.calls(),
            1,
            "no backoff in the place of a dated hint"
        );
    }
}
