//! What a caller and both vendors see of the pipeline, over real HTTP.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use opus_to_gemini::{
    chat::{Asked, Chat, ChatError, ask},
    config::Config,
    fake::{Behaviour, Did, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, FakeVendor, Fakes, KeyLabel},
    pipeline::{Pipeline, Upstream},
};
use tower::ServiceExt;
use tower_circuit_breaker::State;
use tower_spillway_core::{Cause, Chance, Class, Ledger};

const PLENTY: Duration = Duration::from_secs(30);

/// Both vendors behind a pipeline whose waits are a hundredth of the usual.
async fn stack() -> (Fakes, Pipeline) {
    stack_with(Config::interactive().at_speed(100), PLENTY).await
}

async fn stack_with(mut config: Config, opus_within: Duration) -> (Fakes, Pipeline) {
    let chance = Chance::seeded(3);
    let fakes = Fakes::start(&chance).await.unwrap();
    let opus = Upstream::opus(FAKE_ANTHROPIC_KEY)
        .url(fakes.anthropic.url())
        .within(opus_within, opus_within);
    let gemini = Upstream::gemini(FAKE_GEMINI_KEY)
        .url(fakes.gemini.url())
        .within(PLENTY, PLENTY);
    config.call.plain_deadline = Some(PLENTY);
    config.call.streaming_deadline = Some(PLENTY);
    let pipeline = Pipeline::builder()
        .target(opus)
        .target(gemini)
        .config(config)
        .chance(chance)
        .build();
    (fakes, pipeline.unwrap())
}

async fn hello(pipeline: &Pipeline) -> Asked {
    ask(pipeline, &Chat::new("hello").id("call")).await
}

fn served_by(asked: &Asked) -> &str {
    asked.report.target.as_ref().unwrap().as_str()
}

fn ids(vendor: &FakeVendor) -> Vec<String> {
    vendor.log().into_iter().filter_map(|e| e.id).collect()
}

fn did(vendor: &FakeVendor) -> Vec<Did> {
    vendor.log().into_iter().map(|e| e.did).collect()
}

#[tokio::test]
async fn a_healthy_primary_serves_alone() {
    let (fakes, pipeline) = stack().await;
    let asked = hello(&pipeline).await;
    assert!(asked.answer.as_ref().unwrap().text.contains("hello"));
    assert_eq!(served_by(&asked), "opus");
    assert_eq!(asked.report.model.as_deref(), Some("claude-opus-5"));
    assert_eq!(asked.report.fallback_reason, None);
    assert_eq!(ids(&fakes.anthropic), ["call/opus/1"]);
    assert!(fakes.gemini.log().is_empty());
    fakes.stop().await;
}

#[tokio::test]
async fn a_short_failure_is_retried_and_a_long_one_goes_on() {
    let (fakes, pipeline) = stack().await;
    fakes.anthropic.next(1, Behaviour::Fail { status: 500 });
    let asked = hello(&pipeline).await;
    assert_eq!((served_by(&asked), asked.report.sends()), ("opus", 2));

    fakes.anthropic.set(Behaviour::Fail { status: 529 });
    let asked = hello(&pipeline).await;
    assert_eq!((served_by(&asked), asked.report.sends()), ("gemini", 3));
    let reason = asked.report.fallback_reason.unwrap();
    assert_eq!(reason.cause, Some(Cause::OtherTargetFirst));
    assert_eq!(
        ids(&fakes.anthropic),
        ["call/opus/1", "call/opus/2", "call/opus/1", "call/opus/2"]
    );
    assert_eq!(ids(&fakes.gemini), ["call/gemini/1"]);
}

#[tokio::test]
async fn a_long_hint_goes_on_at_once() {
    let (fakes, pipeline) = stack().await;
    let retry_after = Duration::from_secs(30);
    fakes.anthropic.set(Behaviour::Throttle { retry_after });
    let asked = hello(&pipeline).await;
    assert_eq!((served_by(&asked), asked.report.sends()), ("gemini", 2));
    assert_eq!(asked.report.waited, Duration::ZERO);
    assert_eq!(
        asked.report.fallback_reason.unwrap().class,
        Class::Throttled
    );
}

#[tokio::test]
async fn a_hang_costs_one_limit_and_is_not_repeated() {
    let config = Config::interactive().at_speed(100);
    let (fakes, pipeline) = stack_with(config, Duration::from_millis(100)).await;
    fakes.anthropic.set(Behaviour::Hang);
    let asked = hello(&pipeline).await;
    assert!(asked.answer.is_ok());
    assert_eq!((served_by(&asked), asked.report.sends()), ("gemini", 2));
    assert_eq!(fakes.anthropic.log().len(), 1);
}

#[tokio::test]
async fn a_reset_and_an_answer_cut_short_are_failures_like_others() {
    let (fakes, pipeline) = stack().await;
    fakes.anthropic.next(1, Behaviour::Cut);
    let asked = hello(&pipeline).await;
    assert!(asked.answer.is_ok());
    assert_eq!((served_by(&asked), asked.report.sends()), ("opus", 2));

    fakes.anthropic.next(1, Behaviour::Reset);
    let asked = hello(&pipeline).await;
    assert_eq!((served_by(&asked), asked.report.sends()), ("opus", 2));
    let whole = Did::Answered(200);
    assert_eq!(did(&fakes.anthropic), [Did::Cut, whole, Did::Reset, whole]);
}

#[tokio::test]
async fn an_open_breaker_costs_nothing_and_closes_again() {
    let mut config = Config::interactive().at_speed(100);
    config.breaker.open = Duration::from_secs(3600);
    config.breaker.max_open = config.breaker.open;
    let (fakes, pipeline) = stack_with(config, PLENTY).await;
    fakes.anthropic.set(Behaviour::Fail { status: 503 });
    hello(&pipeline).await;
    hello(&pipeline).await;
    assert_eq!(pipeline.breakers()[0].state(), State::Open);
    assert_eq!(fakes.anthropic.log().len(), 3);

    let asked = hello(&pipeline).await;
    assert_eq!((served_by(&asked), asked.report.sends()), ("gemini", 1));
    assert_eq!(fakes.anthropic.log().len(), 3, "not asked while open");
    assert_eq!(asked.report.fallback_reason.unwrap().class, Class::Refused);

    fakes.anthropic.set(Behaviour::Answer);
    pipeline.breakers()[0].force_close();
    assert_eq!(served_by(&hello(&pipeline).await), "opus");
}

#[tokio::test]
async fn each_vendor_sees_only_its_own_key_and_no_header_of_the_callers() {
    let (fakes, pipeline) = stack().await;
    fakes.anthropic.next(1, Behaviour::Reset);
    fakes.anthropic.next(1, Behaviour::Fail { status: 500 });
    let mut request = Request::new(Full::from(Bytes::from_static(
        br#"{"model": "any", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.1}"#,
    )));
    let headers = request.headers_mut();
    headers.insert("authorization", "Bearer the-callers-own".parse().unwrap());
    headers.insert("content-length", "1".parse().unwrap());
    let response = pipeline.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let report = response.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(report.sends(), 3);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(
        std::str::from_utf8(&body)
            .unwrap()
            .contains("gemini-2.5-pro")
    );

    for (vendor, name, model) in [
        (&fakes.anthropic, "anthropic", "claude-opus-5"),
        (&fakes.gemini, "gemini", "gemini-2.5-pro"),
    ] {
        assert!(!vendor.log().is_empty());
        for entry in vendor.log() {
            assert_eq!(entry.key, KeyLabel::Own(name.into()));
            assert_eq!(entry.model.as_deref(), Some(model));
        }
    }
}

#[tokio::test]
async fn a_stream_passes_as_it_comes() {
    let (fakes, pipeline) = stack().await;
    let request = Request::new(Full::from(Bytes::from_static(
        br#"{"messages": [{"role": "user", "content": "hi"}], "stream": true}"#,
    )));
    let response = pipeline.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.ends_with(b"data: [DONE]\n\n"));
    fakes.stop().await;
}

#[tokio::test]
async fn when_both_fail_the_vendors_message_is_given() {
    let mut config = Config::interactive().at_speed(100);
    config.breaker.failures = 100;
    let (fakes, pipeline) = stack_with(config, PLENTY).await;
    fakes.anthropic.set(Behaviour::Fail { status: 529 });
    fakes.gemini.set(Behaviour::Fail { status: 503 });
    let asked = hello(&pipeline).await;
    // Two at the first, while the second is usable; four at the last.
    assert_eq!(fakes.anthropic.log().len(), 2);
    assert_eq!(fakes.gemini.log().len(), 4);
    let error = asked.answer.unwrap_err();
    let ChatError::Vendor {
        target,
        status,
        message,
        ..
    } = error
    else {
        unreachable!("{error:?}");
    };
    assert_eq!((target.as_str(), status), ("gemini", 503));
    assert!(message.contains("overloaded"), "{message}");
}

#[tokio::test]
async fn a_spent_budget_sends_on_without_retrying() {
    let mut config = Config::interactive().at_speed(100);
    (config.budget.percent, config.budget.reserve) = (0, 1);
    config.budget.ttl = Duration::from_secs(60);
    config.breaker.failures = 100;
    let (fakes, pipeline) = stack_with(config, PLENTY).await;
    fakes.anthropic.set(Behaviour::Fail { status: 500 });
    assert_eq!(hello(&pipeline).await.report.sends(), 3);
    assert_eq!(pipeline.budget().unwrap().balance(), 0);
    // A hop is not charged.
    let asked = hello(&pipeline).await;
    assert_eq!((served_by(&asked), asked.report.sends()), ("gemini", 2));
}

#[tokio::test]
async fn a_body_that_is_no_chat_is_sent_to_nobody() {
    let (fakes, pipeline) = stack().await;
    let request = Request::new(Full::from(Bytes::from_static(b"hello")));
    let error = pipeline.clone().oneshot(request).await.unwrap_err();
    let said = format!("{:#}", anyhow::Error::from_boxed(error));
    assert!(said.contains("must be a JSON object"), "{said}");
    assert!(fakes.anthropic.log().is_empty() && fakes.gemini.log().is_empty());
}

fn keys(vendor: &FakeVendor) -> Vec<String> {
    let keys = vendor.log().into_iter().map(|e| e.idempotency_key.unwrap());
    keys.collect()
}

#[tokio::test]
async fn one_key_per_call_on_every_attempt_and_the_callers_own_is_kept() {
    let (fakes, pipeline) = stack().await;
    fakes.anthropic.set(Behaviour::Fail { status: 500 });
    hello(&pipeline).await;
    let (opus, gemini) = (keys(&fakes.anthropic), keys(&fakes.gemini));
    assert_eq!((opus.len(), gemini.len()), (2, 1));
    assert_eq!((&opus[0], &opus[0]), (&opus[1], &gemini[0]));

    fakes.anthropic.set(Behaviour::Answer);
    hello(&pipeline).await;
    assert_ne!(
        keys(&fakes.anthropic)[2],
        opus[0],
        "another call, another key"
    );
    ask(&pipeline, &Chat::new("hello").idempotency_key("mine")).await;
    assert_eq!(keys(&fakes.anthropic)[3], "mine");
}

#[tokio::test]
async fn what_only_opus_cannot_serve_goes_on_to_gemini() {
    let chance = Chance::seeded(3);
    let fakes = Fakes::start(&chance).await.unwrap();
    let pipeline = Pipeline::builder()
        .target(Upstream::opus("a-wrong-key").url(fakes.anthropic.url()))
        .target(Upstream::gemini(FAKE_GEMINI_KEY).url(fakes.gemini.url()))
        .build()
        .unwrap();
    let asked = hello(&pipeline).await;
    assert_eq!((served_by(&asked), asked.report.sends()), ("gemini", 2));
    assert_eq!(
        asked.report.fallback_reason.unwrap().class,
        Class::TargetDown
    );
    // Held until somebody mends it, or the hold is over.
    assert_eq!(pipeline.breakers()[0].state(), State::Open);
    assert_eq!(hello(&pipeline).await.report.sends(), 1);
}

#[tokio::test]
async fn a_hint_in_a_body_is_waited_out_where_there_is_nobody_else() {
    let fakes = Fakes::start(&Chance::seeded(3)).await.unwrap();
    let pipeline = Pipeline::builder()
        .target(Upstream::gemini(FAKE_GEMINI_KEY).url(fakes.gemini.url()))
        .build()
        .unwrap();
    let retry_after = Duration::from_millis(300);
    fakes.gemini.next(1, Behaviour::Throttle { retry_after });
    let asked = hello(&pipeline).await;
    assert_eq!((served_by(&asked), asked.report.sends()), ("gemini", 2));
    assert!(
        asked.report.waited >= retry_after,
        "{:?}",
        asked.report.waited
    );
}

#[tokio::test]
async fn a_full_target_is_gone_on_from() {
    let fakes = Fakes::start(&Chance::seeded(3)).await.unwrap();
    let mut config = Config::interactive();
    config.failover.ready_within = Duration::from_millis(1);
    let pipeline = Pipeline::builder()
        .config(config)
        .target(
            Upstream::opus(FAKE_ANTHROPIC_KEY)
                .url(fakes.anthropic.url())
                .in_flight(1),
        )
        .target(Upstream::gemini(FAKE_GEMINI_KEY).url(fakes.gemini.url()))
        .build()
        .unwrap();
    fakes.anthropic.set(Behaviour::Hang);
    let first = tokio::spawn({
        let pipeline = pipeline.clone();
        async move { hello(&pipeline).await }
    });
    while fakes.anthropic.log().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = hello(&pipeline).await;
    assert_eq!((served_by(&second), second.report.sends()), ("gemini", 1));
    assert_eq!(second.report.fallback_reason.unwrap().class, Class::Refused);
    assert_eq!(fakes.anthropic.log().len(), 1);
    first.abort();
}

#[tokio::test]
async fn probes_of_its_own_bring_a_target_back_and_no_user_waits_for_one() {
    let mut config = Config::interactive().at_speed(100);
    config.breaker.ramp = Duration::ZERO;
    let (fakes, pipeline) = stack_with(config, PLENTY).await;
    let probing: Vec<_> = pipeline.probes().map(tokio::spawn).collect();
    assert_eq!(probing.len(), 2);
    pipeline.breakers()[0].force_open_for(Duration::from_millis(50));
    let asked = hello(&pipeline).await;
    assert_eq!(served_by(&asked), "gemini");
    while pipeline.breakers()[0].state() != State::Closed {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let probes = fakes.anthropic.log();
    assert!(!probes.is_empty() && probes.iter().all(|entry| entry.id.is_none()));
    assert_eq!(served_by(&hello(&pipeline).await), "opus");
    // They end with the pipeline.
    drop(pipeline);
    for probing in probing {
        probing.await.unwrap();
    }
}

#[tokio::test]
async fn a_target_has_no_more_connections_than_allowed() {
    let mut config = Config::interactive();
    config.pool.connections = 2;
    let (fakes, pipeline) = stack_with(config, PLENTY).await;
    let latency = Duration::from_millis(20);
    fakes.anthropic.set_latency(latency..=latency);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let pipeline = pipeline.clone();
        calls.spawn(async move { hello(&pipeline).await });
    }
    let mut most = 0;
    while let Some(asked) = calls.join_next().await {
        assert_eq!(served_by(&asked.unwrap()), "opus");
        most = most.max(fakes.anthropic.connections());
    }
    assert!((1..=2).contains(&most), "{most}");
}
