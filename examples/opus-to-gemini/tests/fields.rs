//! A body with every documented chat field is answered by either vendor, strict as they are.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use opus_to_gemini::{
    config::Config,
    fake::{Behaviour, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    pipeline::{Pipeline, Upstream},
};
use serde_json::{Value, json};
use tower::ServiceExt;
use tower_spillway_core::{Chance, Ledger};

fn everything() -> Value {
    json!({
        "model": "any",
        "messages": [
            {"role": "system", "content": "Be brief.", "name": "ops"},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        ],
        "audio": {"voice": "alloy", "format": "wav"},
        "frequency_penalty": 0.5,
        "function_call": "auto",
        "functions": [{"name": "f", "parameters": {"type": "object"}}],
        "logit_bias": {"50256": -100},
        "logprobs": true,
        "max_completion_tokens": 100,
        "max_tokens": 100,
        "metadata": {"team": "a"},
        "modalities": ["text"],
        "n": 1,
        "parallel_tool_calls": true,
        "prediction": {"type": "content", "content": "x"},
        "presence_penalty": 0.5,
        "prompt_cache_key": "k",
        "reasoning_effort": "low",
        "response_format": {"type": "text"},
        "safety_identifier": "u1",
        "seed": 7,
        "service_tier": "auto",
        "stop": ["END"],
        "store": false,
        "stream": false,
        "temperature": 0.7,
        "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": true}}],
        "top_logprobs": 2,
        "top_p": 0.9,
        "user": "u1",
        "verbosity": "low",
        "web_search_options": {},
    })
}

#[tokio::test]
async fn every_documented_field_is_answered_by_either_vendor() {
    let chance = Chance::seeded(1);
    let fakes = Fakes::start(&chance).await.unwrap();
    let pipeline = Pipeline::builder()
        .target(Upstream::opus(FAKE_ANTHROPIC_KEY).url(fakes.anthropic.url()))
        .target(Upstream::gemini(FAKE_GEMINI_KEY).url(fakes.gemini.url()))
        .config(Config::interactive().at_speed(100))
        .chance(chance)
        .build()
        .unwrap();
    for (behaviour, served) in [
        (Behaviour::Answer, "opus"),
        (Behaviour::Fail { status: 529 }, "gemini"),
    ] {
        fakes.anthropic.set(behaviour);
        let body = Full::new(Bytes::from(everything().to_string()));
        let request = Request::post("/v1/chat/completions")
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let response = pipeline.clone().oneshot(request).await.unwrap();
        let report = response.extensions().get::<Ledger>().unwrap().report();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        assert_eq!(report.target.unwrap().as_str(), served);
        let answer: Value = serde_json::from_slice(&body).unwrap();
        // It brings tools, so it is answered with a call of one.
        assert!(answer["choices"][0]["message"]["tool_calls"].is_array());
    }
    fakes.stop().await;
}
