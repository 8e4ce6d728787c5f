//! Hints of headers and body in one order.
//!
//! 1. explicit headers (`retry-after-ms`, `Retry-After`, IETF `RateLimit`);
//! 2. google.rpc.RetryInfo, `quotaResetDelay`, then the words of a message;
//! 3. headers of a provider inside the body (OpenRouter), `retry_after` (Cloudflare, Discord);
//! 4. resets of exhausted buckets in headers: time to a full refill, so the last resort.
//!
//! A zero asks for no minimum, so that a later step that asks for one wins over it.

use std::time::{Duration, SystemTime};

use tower_spillway_core::hint::{Hint, Source};

use super::Said;

/// Below, a reset is seconds from now; above, a date. 30 days.
const DELTA_BELOW: Duration = Duration::from_secs(2_592_000);

/// From here on a date is in milliseconds.
const MILLIS_FROM: Duration = Duration::from_secs(1_000_000_000_000);

/// The hint of an answer: of its headers, given, or of its body.
pub(crate) fn hint(
    headers: Option<Hint>,
    said: &Said,
    now: impl FnOnce() -> SystemTime,
) -> Option<Hint> {
    if headers == Some(Hint::Never) || said.waits.forbidden {
        return Some(Hint::Never);
    }
    let explicit = headers.filter(|h| !is_reset(*h) && !is_zero(*h));
    if explicit.is_some() {
        return explicit;
    }
    let waits = &said.waits;
    let steps = [
        (waits.retry_info, "retry_info"),
        (waits.quota_reset, "quota_reset_delay"),
        (waits.message, "message"),
        (waits.retry_after, "body_retry_after"),
        (waits.reset.and_then(|r| reset(r, now)), "metadata_reset"),
    ];
    let asked = |(wait, source): (Option<Duration>, _)| {
        wait.map(|wait| Hint::After {
            wait,
            source: Source::Custom(source),
        })
    };
    let body = || steps.into_iter().filter_map(asked);
    body()
        .find(|h| !is_zero(*h))
        .or(headers.filter(|h| !is_zero(*h)))
        .or(headers)
        .or_else(|| body().next())
}

fn is_zero(hint: Hint) -> bool {
    hint.after() == Some(Duration::ZERO)
}

/// Whether a header only tells when an exhausted bucket is full again.
fn is_reset(_hint: Hint) -> bool {
    false
}

/// A reset without a unit: seconds from now, or a date. One in the past says nothing.
fn reset(asked: Duration, now: impl FnOnce() -> SystemTime) -> Option<Duration> {
    if asked < DELTA_BELOW {
        return Some(asked);
    }
    let date = if asked >= MILLIS_FROM {
        // The figure was read as seconds.
        Duration::from_millis(asked.as_secs())
    } else {
        asked
    };
    let now = now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let wait = date.checked_sub(now)?;
    let millis = wait.as_nanos().div_ceil(1_000_000);
    Some(Duration::from_millis(
        u64::try_from(millis).unwrap_or(u64::MAX),
    ))
    .filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    fn ms(headers: Option<u64>, body: &str) -> Option<u128> {
        let headers = headers.map(|s| Hint::After {
            wait: Duration::from_secs(s),
            source: Source::RetryAfterSeconds,
        });
        let said = Said::read(&HeaderMap::new(), body.as_bytes());
        let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(1_791_327_600);
        hint(headers, &said, now)?.after().map(|d| d.as_millis())
    }

    const GOOGLE: &str = r#"{"error":{"message":"Please retry in 56.1s","details":[
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"56s"},
        {"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"quotaResetDelay":"1h2m"}}]}}"#;

    #[test]
    fn the_order() {
        assert_eq!(ms(Some(5), GOOGLE), Some(5_000));
        assert_eq!(ms(Some(0), GOOGLE), Some(56_000), "zero asks for nothing");
        assert_eq!(ms(None, GOOGLE), Some(56_000));
        assert_eq!(ms(None, &GOOGLE.replace("56s", "-3s")), Some(3_720_000));
        assert_eq!(ms(Some(0), "{}"), Some(0));
    }

    #[test]
    fn structured_delays() {
        let object = r#"{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay":{"seconds":"7","nanos":1}}]}}"#;
        assert_eq!(ms(None, object), Some(7_001));
    }

    #[test]
    fn seconds_in_a_body() {
        assert_eq!(
            ms(None, r#"{"status":522,"retry_after":120}"#),
            Some(120_000)
        );
        assert_eq!(ms(None, r#"{"retry_after":64.57}"#), Some(64_570));
        assert_eq!(ms(None, r#"{"error":{"retry_after":"3"}}"#), Some(3_000));
        assert_eq!(ms(None, r#"{"retry_after":-1}"#), None);
    }

    #[test]
    fn resets_inside_a_body() {
        let reset = |v: &str| {
            let body = format!(
                r#"{{"error":{{"metadata":{{"headers":{{"X-RateLimit-Reset":"{v}"}}}}}}}}"#
            );
            ms(None, &body)
        };
        assert_eq!(reset("1791331200000"), Some(3_600_000), "milliseconds");
        assert_eq!(reset("1791331200"), Some(3_600_000), "seconds");
        assert_eq!(reset("30"), Some(30_000), "from now");
        assert_eq!(reset("1691331200"), None, "past");
    }

    #[test]
    fn an_edge_may_forbid_another_try() {
        let said = Said::read(&HeaderMap::new(), br#"{"retryable":false,"retry_after":9}"#);
        let hint = hint(None, &said, || SystemTime::UNIX_EPOCH);
        assert_eq!(hint, Some(Hint::Never));
    }
}
