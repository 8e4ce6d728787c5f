//! Reports of vendors' answers being misread, each a test named after its row in `bugs.jsonl`:
//! kinds `classification`, `cooldown`, `retry` and `translation`.
//!
//! Elsewhere: `soft-error-200`, `bedrock-400-internal-server` and
//! `gateway-timeout-code-not-transient` are about streams; `recool-keeps-short-deadline` is about a
//! hold that callers share.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod vendor_fleet;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::{ServiceExt, service_fn, util::BoxCloneSyncService};
use tower_circuit_breaker::{Breaker, BreakerConfig, State};
use tower_failover::{FailoverService, Target};
use tower_jitter_backoff::JitterBackoffLayer;
use tower_layer::Layer;
use tower_spillway_core::{
    BoxError, Class, Http, Reading, Refused,
    classify::ClassifyLayer,
    testing::script::{Script, Step},
};
use tower_spillway_llm::{TargetProfile, Vendor, VendorVerdictLayer};
use vendor_fleet::{
    Body, Req, SECOND, Upstream, always, answer, chat, fleet, hinted, ok, send, stack, table,
};

#[tokio::test(start_paused = true)]
async fn anthropic_credit_400() {
    let empty = r#"{"type":"error","error":{"type":"invalid_request_error","message":"credit balance is too low"}}"#;
    let (one, two) = (always(answer(400, empty)), always(ok()));
    let keys = [
        ("key1", table(Vendor::Anthropic), &one),
        ("key2", table(Vendor::Anthropic), &two),
    ];
    let fleet = fleet(&BreakerConfig::new(), &keys);

    let called = send(&fleet.client, chat()).await;
    assert_eq!(
        (called.served_by(), one.calls(), two.calls()),
        ("key2", 1, 1)
    );
    assert_eq!(fleet.breakers[0].state(), State::Open);
    let called = send(&fleet.client, chat()).await;
    assert_eq!((called.served_by(), one.calls()), ("key2", 1));

    let wrong = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one message is required"}}"#;
    let three = always(answer(400, wrong));
    let keys = [
        ("key3", table(Vendor::Anthropic), &three),
        ("key2", table(Vendor::Anthropic), &two),
    ];
    let fleet = vendor_fleet::fleet(&BreakerConfig::new().failures(1), &keys);
    let called = send(&fleet.client, chat()).await;
    assert_eq!((called.status(), called.served_by()), (400, "key3"));
    assert_eq!(fleet.breakers[0].state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn empty_choices_200() {
    let (a, b) = (always(answer(200, r#"{"choices":[]}"#)), always(ok()));
    let fleet = fleet(
        &BreakerConfig::new(),
        &[
            ("A", table(Vendor::Gateway), &a),
            ("B", table(Vendor::Gateway), &b),
        ],
    );
    let called = send(&fleet.client, chat()).await;
    assert_eq!((called.status(), called.served_by()), (200, "B"));
}

#[tokio::test(start_paused = true)]
async fn connection_lost_as_200() {
    let reset = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let upstream: Upstream = Script::always(Step::fail(reset));
    let (client, _) = stack(&table(Vendor::OpenAi), &upstream, BreakerConfig::new());
    let client = FailoverService::new([Target::new("A", client).retry_ambiguous(true)]).unwrap();
    let called = send(&client, chat()).await;
    // No status at all, so that whoever answers for it cannot take it for an answer.
    let error = called.out.unwrap_err();
    assert!(error.downcast_ref::<std::io::Error>().is_some());
    assert_eq!(called.report.attempts.len(), upstream.calls());
    for attempt in &called.report.attempts {
        assert_eq!((attempt.class, attempt.status), (Class::Transient, None));
    }
    assert!(upstream.calls() > 1, "it was retried");
}

#[tokio::test(start_paused = true)]
async fn row_404_model_gone() {
    let (a, b) = (
        always(answer(404, r#"{"error":"model not found"}"#)),
        always(ok()),
    );
    let config = BreakerConfig::new();
    let fleet = fleet(
        &config,
        &[
            ("A", table(Vendor::OpenAi), &a),
            ("B", table(Vendor::OpenAi), &b),
        ],
    );
    for _ in 0..20 {
        assert_eq!(send(&fleet.client, chat()).await.served_by(), "B");
    }
    assert_eq!(a.calls(), 1);
    tokio::time::advance(59 * SECOND).await;
    send(&fleet.client, chat()).await;
    assert_eq!(a.calls(), 1, "out for a minute");
    tokio::time::advance(2 * SECOND).await;
    send(&fleet.client, chat()).await;
    assert_eq!(a.calls(), 2, "then asked once");
}

#[tokio::test(start_paused = true)]
async fn only_first_attempt_cools() {
    let (a, b, c) = (
        always(answer(500, "")),
        always(answer(500, "")),
        always(ok()),
    );
    let fleet = fleet(
        // Two sends on each, since another target is usable.
        &BreakerConfig::new().failures(2),
        &[
            ("A", table(Vendor::OpenAi), &a),
            ("B", table(Vendor::OpenAi), &b),
            ("C", table(Vendor::OpenAi), &c),
        ],
    );
    assert_eq!(send(&fleet.client, chat()).await.served_by(), "C");
    let open = |n: usize| fleet.breakers[n].state() == State::Open;
    assert!(open(0) && open(1) && !open(2), "each attempt was recorded");
    let sent = (a.calls(), b.calls());
    assert_eq!(send(&fleet.client, chat()).await.served_by(), "C");
    assert_eq!((a.calls(), b.calls()), sent, "neither was asked again");
}

#[tokio::test(start_paused = true)]
async fn health_updated_after_retry_loop() {
    let slot = std::sync::Arc::new(std::sync::OnceLock::<Breaker>::new());
    let first = std::sync::Arc::clone(&slot);
    let a = always(hinted(429, "120"));
    // When B is asked, what A answered is known.
    let b = always(ok()).inspect(move |_| assert_eq!(first.get().unwrap().state(), State::Open));
    let fleet = fleet(
        &BreakerConfig::new(),
        &[
            ("A", table(Vendor::OpenAi), &a),
            ("B", table(Vendor::OpenAi), &b),
        ],
    );
    slot.set(fleet.breakers[0].clone()).unwrap();
    let called = send(&fleet.client, chat()).await;
    assert_eq!((called.status(), called.served_by()), (200, "B"));
    assert_eq!(
        (a.calls(), b.calls()),
        (1, 1),
        "the second attempt went to B"
    );
}

#[tokio::test(start_paused = true)]
async fn all_cooled_fails_hard() {
    let (a, b) = (always(hinted(429, "61")), always(hinted(429, "65")));
    let fleet = fleet(
        &BreakerConfig::new(),
        &[
            ("A", table(Vendor::OpenAi), &a),
            ("B", table(Vendor::OpenAi), &b),
        ],
    );
    assert_eq!(send(&fleet.client, chat()).await.status(), 429);
    // Both are out now: the caller is told at once when the first is back.
    let called = send(&fleet.client, chat()).await;
    let error = called.out.unwrap_err();
    assert_eq!(Refused::find(&*error).unwrap().wait(), Some(61 * SECOND));
    assert_eq!((a.calls(), b.calls()), (1, 1), "nothing was sent");
    // Or it waits for it, with a retrying layer outside.
    let waits = JitterBackoffLayer::constant(SECOND)
        .unwrap()
        .layer(fleet.client.clone());
    let start = tokio::time::Instant::now();
    send(&BoxCloneSyncService::new(waits), chat())
        .await
        .out
        .unwrap();
    assert_eq!(start.elapsed().as_secs(), 61);
    assert_eq!((a.calls(), b.calls()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn guardrail_fail_not_retried() {
    let upstream: Upstream = Script::new([
        Step::answer(answer(
            200,
            r#"{"choices":[{"message":{"content":"deny"}}]}"#,
        )),
        Step::answer(ok()),
    ]);
    // The check stands below the retrying layer, so what it says is what is retried.
    let check = service_fn({
        let vendor = VendorVerdictLayer::new(Vendor::OpenAi).layer(upstream.clone());
        move |request: Req| {
            let vendor = vendor.clone();
            async move {
                let (mut head, body) = vendor.oneshot(request).await?.into_parts();
                let text = body.collect().await?.to_bytes();
                if text.windows(4).any(|w| w == b"deny") {
                    head.status = StatusCode::from_u16(446).unwrap();
                }
                Ok::<_, BoxError>(Response::from_parts(head, Full::new(text)))
            }
        }
    });
    let denied = ClassifyLayer::new(|out: Result<&Response<Body>, _>| {
        let denied = out.is_ok_and(|r| r.status().as_u16() == 446);
        denied.then(|| Reading::new(Class::Transient))
    });
    let adapter = Http::new().retry_ambiguous(true);
    let quiet = JitterBackoffLayer::constant(SECOND)
        .unwrap()
        .adapter(adapter);
    let client = quiet.layer(denied.layer(check));
    let response = client.oneshot(chat()).await.unwrap();
    assert_eq!((response.status().as_u16(), upstream.calls()), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn max_retries_zero_swallows() {
    let upstream = always(answer(400, r#"{"error":{"message":"bad"}}"#));
    let once = JitterBackoffLayer::new().max_attempts(1).unwrap();
    let client = once.layer(VendorVerdictLayer::new(Vendor::OpenAi).layer(upstream.clone()));
    let response = client.oneshot(chat()).await.unwrap();
    assert_eq!((response.status().as_u16(), upstream.calls()), (400, 1));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, r#"{"error":{"message":"bad"}}"#);
    let failing = always(answer(500, ""));
    let once = JitterBackoffLayer::new().max_attempts(1).unwrap();
    let client = once.layer(VendorVerdictLayer::new(Vendor::OpenAi).layer(failing.clone()));
    assert_eq!(client.oneshot(chat()).await.unwrap().status(), 500);
    assert_eq!(failing.calls(), 1);
}

/// A failover from a failing Opus to Gemini, or the other way round, with a profile each.
async fn translated(
    (from, from_status): (TargetProfile, u16),
    to: TargetProfile,
    judge: fn(&Value) -> Response<Body>,
    chat: &Value,
) -> (u16, Value) {
    let from_answers = always(answer(from_status, ""));
    let to_answers = service_fn(move |request: Req| async move {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        assert_eq!(head.headers["content-length"], body.len().to_string());
        let seen: Value = serde_json::from_slice(&body)?;
        let mut response = judge(&seen);
        response.extensions_mut().insert(Seen(seen));
        Ok::<_, BoxError>(response)
    });
    #[derive(Clone)]
    struct Seen(Value);
    let verdicts = |service| VendorVerdictLayer::new(Vendor::Gateway).layer(service);
    let first = BoxCloneSyncService::new(verdicts(BoxCloneSyncService::new(from_answers)));
    let second = BoxCloneSyncService::new(verdicts(BoxCloneSyncService::new(to_answers)));
    let client = FailoverService::new([
        Target::new("from", first)
            .prepare(move |request: &mut Req| from.prepare(request))
            .retry_ambiguous(true),
        Target::new("to", second).prepare(move |request: &mut Req| to.prepare(request)),
    ])
    .unwrap();
    let text = chat.to_string();
    let request = Request::post("/").header("content-length", text.len());
    let called = send(&client, request.body(Full::from(text)).unwrap()).await;
    assert_eq!(called.served_by(), "to");
    let response = called.out.unwrap();
    let Seen(seen) = response.extensions().get().cloned().unwrap();
    (response.status().as_u16(), seen)
}

#[tokio::test(start_paused = true)]
async fn rewritten_body_length_mismatch() {
    let long = "a field that B does not know".repeat(20);
    let chat = json!({"model": "m", "user": long, "messages": [{"role": "user", "content": "hi"}]});
    let opus = TargetProfile::anthropic_compat("claude-opus-5");
    let gemini = TargetProfile::gemini_compat("gemini-2.5-pro");
    // `translated` checks the length that B is told.
    let (status, seen) = translated((opus, 503), gemini, |_| ok(), &chat).await;
    assert_eq!(status, 200);
    assert_eq!(seen["model"], "gemini-2.5-pro");
    assert!(seen.get("user").is_none());
}

#[tokio::test(start_paused = true)]
async fn gemini_needs_thought_signature() {
    let chat = json!({"model": "m", "messages": [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "toolu_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": "rain"},
    ]});
    let strict = |seen: &Value| {
        let messages = seen["messages"].as_array().unwrap();
        let unsigned = |m: &Value| m.get("tool_calls").is_some() || m["role"] == "tool";
        match messages.iter().any(unsigned) {
            true => answer(
                400,
                r#"[{"error":{"code":400,"message":"function call is missing a thought_signature"}}]"#,
            ),
            false => ok(),
        }
    };
    let opus = TargetProfile::anthropic_compat("claude-opus-5");
    let gemini = TargetProfile::gemini_compat("gemini-3-pro-preview");
    let (status, seen) = translated((opus, 529), gemini, strict, &chat).await;
    assert_eq!(status, 200);
    assert!(
        seen.to_string().contains("rain"),
        "what the tool said is not lost"
    );
}

#[tokio::test(start_paused = true)]
async fn claude_rejects_foreign_thinking() {
    let chat = json!({"model": "m", "messages": [
        {"role": "user", "content": "why?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "of-gemini"},
            {"type": "text", "text": "because"}]},
        {"role": "user", "content": "really?"},
    ]});
    let strict = |seen: &Value| match seen.to_string().contains("thinking") {
        true => answer(
            400,
            r#"{"error":{"code":"invalid_request_error","message":"invalid signature in thinking block"}}"#,
        ),
        false => ok(),
    };
    let opus = TargetProfile::anthropic_compat("claude-opus-5");
    let gemini = TargetProfile::gemini_compat("gemini-2.5-pro");
    let (status, seen) = translated((gemini, 503), opus, strict, &chat).await;
    assert_eq!(status, 200);
    assert!(seen.to_string().contains("because"));
}
