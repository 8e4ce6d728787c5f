//! Content types, as far as a verdict needs them.

use http::{HeaderMap, HeaderValue, header};

pub(crate) const HTML: &str = "text/html";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

fn essence(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}

/// Whether the content is of this type, whatever its parameters.
pub(crate) fn is(headers: &HeaderMap, kind: &str) -> bool {
    essence(headers).is_some_and(|e| e.eq_ignore_ascii_case(kind))
}

/// Whether a success of this type may be a failure in disguise: JSON, HTML, text, or untyped.
pub(crate) fn may_hide_a_failure(headers: &HeaderMap) -> bool {
    let Some(essence) = essence(headers) else {
        return !headers.contains_key(header::CONTENT_TYPE);
    };
    let essence = essence.to_ascii_lowercase();
    essence.ends_with("/json")
        || essence.ends_with("+json")
        || matches!(essence.as_str(), HTML | "text/plain" | "")
}

/// Whether the bytes are compressed: they are then not looked into.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let plain = |v: &HeaderValue| v.as_bytes().eq_ignore_ascii_case(b"identity") || v.is_empty();
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|v| !plain(v))
}
