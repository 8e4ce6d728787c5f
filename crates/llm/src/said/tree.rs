//! JSON of any shape to what it says.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::{Said, push, push_message, spans};

/// Waits that a body asks for, by where they stand. The first of each counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    pub(super) retry_info: Option<Duration>,
    pub(super) quota_reset: Option<Duration>,
    pub(super) message: Option<Duration>,
    pub(super) retry_after: Option<Duration>,
    /// Header fields of another server.
    pub(super) quoted: HeaderMap,
    pub(super) forbidden: bool,
}

/// Further header fields in a body are not looked at.
const MOST_QUOTED: usize = 32;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// JSON in a message, in JSON in a message: no deeper.
const DEEPEST: u32 = 3;

pub(super) fn read(said: &mut Said, body: &[u8]) {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    let body = event_data(body.trim_ascii());
    match serde_json::from_slice(body) {
        Ok(value) => read_value(said, &value, DEEPEST),
        Err(_) => plain(said, body),
    }
}

/// An error may come as the first event of a stream.
fn event_data(body: &[u8]) -> &[u8] {
    let Some(first) = body.strip_prefix(b"data:") else {
        return body;
    };
    first.split(|b| *b == b'\n').next().unwrap_or(first)
}

/// Text that is not JSON and does not begin like it: what a proxy says in words.
fn plain(said: &mut Said, body: &[u8]) {
    if let Ok(text) = std::str::from_utf8(body) {
        let wordy = text.starts_with(|c: char| c.is_alphanumeric());
        if wordy {
            message(said, text, 0);
        }
    }
}

fn read_value(said: &mut Said, value: &Value, depth: u32) {
    match value {
        // An array of one, as Google's compatible endpoint sends.
        Value::Array(items) => {
            if let Some(first @ Value::Object(_)) = items.first() {
                read_value(said, first, depth);
            }
        }
        Value::String(text) => message(said, text, depth),
        Value::Object(fields) => read_object(said, fields, depth),
        _ => {}
    }
}

fn read_object(said: &mut Said, fields: &Map<String, Value>, depth: u32) {
    if let Some(choices) = fields.get("choices").and_then(Value::as_array) {
        said.choices.get_or_insert(choices.len());
    }
    match fields.get("error") {
        Some(Value::Object(error)) => {
            said.error = true;
            read_error(said, error, depth);
        }
        Some(Value::String(text)) => {
            said.error = true;
            message(said, text, depth);
        }
        // An answer, or an error that stands at the top: Mistral, Bedrock, problem JSON.
        _ => read_error(said, fields, depth),
    }
    if let Some(wait) = fields.get("retry_after").and_then(seconds) {
        said.waits.retry_after.get_or_insert(wait);
    }
    // Problem JSON of Cloudflare's edge.
    if fields.get("retryable").and_then(Value::as_bool) == Some(false) {
        said.waits.forbidden = true;
    }
}

fn read_error(said: &mut Said, error: &Map<String, Value>, depth: u32) {
    for name in ["code", "status"] {
        match error.get(name) {
            Some(Value::String(code)) => push(&mut said.codes, code),
            Some(Value::Number(code)) => push(&mut said.codes, &code.to_string()),
            _ => {}
        }
    }
    if said.number.is_none() {
        said.number = error.get("code").and_then(status);
    }
    if let Some(kind) = error.get("type").and_then(Value::as_str) {
        push(&mut said.kinds, kind);
    }
    // `com.amazon.coral.service#ThrottlingException`
    if let Some(class) = error.get("__type").and_then(Value::as_str) {
        push(&mut said.codes, class.rsplit('#').next().unwrap_or(class));
    }
    for name in ["message", "Message", "detail", "title"] {
        if let Some(text) = error.get(name).and_then(Value::as_str) {
            message(said, text, depth);
        }
    }
    match error.get("details") {
        Some(Value::Array(details)) => {
            for detail in details.iter().filter_map(Value::as_object) {
                read_detail(said, detail);
            }
        }
        Some(Value::Object(details)) => {
            if let Some(code) = details.get("error_code").and_then(Value::as_str) {
                push(&mut said.codes, code);
            }
        }
        _ => {}
    }
    // Azure puts the finer code inside.
    if let Some(code) = error
        .get("innererror")
        .and_then(|e| e.get("code")?.as_str())
    {
        push(&mut said.codes, code);
    }
    if let Some(wait) = error.get("retry_after").and_then(seconds) {
        said.waits.retry_after.get_or_insert(wait);
    }
    if let Some(metadata) = error.get("metadata").and_then(Value::as_object) {
        read_metadata(said, metadata, depth);
    }
}

/// One of `google.rpc`'s error details.
fn read_detail(said: &mut Said, detail: &Map<String, Value>) {
    let kind = detail.get("@type").and_then(Value::as_str).unwrap_or("");
    if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
        push(&mut said.codes, reason);
    }
    if kind.ends_with("google.rpc.RetryInfo") {
        if let Some(wait) = detail.get("retryDelay").and_then(protobuf) {
            said.waits.retry_info.get_or_insert(wait);
        }
    }
    let metadata = detail.get("metadata");
    let reset = metadata.and_then(|m| m.get("quotaResetDelay")?.as_str());
    if let Some(wait) = reset.and_then(spans::whole) {
        said.waits.quota_reset.get_or_insert(wait);
    }
    let violations = detail.get("violations").and_then(Value::as_array);
    for violation in violations.into_iter().flatten() {
        for name in ["quotaId", "quotaMetric"] {
            if let Some(id) = violation.get(name).and_then(Value::as_str) {
                push(&mut said.quotas, id);
            }
        }
    }
}

/// OpenRouter: headers of the provider, and its own error as text.
fn read_metadata(said: &mut Said, metadata: &Map<String, Value>, depth: u32) {
    let headers = metadata.get("headers").and_then(Value::as_object);
    for (name, value) in headers.into_iter().flatten().take(MOST_QUOTED) {
        if let Some((name, value)) = field(name, value) {
            said.waits.quoted.append(name, value);
        }
    }
    if metadata.contains_key("flagged_input") {
        push(&mut said.codes, "flagged_input");
    }
    match metadata.get("raw") {
        Some(Value::String(raw)) => message(said, raw, depth),
        Some(raw @ Value::Object(_)) if depth > 0 => read_value(said, raw, depth - 1),
        _ => {}
    }
}

fn field(name: &str, value: &Value) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let value = match value {
        Value::String(text) => HeaderValue::from_str(text).ok()?,
        Value::Number(n) => HeaderValue::from_str(&n.to_string()).ok()?,
        _ => return None,
    };
    Some((name, value))
}

fn message(said: &mut Said, text: &str, depth: u32) {
    let text = text.trim();
    if text.starts_with(['{', '[']) && depth > 0 {
        if let Ok(inner) = serde_json::from_str::<Value>(text) {
            return read_value(said, &inner, depth - 1);
        }
    }
    push_message(&mut said.messages, text);
    if let Some(wait) = said.messages.last().and_then(|m| spans::asked(m)) {
        said.waits.message.get_or_insert(wait);
    }
}

/// A number, or its digits as a text, that can be the status of an error.
fn status(value: &Value) -> Option<u16> {
    let number = match value {
        Value::Number(n) => n.as_u64()?,
        Value::String(s) => s.parse().ok()?,
        _ => return None,
    };
    u16::try_from(number)
        .ok()
        .filter(|n| (400..=599).contains(n))
}

/// Seconds, as a number or a text. Read by its digits: a float would round.
fn seconds(value: &Value) -> Option<Duration> {
    match value {
        Value::Number(n) => spans::seconds(&n.to_string()),
        Value::String(s) => spans::seconds(s.trim()),
        _ => None,
    }
}

/// A protobuf `Duration` in JSON: `"45.837906927s"`, or its two fields.
fn protobuf(value: &Value) -> Option<Duration> {
    match value {
        Value::String(s) => spans::whole(s),
        Value::Object(fields) => {
            let whole = |name| match fields.get(name) {
                None => Some(0),
                Some(Value::String(s)) => s.parse().ok(),
                Some(n) => n.as_u64(),
            };
            let nanos = u32::try_from(whole("nanos")?)
                .ok()
                .filter(|n| *n < 1_000_000_000)?;
            Some(spans::whole_millis(Duration::new(whole("seconds")?, nanos)))
        }
        _ => None,
    }
}
