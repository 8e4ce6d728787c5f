//! What the stack does with what vendors say.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod vendor_fleet;

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::time::Instant;
use tower_circuit_breaker::{BreakerConfig, State};
use tower_spillway_core::{
    Cause, Class,
    testing::script::{Script, Step},
};
use tower_spillway_llm::Vendor;
use vendor_fleet::{SECOND, Upstream, always, answer, chat, fleet, ok, send, table};

const ANTHROPIC: Vendor = Vendor::AnthropicCompat;
const GEMINI: Vendor = Vendor::GeminiCompat;

const TOO_LONG: &str = r#"{"error":{"code":"invalid_request_error","type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;

fn retry_info(delay: &str) -> String {
    format!(
        r#"[{{"error":{{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
        {{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}]}}}}]"#
    )
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_a_body_is_waited_out_to_the_millisecond() {
    let gemini: Upstream = Script::new([
        Step::answer(answer(429, &retry_info("45.837906927s"))),
        Step::answer(ok()),
    ]);
    let fleet = fleet(&BreakerConfig::new(), &[("gemini", table(GEMINI), &gemini)]);
    let called = send(&fleet.client, chat()).await;
    assert_eq!(called.status(), 200);
    assert_eq!(
        gemini.times(),
        [Duration::ZERO, Duration::from_millis(45_838)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_a_body_goes_elsewhere_while_there_is_an_elsewhere() {
    let gemini = always(answer(429, &retry_info("45s")));
    let opus = always(ok());
    let fleet = fleet(
        &BreakerConfig::new(),
        &[
            ("gemini", table(GEMINI), &gemini),
            ("opus", table(ANTHROPIC), &opus),
        ],
    );
    let start = Instant::now();
    let called = send(&fleet.client, chat()).await;
    assert_eq!(
        (called.served_by(), start.elapsed()),
        ("opus", Duration::ZERO)
    );
    assert_eq!(
        called.report.attempts[0].cause,
        Some(Cause::OtherTargetFirst)
    );
    assert_eq!(fleet.breakers[0].state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_spend_limit_reaches_the_next_target_in_one_hop() {
    let limit = r#"{"error":{"code":"invalid_request_error","type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-10-01 at 00:00 UTC."}}"#;
    let (opus, gemini) = (always(answer(400, limit)), always(ok()));
    let fleet = fleet(
        &BreakerConfig::new(),
        &[
            ("opus", table(ANTHROPIC), &opus),
            ("gemini", table(GEMINI), &gemini),
        ],
    );
    let called = send(&fleet.client, chat()).await;
    assert_eq!(called.served_by(), "gemini");
    assert_eq!((opus.calls(), gemini.calls()), (1, 1));
    let reason = called.report.fallback_reason.unwrap().to_string();
    assert_eq!(reason, "opus: target_down");
}

#[tokio::test(start_paused = true)]
async fn too_long_with_no_larger_context_is_the_vendors_own_400() {
    let (opus, gemini) = (always(answer(400, TOO_LONG)), always(ok()));
    let fleet = fleet(
        &BreakerConfig::new().failures(1),
        &[
            ("opus", table(ANTHROPIC), &opus),
            ("gemini", table(GEMINI), &gemini),
        ],
    );
    let called = send(&fleet.client, chat()).await;
    assert_eq!((opus.calls(), gemini.calls()), (1, 0));
    assert_eq!(fleet.breakers[0].state(), State::Closed);
    let response = called.out.unwrap();
    assert_eq!(response.status(), 400);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, TOO_LONG);
}

#[tokio::test(start_paused = true)]
async fn too_long_goes_to_a_larger_context_in_one_hop() {
    let (opus, gemini) = (always(answer(400, TOO_LONG)), always(ok()));
    let opus_table = table(ANTHROPIC).larger_context_elsewhere(true);
    let fleet = fleet(
        &BreakerConfig::new().failures(1),
        &[
            ("opus", opus_table, &opus),
            ("gemini", table(GEMINI), &gemini),
        ],
    );
    for calls in 1..=3 {
        let called = send(&fleet.client, chat()).await;
        assert_eq!(called.served_by(), "gemini");
        assert_eq!(called.report.attempts[0].class, Class::NotHere);
        assert_eq!((opus.calls(), gemini.calls()), (calls, calls));
        assert_eq!(fleet.breakers[0].state(), State::Closed, "untouched");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_key_leaves_the_other_serving() {
    let bad = r#"{"error":{"code":"authentication_error","message":"invalid x-api-key"}}"#;
    let (opus, gemini) = (always(answer(401, bad)), always(ok()));
    let fleet = fleet(
        &BreakerConfig::new(),
        &[
            ("opus", table(ANTHROPIC), &opus),
            ("gemini", table(GEMINI), &gemini),
        ],
    );
    for _ in 0..10 {
        assert_eq!(send(&fleet.client, chat()).await.served_by(), "gemini");
    }
    assert_eq!((opus.calls(), gemini.calls()), (1, 10));
    assert_eq!(fleet.breakers[0].state(), State::Open, "held");
    assert_eq!(fleet.breakers[1].state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn overload_is_sent_again_once_then_goes_to_the_next_target() {
    let overloaded = r#"{"error":{"code":"overloaded_error","type":"invalid_request_error","message":"Overloaded"}}"#;
    let unavailable =
        r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#;
    for (vendor, status, body) in [(ANTHROPIC, 529, overloaded), (GEMINI, 503, unavailable)] {
        let (first, second) = (always(answer(status, body)), always(ok()));
        let fleet = fleet(
            &BreakerConfig::new(),
            &[
                ("first", table(vendor), &first),
                ("second", table(GEMINI), &second),
            ],
        );
        let start = Instant::now();
        let called = send(&fleet.client, chat()).await;
        assert_eq!(
            (called.served_by(), first.calls()),
            ("second", 2),
            "{status}"
        );
        assert_eq!(start.elapsed(), SECOND, "one wait of the schedule's");
    }
}
