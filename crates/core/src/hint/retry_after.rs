//! `retry-after-ms` and `Retry-After` (RFC 9110 10.2.3).

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, header};

use super::{
    Source,
    date::{self, Origin},
    number::{self, MILLISECOND, SECOND},
};

const MS_HEADERS: [(HeaderName, Source); 2] = [
    (
        HeaderName::from_static("retry-after-ms"),
        Source::RetryAfterMs,
    ),
    (
        HeaderName::from_static("x-ms-retry-after-ms"),
        Source::XMsRetryAfterMs,
    ),
];

/// Nanoseconds asked for in milliseconds. Zero falls through: some proxies send it beside a real
/// `Retry-After`.
pub(super) fn millis(headers: &HeaderMap) -> Option<(u128, Source)> {
    MS_HEADERS.iter().find_map(|(name, source)| {
        headers
            .get_all(name)
            .iter()
            .filter_map(number::text)
            .filter_map(|text| number::decimal(text, MILLISECOND))
            .find(|asked| *asked > 0)
            .map(|asked| (asked, *source))
    })
}

/// Nanoseconds asked for by the first usable line. A date in the past asks for nothing.
pub(super) fn seconds_or_date<F: FnOnce() -> SystemTime>(
    headers: &HeaderMap,
    origin: &mut Origin<'_, F>,
) -> Option<(u128, Source)> {
    headers
        .get_all(header::RETRY_AFTER)
        .iter()
        .filter_map(number::text)
        .find_map(|text| {
            // A number is never tried as a date: "-5" must not become a year.
            if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
                return Some((number::decimal(text, SECOND)?, Source::RetryAfterSeconds));
            }
            Some((origin.until(date::http(text)?)?, Source::RetryAfterDate))
        })
}
