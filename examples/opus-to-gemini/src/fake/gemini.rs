//! Gemini's OpenAI-compatible endpoint: unknown fields are rejected, errors are google.rpc shapes
//! in an array of one, hints are in the body.

use std::time::Duration;

use http::{Method, request::Parts};
use serde_json::{Value, json};

use super::{
    chat::{self, Chat, Wrong},
    log::KeyLabel,
    reply::Reply,
    vendor::Vendor,
};

const MODELS: [&str; 5] = [
    "gemini-3.1-pro",
    "gemini-3.1-pro-preview",
    "gemini-3-pro-preview",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
];

/// Every field that it knows.
const FIELDS: [&str; 15] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "parallel_tool_calls",
    "reasoning_effort",
    "response_format",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
];

pub(super) fn check(head: &Parts, key: &KeyLabel, body: &[u8]) -> Result<Chat, Reply> {
    if head.uri.path() != Vendor::Gemini.path() || head.method != Method::POST {
        return Err(error(404, "Requested entity was not found.", &[]));
    }
    match key {
        KeyLabel::None => {
            let message = "Missing or invalid Authorization header.";
            return Err(error(400, message, &[]));
        }
        // A bad key is a 400 here, never a 401.
        key if !key.accepted() => {
            let info = json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            });
            let message = "API key not valid. Please pass a valid API key.";
            return Err(error(400, message, &[info]));
        }
        _ => {}
    }
    let fields = chat::parse(body).map_err(|_| {
        let message = "Invalid JSON payload received. Unexpected end of string.";
        error(400, message, &[])
    })?;
    if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        let message =
            format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field.");
        let details = json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"description": message}],
        });
        return Err(error(400, &message, &[details]));
    }
    let chat = Chat::read(&fields).map_err(|wrong| match wrong {
        Wrong::Field { name, bound } => error(400, &format!("{name}: {bound}"), &[]),
        Wrong::NotJson => error(400, "Request contains an invalid argument.", &[]),
    })?;
    let model = chat.model.trim_start_matches("models/");
    if !MODELS.contains(&model) {
        let message = format!(
            "models/{model} is not found for API version v1main, or is not supported for \
             generateContent."
        );
        return Err(error(404, &message, &[]));
    }
    if !(1..=8).contains(&chat.answers) {
        return Err(error(400, "n: must be between 1 and 8", &[]));
    }
    Ok(chat)
}

pub(super) fn answer(chat: &Chat) -> Reply {
    match chat.complete("fake") {
        Ok(whole) => Reply::json(200, &whole),
        Err(chunks) => Reply::events(&chunks),
    }
}

pub(super) fn throttled(retry_after: Duration) -> Reply {
    over_quota("GenerateRequestsPerMinutePerProjectPerModel", retry_after)
}

pub(super) fn exhausted() -> Reply {
    over_quota(
        "GenerateRequestsPerDayPerProjectPerModel",
        Duration::from_secs(10),
    )
}

fn over_quota(id: &str, retry_after: Duration) -> Reply {
    let delay = protobuf(retry_after);
    let quota = json!({
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
            "quotaId": id,
        }],
    });
    let retry = json!({
        "@type": "type.googleapis.com/google.rpc.RetryInfo",
        "retryDelay": delay,
    });
    let message = format!("You exceeded your current quota. Please retry in {delay}.");
    error(429, &message, &[quota, retry])
}

pub(super) fn failed(status: u16) -> Reply {
    let message = match status {
        503 => "The model is overloaded. Please try again later.",
        504 => "Deadline expired before operation could complete.",
        _ => "An internal error has occurred. Please retry.",
    };
    error(status, message, &[])
}

fn error(code: u16, message: &str, details: &[Value]) -> Reply {
    let status = match code {
        400 => "INVALID_ARGUMENT",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    };
    let mut error = json!({"code": code, "message": message, "status": status});
    if let (Some(error), false) = (error.as_object_mut(), details.is_empty()) {
        error.insert("details".into(), details.into());
    }
    Reply::json(code, &json!([{ "error": error }]))
}

/// A protobuf `Duration` in JSON: seconds with up to nine decimals.
fn protobuf(d: Duration) -> String {
    let fraction = format!("{:09}", d.subsec_nanos());
    match fraction.trim_end_matches('0') {
        "" => format!("{}s", d.as_secs()),
        fraction => format!("{}.{fraction}s", d.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protobuf_durations_have_no_trailing_zeros() {
        assert_eq!(protobuf(Duration::from_secs(39)), "39s");
        assert_eq!(protobuf(Duration::from_millis(1_500)), "1.5s");
        assert_eq!(
            protobuf(Duration::from_nanos(45_837_906_927)),
            "45.837906927s"
        );
    }
}
