//! The fake vendors are as strict as the real ones, in the same shapes, and misbehave as told.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a test may"
)]

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opus_to_gemini::fake::{
    Behaviour, Did, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, FakeVendor, Fakes, KeyLabel,
};
use serde_json::{Value, json};
use tower_spillway_core::{BoxError, Chance};

const OPUS: &str = "claude-opus-5";
const GEMINI: &str = "gemini-2.5-pro";

struct Caller(Client<HttpConnector, Full<Bytes>>);

impl Caller {
    fn new() -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http())
    }

    async fn send(
        &self,
        to: &FakeVendor,
        key: &str,
        body: &Value,
    ) -> Result<Response<Incoming>, BoxError> {
        let request = Request::post(to.url())
            .header("authorization", format!("Bearer {key}"))
            .body(Full::from(body.to_string()))?;
        Ok(self.0.request(request).await?)
    }

    async fn ask(&self, to: &FakeVendor, key: &str, body: &Value) -> (u16, HeaderMap, Value) {
        let (head, body) = self.send(to, key, body).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap();
        (head.status.as_u16(), head.headers, body)
    }

    async fn anthropic(&self, fakes: &Fakes, body: &Value) -> (u16, HeaderMap, Value) {
        self.ask(&fakes.anthropic, FAKE_ANTHROPIC_KEY, body).await
    }

    async fn gemini(&self, fakes: &Fakes, body: &Value) -> (u16, HeaderMap, Value) {
        self.ask(&fakes.gemini, FAKE_GEMINI_KEY, body).await
    }
}

async fn fakes() -> (Fakes, Caller) {
    let fakes = Fakes::start(&Chance::seeded(1)).await.unwrap();
    (fakes, Caller::new())
}

/// A chat with further fields.
fn chat(model: &str, more: Value) -> Value {
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Until the server's side caught up; the test runner bounds it.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn both_answer_in_openai_shape() {
    let (fakes, caller) = fakes().await;
    let (status, headers, body) = caller.anthropic(&fakes, &chat(OPUS, json!({}))).await;
    assert_eq!(status, 200);
    assert!(headers.contains_key("request-id"));
    assert_eq!(body["model"], OPUS);
    let says = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(says.contains(OPUS) && says.contains("hi"), "{says}");
    assert!(body["usage"]["total_tokens"].as_u64().unwrap() > 0);

    let (status, _, body) = caller.gemini(&fakes, &chat(GEMINI, json!({"n": 2}))).await;
    assert_eq!(status, 200);
    assert_eq!(body["choices"].as_array().unwrap().len(), 2);
    fakes.stop().await;
}

#[tokio::test]
async fn a_stream_is_a_role_chunk_content_chunks_and_the_marker() {
    let (fakes, caller) = fakes().await;
    let body = chat(GEMINI, json!({"stream": true}));
    let response = caller.send(&fakes.gemini, FAKE_GEMINI_KEY, &body).await;
    let response = response.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"));
    let said: String = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .filter_map(|c| Some(c["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect();
    assert!(said.contains(GEMINI), "{said}");
}

#[tokio::test]
async fn anthropic_ignores_what_it_does_not_know_and_gemini_rejects_it() {
    let (fakes, caller) = fakes().await;
    let more = json!({"frequency_penalty": 1, "seed": 7, "user": "me"});
    let (status, _, _) = caller.anthropic(&fakes, &chat(OPUS, more.clone())).await;
    assert_eq!(status, 200);

    let (status, _, body) = caller.gemini(&fakes, &chat(GEMINI, more)).await;
    assert_eq!(status, 400);
    let error = &body[0]["error"];
    assert_eq!(body.as_array().unwrap().len(), 1);
    assert_eq!(error["status"], "INVALID_ARGUMENT");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("Unknown name \"frequency_penalty\""),
        "{message}"
    );
}

#[tokio::test]
async fn anthropic_checks_n_sampling_and_prefill() {
    let (fakes, caller) = fakes().await;
    let old = "claude-opus-4-5-20251101";
    let prefill = json!({"messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hel"},
    ]});
    for (model, more, status, says) in [
        (OPUS, json!({"n": 2}), 400, "n: must be 1"),
        (
            OPUS,
            json!({"temperature": 0.2}),
            400,
            "`temperature` is deprecated",
        ),
        (OPUS, json!({"top_p": 0.5}), 400, "`top_p` is deprecated"),
        (OPUS, json!({"temperature": 1.7}), 200, ""),
        (old, json!({"temperature": 0.2}), 200, ""),
        (OPUS, prefill.clone(), 400, "prefill"),
        (old, prefill, 200, ""),
        (OPUS, json!({"messages": []}), 400, "at least one message"),
        (OPUS, json!({"max_tokens": 0}), 400, "max_tokens"),
        ("claude-opus-9", json!({}), 404, "model: claude-opus-9"),
    ] {
        let (got, headers, body) = caller.anthropic(&fakes, &chat(model, more.clone())).await;
        assert_eq!(got, status, "{model} {more}: {body}");
        if status != 200 {
            let message = body["error"]["message"].as_str().unwrap();
            assert!(message.contains(says), "{message}");
            assert_eq!(body["error"]["type"], "invalid_request_error");
            assert_eq!(headers["x-should-retry"], "false");
        }
    }
}

#[tokio::test]
async fn a_wrong_key_is_401_at_anthropic_and_400_at_gemini() {
    let (fakes, caller) = fakes().await;
    let (status, _, body) = caller
        .ask(&fakes.anthropic, FAKE_GEMINI_KEY, &chat(OPUS, json!({})))
        .await;
    assert_eq!(status, 401);
    assert_eq!(body["error"]["code"], "authentication_error");

    let (status, _, body) = caller
        .ask(&fakes.gemini, "nobody's", &chat(GEMINI, json!({})))
        .await;
    assert_eq!(status, 400);
    assert_eq!(body[0]["error"]["details"][0]["reason"], "API_KEY_INVALID");

    let label = |vendor: &FakeVendor| vendor.log()[0].key.clone();
    assert_eq!(label(&fakes.anthropic), KeyLabel::Foreign("gemini".into()));
    assert_eq!(label(&fakes.gemini), KeyLabel::Unknown);
}

#[tokio::test]
async fn hints_are_in_the_header_at_anthropic_and_in_the_body_at_gemini() {
    let (fakes, caller) = fakes().await;
    let retry_after = Duration::from_millis(1500);
    fakes.anthropic.next(1, Behaviour::Throttle { retry_after });
    fakes.gemini.next(1, Behaviour::Throttle { retry_after });

    let (status, headers, body) = caller.anthropic(&fakes, &chat(OPUS, json!({}))).await;
    assert_eq!(
        (status, &headers["retry-after"]),
        (429, &"2".parse().unwrap())
    );
    assert_eq!(body["error"]["code"], "rate_limit_error");

    let (status, headers, body) = caller.gemini(&fakes, &chat(GEMINI, json!({}))).await;
    assert_eq!(status, 429);
    assert!(!headers.contains_key("retry-after"));
    let details = body[0]["error"]["details"].as_array().unwrap();
    assert!(details.iter().any(|d| d["retryDelay"] == "1.5s"), "{body}");

    let (status, _, _) = caller.anthropic(&fakes, &chat(OPUS, json!({}))).await;
    assert_eq!(status, 200, "asked for once only");
}

#[tokio::test]
async fn failures_have_the_status_asked_for() {
    let (fakes, caller) = fakes().await;
    for (status, code) in [(500, "api_error"), (529, "overloaded_error")] {
        fakes.anthropic.set(Behaviour::Fail { status });
        let (got, _, body) = caller.anthropic(&fakes, &chat(OPUS, json!({}))).await;
        assert_eq!((got, &body["error"]["code"]), (status, &json!(code)));
    }
    fakes.gemini.set(Behaviour::Fail { status: 503 });
    let (got, _, body) = caller.gemini(&fakes, &chat(GEMINI, json!({}))).await;
    assert_eq!(
        (got, &body[0]["error"]["status"]),
        (503, &json!("UNAVAILABLE"))
    );
}

#[tokio::test]
async fn reset_cut_and_hang_give_no_whole_answer_and_are_logged() {
    let (fakes, caller) = fakes().await;
    let body = chat(OPUS, json!({}));
    let send = || caller.send(&fakes.anthropic, FAKE_ANTHROPIC_KEY, &body);

    fakes.anthropic.next(1, Behaviour::Reset);
    assert!(send().await.is_err());

    fakes.anthropic.next(1, Behaviour::Cut);
    let cut = send().await.unwrap();
    assert_eq!(cut.status(), 200);
    assert!(cut.into_body().collect().await.is_err());

    fakes.anthropic.next(1, Behaviour::Hang);
    let hung = tokio::time::timeout(Duration::from_millis(50), send()).await;
    assert!(hung.is_err());
    until(|| fakes.anthropic.log().iter().all(|e| e.did != Did::Waiting)).await;

    let did: Vec<Did> = fakes.anthropic.log().iter().map(|e| e.did).collect();
    assert_eq!(did, [Did::Reset, Did::Cut, Did::Left]);
}

#[tokio::test]
async fn connections_are_counted_and_a_stop_ends_even_hung_ones() {
    let (fakes, caller) = fakes().await;
    let (_, _, _) = caller.gemini(&fakes, &chat(GEMINI, json!({}))).await;
    assert_eq!(fakes.gemini.connections(), 1);
    drop(caller);
    until(|| fakes.gemini.connections() == 0).await;

    fakes.gemini.set(Behaviour::Hang);
    let url = fakes.gemini.url();
    let hung = tokio::spawn(async move {
        let request = Request::post(url)
            .header("authorization", format!("Bearer {FAKE_GEMINI_KEY}"))
            .body(Full::from(chat(GEMINI, json!({})).to_string()))
            .unwrap();
        Caller::new().0.request(request).await.is_err()
    });
    until(|| fakes.gemini.log().len() == 2).await;
    fakes.stop().await;
    assert!(hung.await.unwrap());
}

#[tokio::test]
async fn faults_come_by_chance_and_not_where_something_is_asked_for() {
    let (fakes, caller) = fakes().await;
    let ask = async || caller.anthropic(&fakes, &chat(OPUS, json!({}))).await.0;
    let failing = [500, 503].map(|status| Behaviour::Fail { status });

    fakes.anthropic.set_faults(30, failing);
    let mut statuses = Vec::new();
    for _ in 0..100 {
        statuses.push(ask().await);
    }
    let of = |status| statuses.iter().filter(|s| **s == status).count();
    assert!((15..=45).contains(&(of(500) + of(503))), "{statuses:?}");
    assert!(of(500) > 0 && of(503) > 0);

    fakes.anthropic.set_faults(100, failing);
    fakes.anthropic.next(1, Behaviour::Answer);
    assert_eq!(ask().await, 200);
    assert_ne!(ask().await, 200);
    fakes.anthropic.set_faults(0, failing);
    assert_eq!(ask().await, 200);
    fakes.stop().await;
}
