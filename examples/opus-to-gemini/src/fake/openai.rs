//! Any other OpenAI-compatible endpoint: every model is known, unknown fields are ignored, errors
//! and hints are as OpenAI has them.

use std::time::Duration;

use http::{Method, request::Parts};
use serde_json::json;

use super::{
    chat::{self, Chat, Wrong},
    log::KeyLabel,
    reply::Reply,
    vendor::Vendor,
};

pub(super) fn check(head: &Parts, key: &KeyLabel, body: &[u8]) -> Result<Chat, Reply> {
    let bad = |status, message: &str| error(status, "invalid_request_error", None, message);
    if head.uri.path() != Vendor::OpenAi.path() {
        return Err(bad(404, "Invalid URL"));
    }
    if head.method != Method::POST {
        return Err(bad(405, "Not allowed to GET on /v1/chat/completions"));
    }
    if !key.accepted() {
        let code = Some("invalid_api_key");
        let message = "Incorrect API key provided.";
        return Err(error(401, "invalid_request_error", code, message));
    }
    let read = chat::parse(body).and_then(|fields| Chat::read(&fields));
    read.map_err(|wrong| match wrong {
        Wrong::NotJson => bad(400, "We could not parse the JSON body of your request."),
        Wrong::Field { name, bound } => bad(400, &format!("{name}: {bound}")),
    })
}

pub(super) fn answer(chat: &Chat) -> Reply {
    let reply = match chat.complete("chatcmpl-fake") {
        Ok(whole) => Reply::json(200, &whole),
        Err(chunks) => Reply::events(&chunks),
    };
    reply.header("x-request-id", "req_fake")
}

pub(super) fn throttled(retry_after: Duration) -> Reply {
    let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
    let message = format!("Rate limit reached. Please try again in {seconds}s.");
    error(429, "requests", Some("rate_limit_exceeded"), &message)
        .header("retry-after", seconds.to_string())
}

pub(super) fn exhausted() -> Reply {
    let quota = "insufficient_quota";
    error(429, quota, Some(quota), "You exceeded your current quota.")
}

pub(super) fn failed(status: u16) -> Reply {
    let message = "The server had an error while processing your request.";
    error(status, "server_error", None, message)
}

fn error(status: u16, kind: &str, code: Option<&str>, message: &str) -> Reply {
    let error = json!({"message": message, "type": kind, "param": null, "code": code});
    Reply::json(status, &json!({"error": error})).header("x-request-id", "req_fake")
}
