//! Who served, and what the caller is told of it.

use std::time::Duration;

use opus_to_gemini::fake::Behaviour;
use serde_json::json;

use crate::support::{Served, hello, streamed};

#[tokio::test]
async fn a_plain_answer_is_the_vendors_own_with_its_model_and_usage() {
    let served = Served::start(|_| {}).await;
    let reply = served.ask().await;

    assert_eq!(reply.status, 200);
    let answer = reply.json();
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], "claude-opus-5");
    assert!(answer["usage"]["total_tokens"].as_u64().unwrap() > 0);
    assert_eq!(reply.header("x-spillway-target"), Some("opus"));
    assert_eq!(reply.header("x-spillway-attempts"), Some("1"));
    assert!(
        reply
            .header("x-spillway-latency-ms")
            .unwrap()
            .parse::<u64>()
            .is_ok()
    );
    assert_eq!(reply.header("x-spillway-fallback-reason"), None);
    assert_eq!(reply.header("x-should-retry"), None);
    assert!(reply.header("x-request-id").unwrap().starts_with("call-"));
    assert_eq!(
        reply.header("content-length"),
        Some(reply.body.len().to_string().as_str())
    );
}

#[tokio::test]
async fn a_fallback_says_who_served_and_why() {
    let served = Served::start(|_| {}).await;
    served.fakes.anthropic.set(Behaviour::Fail { status: 529 });
    let reply = served.ask().await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["model"], "gemini-2.5-pro");
    assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
    let sends = served.fakes.anthropic.log().len() + served.fakes.gemini.log().len();
    assert_eq!(
        reply.header("x-spillway-attempts"),
        Some(sends.to_string().as_str())
    );
    let reason = reply.header("x-spillway-fallback-reason").unwrap();
    assert!(reason.starts_with("opus: transient"), "{reason}");
}

#[tokio::test]
async fn a_stream_comes_in_events_and_tells_its_usage() {
    let served = Served::start(|_| {}).await;
    served.fakes.anthropic.set(Behaviour::Fail { status: 500 });
    let reply = served.send(served.chat(&streamed())).await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
    assert_eq!(reply.header("content-length"), None);
    assert!(
        reply.text().ends_with("data: [DONE]\n\n"),
        "{}",
        reply.text()
    );
    assert!(reply.text().contains("\"usage\":{"));
}

#[tokio::test]
async fn a_stream_that_fails_before_its_first_content_is_served_by_the_next_target() {
    let served = Served::start(|config| {
        let opus = config.targets.get_mut("opus").unwrap();
        opus.streaming_within = Duration::from_millis(200);
    })
    .await;
    served.fakes.anthropic.set(Behaviour::Silent);
    let reply = served.send(served.chat(&streamed())).await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
    assert!(!reply.text().contains("\"error\""));
}

#[tokio::test]
async fn a_stream_that_breaks_later_ends_in_an_error_event() {
    let served = Served::start(|_| {}).await;
    served.fakes.anthropic.set_words(60);
    served.fakes.anthropic.set(Behaviour::Cut);
    let reply = served.send(served.chat(&streamed())).await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("x-spillway-target"), Some("opus"));
    assert!(!reply.text().contains("[DONE]"));
    let last = reply.text().trim_end().rsplit("data: ").next().unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    assert!(last["error"]["message"].is_string(), "{last}");
    let calls = served.calls(1).await;
    assert_eq!(calls[0]["outcome"], "broken");
}

#[tokio::test]
async fn vendors_headers_do_not_pass_but_their_request_id_and_the_bodys_type() {
    let served = Served::start(|_| {}).await;
    let reply = served.ask().await;
    assert_eq!(reply.header("x-upstream-request-id"), Some("req_fake"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    for name in [
        "x-ratelimit-limit-requests",
        "openai-processing-ms",
        "request-id",
        "set-cookie",
    ] {
        assert_eq!(reply.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn a_callers_headers_and_key_do_not_reach_a_vendor() {
    let served = Served::start(|_| {}).await;
    let mut request = served.chat(&hello());
    for (name, value) in [
        ("authorization", "Bearer the-callers"),
        ("x-api-key", "the-callers"),
        ("cookie", "a=b"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
    ] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let reply = served.send(request).await;
    assert_eq!(reply.status, 200);
    // The fake would say `Unknown` to the caller's key, and reject it.
    let label = served.fakes.anthropic.log()[0].key.to_string();
    assert_eq!(label, "anthropic");
}

#[tokio::test]
async fn a_call_has_one_id_everywhere() {
    let served = Served::start(|_| {}).await;
    let mut request = served.chat(&hello());
    request
        .headers_mut()
        .insert("x-request-id", "mine-7".parse().unwrap());
    let reply = served.send(request).await;
    assert_eq!(reply.header("x-request-id"), Some("mine-7"));
    let sent = served.fakes.anthropic.log()[0].id.clone();
    assert_eq!(sent.as_deref(), Some("mine-7/opus/1"));
    assert_eq!(served.calls(1).await[0]["id"], "mine-7");
}

#[tokio::test]
async fn a_request_brings_its_own_chain_where_that_is_allowed() {
    let served = Served::start(|config| config.gateway.allow_request_fallbacks = true).await;
    let mut chat = hello();
    chat["model"] = "gemini-2.5-pro".into();
    chat["fallbacks"] = json!(["claude-opus-5"]);
    served.fakes.gemini.set(Behaviour::Fail { status: 503 });
    let reply = served.send(served.chat(&chat)).await;

    // Gemini rejects fields that it does not know: a 400 would come back to the caller.
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("x-spillway-target"), Some("opus"));
    assert!(!served.fakes.gemini.log().is_empty());
}
