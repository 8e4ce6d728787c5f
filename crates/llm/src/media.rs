//! Content types, as far as a verdict needs them.

use http::{HeaderMap, HeaderValue, header};

pub(crate) const HTML: &str = "text/html";

fn essence(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}

/// Whether the content is of this type, whatever its parameters.
pub(crate) fn is(headers: &HeaderMap, kind: &str) -> bool {
    essence(headers).is_some_and(|e| e.eq_ignore_ascii_case(kind))
}

/// Whether these are the headers of events that can be read as they come: `text/event-stream`, and
/// not compressed. What else there is passes a [`StreamGuard`](crate::StreamGuard) as it is.
///
/// ```
/// use http::HeaderMap;
/// use tower_spillway_llm::stream::is_event_stream;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("content-type", "Text/Event-Stream; charset=utf-8".parse().unwrap());
/// assert!(is_event_stream(&headers));
/// headers.insert("content-encoding", "gzip".parse().unwrap());
/// assert!(!is_event_stream(&headers));
/// ```
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    is(headers, "text/event-stream") && !is_encoded(headers)
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
