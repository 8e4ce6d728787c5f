//! Public bugs about waits that only a body tells, by their ids in `vectors/bugs.jsonl`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod vendor_fleet;

use std::time::Duration;

use tokio::time::Instant;
use tower::ServiceExt;
use tower_circuit_breaker::BreakerConfig;
use tower_layer::Layer;
use tower_spillway_core::{
    Class, Reading,
    hint::Hint,
    testing::script::{Script, Step},
};
use tower_spillway_llm::Vendor;
use vendor_fleet::{Upstream, always, answer, chat, fleet, ok, send, table};

fn throttled(detail: &str) -> String {
    format!(r#"{{"error":{{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{detail}]}}}}"#)
}

/// The gap between the two sends to a Gemini that is throttled once.
async fn gap(vendor: Vendor, body: &str) -> Duration {
    let gemini: Upstream = Script::new([Step::answer(answer(429, body)), Step::answer(ok())]);
    let fleet = fleet(&BreakerConfig::new(), &[("gemini", table(vendor), &gemini)]);
    assert_eq!(send(&fleet.client, chat()).await.status(), 200);
    gemini.times()[1]
}

#[tokio::test(start_paused = true)]
async fn gemini_retryinfo_fraction() {
    let body =
        throttled(r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}"#);
    assert_eq!(
        gap(Vendor::Gemini, &body).await,
        Duration::from_millis(34_400)
    );
}

#[tokio::test(start_paused = true)]
async fn gemini_errorinfo_quota_reset() {
    let body = throttled(
        r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"quotaResetDelay":"373.801628ms"}}"#,
    );
    let upstream = always(answer(429, &body));
    let response = table(Vendor::Gemini).layer(upstream).oneshot(chat()).await;
    let response = response.unwrap();
    let reading = response.extensions().get::<Reading>().unwrap();
    assert_eq!(reading.class(), Class::Throttled);
    let asked = reading.hint().and_then(Hint::after);
    assert_eq!(
        asked,
        Some(Duration::from_millis(374)),
        "never shorter than asked"
    );
}

#[tokio::test(start_paused = true)]
async fn gemini_openai_compat_body_hint() {
    // Above what is waited while there is an elsewhere: no second send, straight to the fallback.
    let body =
        throttled(r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"39s"}"#);
    let (gemini, opus) = (always(answer(429, &body)), always(ok()));
    let fleet = fleet(
        &BreakerConfig::new(),
        &[
            ("gemini", table(Vendor::GeminiCompat), &gemini),
            ("opus", table(Vendor::AnthropicCompat), &opus),
        ],
    );
    let start = Instant::now();
    let called = send(&fleet.client, chat()).await;
    assert_eq!(called.served_by(), "opus");
    assert_eq!(gemini.calls(), 1);
    assert_eq!(start.elapsed(), Duration::ZERO);
}
