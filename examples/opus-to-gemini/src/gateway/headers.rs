//! The gateway's own headers, and which of others go on.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The id of a call: in the answer, in the log and in `/status`.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The target that served.
pub(super) const TARGET: HeaderName = HeaderName::from_static("x-spillway-target");
/// Requests sent, over all targets.
pub(super) const ATTEMPTS: HeaderName = HeaderName::from_static("x-spillway-attempts");
/// From the arrival of the request to the head of the answer.
pub(super) const LATENCY_MS: HeaderName = HeaderName::from_static("x-spillway-latency-ms");
/// The first target that was given up, and why.
pub(super) const FALLBACK_REASON: HeaderName =
    HeaderName::from_static("x-spillway-fallback-reason");
/// Of a request: how long its call may take.
pub(super) const TIMEOUT_MS: HeaderName = HeaderName::from_static("x-spillway-timeout-ms");
/// Whether an SDK should send the request again by itself.
pub(super) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The id that the vendor gave to the request.
pub(super) const UPSTREAM_ID: HeaderName = HeaderName::from_static("x-upstream-request-id");
/// What the pipeline makes its attempts' ids of.
pub(super) const CALL_ID: HeaderName = HeaderName::from_static("x-call-id");

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) fn yes_or_no(yes: bool) -> HeaderValue {
    HeaderValue::from_static(if yes { "true" } else { "false" })
}

/// A value; `None` if it is not fit for a header.
pub(super) fn value(text: String) -> Option<HeaderValue> {
    HeaderValue::try_from(text).ok()
}

/// What tells how to read a body.
const OF_THE_BODY: [HeaderName; 2] = [header::CONTENT_TYPE, header::CONTENT_ENCODING];

/// Where vendors put the id of a request.
const IDS: [HeaderName; 2] = [
    HeaderName::from_static("request-id"),
    HeaderName::from_static("x-request-id"),
];

/// What of a vendor's head goes on to the caller: how to read the body, and the vendor's id of the
/// request under a name of its own.
///
/// Nothing else: rate limits are those of the gateway's account at one of several vendors, cookies
/// are between the gateway and the vendor, and length and connection are each side's own. Nor what
/// `clean` finds a key in: a vendor may send back what it was sent.
pub(super) fn of_answer(vendor: &HeaderMap, clean: impl Fn(&str) -> bool) -> HeaderMap {
    let clean = |value: &&HeaderValue| value.to_str().is_ok_and(&clean);
    let mut headers = HeaderMap::with_capacity(12);
    for name in OF_THE_BODY {
        if let Some(value) = vendor.get(&name).filter(clean) {
            headers.insert(name, value.clone());
        }
    }
    let id = IDS.iter().find_map(|name| vendor.get(name));
    if let Some(id) = id.filter(|id| id.len() <= 200).filter(clean) {
        headers.insert(UPSTREAM_ID, id.clone());
    }
    headers
}
