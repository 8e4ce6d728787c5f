//! Anthropic's OpenAI-compatible endpoint: unknown fields are ignored, the real type of an error
//! is in `error.code`, hints are in headers.

use std::time::Duration;

use http::{Method, request::Parts};
use serde_json::{Map, Value, json};

use super::{
    chat::{self, Chat, Wrong, role_of},
    log::KeyLabel,
    reply::Reply,
    vendor::Vendor,
};

/// Models, newest first.
const MODELS: [&str; 6] = [
    "claude-opus-5-5",
    "claude-opus-5",
    "claude-opus-4-8",
    "claude-opus-4-7",
    "claude-opus-4-6",
    "claude-opus-4-5-20251101",
];

/// From 4.7 on, sampling parameters other than their defaults are rejected.
const WITH_SAMPLING: [&str; 2] = ["claude-opus-4-6", "claude-opus-4-5-20251101"];

/// From 4.6 on, a conversation must not end with the assistant's own words.
const WITH_PREFILL: [&str; 1] = ["claude-opus-4-5-20251101"];

pub(super) fn check(head: &Parts, key: &KeyLabel, body: &[u8]) -> Result<Chat, Reply> {
    if head.uri.path() != Vendor::Anthropic.path() {
        return Err(error(404, "not_found_error", "Not found"));
    }
    if head.method != Method::POST {
        return Err(error(405, "invalid_request_error", "Method Not Allowed"));
    }
    if !key.accepted() {
        return Err(error(401, "authentication_error", "invalid x-api-key"));
    }
    let bad = |message: &str| error(400, "invalid_request_error", message);
    let read = chat::parse(body).and_then(|fields| Ok((Chat::read(&fields)?, fields)));
    let (chat, fields) = read.map_err(|wrong| match wrong {
        Wrong::NotJson => bad("Failed to parse JSON: "),
        Wrong::Field { name, bound } => bad(&format!("{name}: {bound}")),
    })?;
    let model = chat.model.as_str();
    if !MODELS.contains(&model) {
        return Err(error(404, "not_found_error", &format!("model: {model}")));
    }
    if chat.answers != 1 {
        return Err(bad("n: must be 1"));
    }
    if let Some(name) = sampling(&fields).filter(|_| !WITH_SAMPLING.contains(&model)) {
        return Err(bad(&format!("`{name}` is deprecated for this model.")));
    }
    let last = fields.get("messages").and_then(Value::as_array);
    let prefill = last.and_then(|m| m.last()).and_then(role_of) == Some("assistant");
    if prefill && !WITH_PREFILL.contains(&model) {
        return Err(bad(
            "This model does not support assistant message prefill. The conversation must end \
             with a user message.",
        ));
    }
    Ok(chat)
}

/// A sampling parameter that is not at its default.
fn sampling(fields: &Map<String, Value>) -> Option<&'static str> {
    let set = |name: &str| fields.get(name).filter(|v| !v.is_null());
    // A temperature above 1 is capped at 1, the default.
    let temperature = set("temperature").filter(|v| v.as_f64().is_none_or(|t| t < 1.0));
    let top_p = set("top_p").filter(|v| v.as_f64() != Some(1.0));
    temperature
        .map(|_| "temperature")
        .or(top_p.map(|_| "top_p"))
        .or(set("top_k").map(|_| "top_k"))
}

pub(super) fn answer(chat: &Chat) -> Reply {
    let reply = match chat.complete("msg_fake") {
        Ok(whole) => Reply::json(200, &whole),
        Err(chunks) => Reply::events(&chunks),
    };
    reply
        .header("request-id", "req_fake")
        .header("openai-processing-ms", "")
        .header("x-ratelimit-limit-requests", "1000")
        .header("x-ratelimit-remaining-requests", "999")
        .header("x-ratelimit-reset-requests", "1s")
}

pub(super) fn throttled(retry_after: Duration) -> Reply {
    let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
    error(
        429,
        "rate_limit_error",
        "This request would exceed the rate limit for your organization of 20,000 input tokens \
         per minute.",
    )
    .header("retry-after", seconds.to_string())
    .header("x-ratelimit-limit-requests", "1000")
    .header("x-ratelimit-remaining-requests", "0")
    .header("x-ratelimit-reset-requests", format!("{seconds}s"))
}

pub(super) fn exhausted() -> Reply {
    error(
        400,
        "invalid_request_error",
        "You have reached your specified API usage limits. You will regain access on 2026-12-01 \
         at 00:00 UTC.",
    )
    .header("x-should-retry", "false")
}

pub(super) fn failed(status: u16) -> Reply {
    match status {
        529 => error(status, "overloaded_error", "Overloaded"),
        504 => error(status, "timeout_error", "Request timed out"),
        _ => error(status, "api_error", "Internal server error"),
    }
}

fn error(status: u16, code: &str, message: &str) -> Reply {
    let body = json!({
        "error": {
            "code": code,
            "message": message,
            // Whatever the error is.
            "type": "invalid_request_error",
            "param": null,
        },
    });
    let again = matches!(status, 408 | 409 | 429 | 500..);
    Reply::json(status, &body)
        .header("request-id", "req_fake")
        .header("x-should-retry", again.to_string())
}
