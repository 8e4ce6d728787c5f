//! `x-should-retry`, with which OpenAI and Anthropic overrule the status.

use http::{HeaderMap, HeaderName};

use super::number;

const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// What the server says; "false" on any line is stronger than "true".
pub(super) fn read(headers: &HeaderMap) -> Option<bool> {
    headers
        .get_all(X_SHOULD_RETRY)
        .iter()
        .filter_map(number::text)
        .filter_map(|text| {
            if text.eq_ignore_ascii_case("true") {
                Some(true)
            } else if text.eq_ignore_ascii_case("false") {
                Some(false)
            } else {
                None
            }
        })
        .min()
}
