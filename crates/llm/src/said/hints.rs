//! What a body says about when to come back.
//!
//! It says so itself (google.rpc.RetryInfo, `quotaResetDelay`, then the words of a message), or
//! quotes somebody (`retry_after` of Cloudflare's problem JSON, the headers of a provider behind
//! OpenRouter). [`Rank`](tower_spillway_core::hint::Rank) puts both between the headers.

use std::time::Duration;

use http::StatusCode;
use tower_spillway_core::hint::{Hint, Reader, Signals, Source};

use super::Said;

/// Adds what a body says to what the head said.
pub(crate) fn add(head: Signals, said: &Said, reader: &Reader) -> Signals {
    let waits = &said.waits;
    let own = |wait: Option<Duration>, field| {
        wait.map(|wait| Hint::After {
            wait,
            source: Source::Body(field),
        })
    };
    let aside = |wait: Option<Duration>, field| {
        wait.map(|wait| Hint::After {
            wait,
            source: Source::BodyAside(field),
        })
    };
    // As if it had come with the status that it came with there.
    let quoted = reader.read(StatusCode::TOO_MANY_REQUESTS, &waits.quoted);
    let quoted = quoted.asked().and_then(Hint::after);
    head.or(own(waits.retry_info, "RetryInfo.retryDelay"))
        .or(own(waits.quota_reset, "ErrorInfo.quotaResetDelay"))
        .or(own(waits.message, "message"))
        .or(aside(quoted, "error.metadata.headers"))
        .or(aside(waits.retry_after, "retry_after"))
        .or(waits.forbidden.then_some(Hint::Never))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use tower_spillway_core::{clock::Wall, testing::wall::ManualWall};

    fn signals(retry_after: Option<&str>, body: &str) -> Signals {
        let now = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_791_327_600);
        let reader = Reader::new().wall_clock(Wall::new(ManualWall::at(now)));
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert("retry-after", value.parse().unwrap());
        }
        let head = reader.read(StatusCode::TOO_MANY_REQUESTS, &headers);
        add(head, &Said::read(&headers, body.as_bytes()), &reader)
    }

    fn ms(retry_after: Option<&str>, body: &str) -> Option<u128> {
        let hint = signals(retry_after, body).hint()?;
        hint.after().map(|d| d.as_millis())
    }

    const GOOGLE: &str = r#"{"error":{"message":"Please retry in 56.1s","details":[
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"56s"},
        {"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"quotaResetDelay":"1h2m"}}]}}"#;

    #[test]
    fn the_order() {
        assert_eq!(ms(Some("5"), GOOGLE), Some(5_000));
        assert_eq!(ms(Some("0"), GOOGLE), Some(56_000), "zero asks for nothing");
        assert_eq!(ms(None, GOOGLE), Some(56_000));
        assert_eq!(ms(None, &GOOGLE.replace("56s", "-3s")), Some(3_720_000));
        assert_eq!(ms(Some("0"), "{}"), Some(0));
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
    fn headers_inside_a_body() {
        let reset = |v: &str| {
            let headers = format!(r#"{{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"{v}"}}"#);
            ms(
                None,
                &format!(r#"{{"error":{{"metadata":{{"headers":{headers}}}}}}}"#),
            )
        };
        assert_eq!(reset("1791331200000"), Some(3_600_000), "milliseconds");
        assert_eq!(reset("1791331200"), Some(3_600_000), "seconds");
        assert_eq!(reset("30"), Some(30_000), "from now");
        assert_eq!(reset("1691331200"), None, "past");
        let odd = r#"{"error":{"metadata":{"headers":{"no name":"1","Retry-After":9,"x":[]}}}}"#;
        assert_eq!(ms(None, odd), Some(9_000));
    }

    #[test]
    fn an_edge_may_forbid_another_try() {
        let signals = signals(None, r#"{"retryable":false,"retry_after":9}"#);
        assert_eq!(signals.hint(), Some(Hint::Never));
    }
}
