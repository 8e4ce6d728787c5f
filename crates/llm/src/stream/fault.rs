//! What an error inside a stream means.
//!
//! It is judged by the vendor's rules as the body of an ordinary answer of its status would be. The
//! status is the one that it gives (`error.code`), else the one that its codes and types are names
//! of. An error that names nothing may pass. One whose name is not known is laid at nobody's door:
//! neither is the target counted as failed, since another caller's next request may well be served,
//! nor is the request taken for wrong everywhere.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tower_spillway_core::{Class, Reading, hint};

use crate::{Answer, Rules, Ruling, Said};

/// An error inside a stream, as an ordinary answer.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    pub(super) reading: Reading,
    /// What the rules made of it.
    pub(super) ruling: Ruling,
}

/// What a name that no table has must contain to be taken for a failure of the server.
const SERVER_FAULTS: [&str; 10] = [
    "api_error",
    "capacity",
    "disconnect",
    "internal",
    "overload",
    "server_error",
    "servererror",
    "timeout",
    "unavailable",
    "upstream",
];

/// What its status is known by.
#[derive(Clone, Copy)]
enum Known {
    Yes(u16),
    /// Its name is not known.
    No,
}

fn status(said: &Said, error: &Value) -> Known {
    const MAY_PASS: u16 = 500;
    if said.number().is_some() || said.name().is_some() {
        return Known::Yes(said.status());
    }
    let mut names = names(error).peekable();
    let server = |name: &str| {
        let name = name.to_ascii_lowercase();
        !name.starts_with("invalid") && SERVER_FAULTS.iter().any(|word| name.contains(word))
    };
    match names.peek().is_none() || names.any(server) {
        true => Known::Yes(MAY_PASS),
        false => Known::No,
    }
}

/// What an error calls itself.
fn names(error: &Value) -> impl Iterator<Item = &str> {
    let error = match error.get("error") {
        Some(inside @ Value::Object(_)) => inside,
        _ => error,
    };
    let names = ["code", "status", "type"].map(|name| error.get(name)?.as_str());
    names.into_iter().flatten().filter(|name| !name.is_empty())
}

pub(super) fn judge(
    rules: &Rules,
    hints: &hint::Reader,
    headers: &HeaderMap,
    error: &Value,
) -> Verdict {
    const CALLER: u16 = 400;
    let body = Bytes::from(error.to_string());
    let none = HeaderMap::new();
    let known = status(&Said::read(&none, &body), error);
    let judged = match known {
        Known::Yes(status) => status,
        Known::No => CALLER,
    };
    let ruling = rules.judge(&Answer::with_headers(judged, headers, &body, hints));
    let reading = ruling.reading().clone();
    let (status, reading) = match (known, reading.class()) {
        (Known::Yes(status), _) => (status, reading),
        // By its status alone, which is a guess: nobody's fault. Its name is not repeated: it is
        // whatever the server put there.
        (Known::No, Class::CallerFault) if reading.reason().is_none_or(|r| r == "rejected") => {
            let neutral = Reading::new(Class::NotHere).with_reason("unknown_error");
            (CALLER, neutral.from_vendor())
        }
        (Known::No, Class::CallerFault | Class::NotHere) => (CALLER, reading),
        // A row of the vendor's knows it after all.
        (Known::No, Class::Throttled) => (429, reading),
        (Known::No, _) => (502, reading),
    };
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    Verdict {
        status: code,
        body,
        ruling,
        reading: reading.with_status(Some(code.as_u16())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vendor;

    fn judged(vendor: Vendor, error: &str) -> Verdict {
        let error = serde_json::from_str(error).unwrap();
        let rules = Rules::of(vendor);
        judge(&rules, &hint::Reader::new(), &HeaderMap::new(), &error)
    }

    #[test]
    fn what_errors_mean() {
        use Class::{CallerFault, NotHere, TargetDown, Throttled, Transient};
        for (error, status, class) in [
            (r#"{"error":{"type":"overloaded_error"}}"#, 529, Transient),
            (r#"{"error":{"type":"rate_limit_error"}}"#, 429, Throttled),
            (r#"{"error":{"code":429}}"#, 429, Throttled),
            (
                r#"{"error":{"code":"insufficient_quota"}}"#,
                429,
                TargetDown,
            ),
            (
                r#"{"error":{"type":"invalid_request_error"}}"#,
                400,
                CallerFault,
            ),
            (
                r#"{"error":{"message":"something went wrong"}}"#,
                500,
                Transient,
            ),
            (
                r#"{"error":{"code":"gateway_stream_timeout"}}"#,
                500,
                Transient,
            ),
            (
                r#"{"error":{"code":"upstream_disconnected"}}"#,
                500,
                Transient,
            ),
            (
                r#"{"error":{"type":"server_error","code":"odd"}}"#,
                500,
                Transient,
            ),
            (
                r#"{"error":{"code":"internalServerException"}}"#,
                500,
                Transient,
            ),
            (
                r#"{"error":{"code":"modelStreamErrorException"}}"#,
                502,
                Transient,
            ),
            (r#"{"error":{"type":"an_error_to_come"}}"#, 400, NotHere),
            (
                r#"{"error":{"type":"an_error_to_come","message":"Your credit balance is too low"}}"#,
                502,
                TargetDown,
            ),
        ] {
            let verdict = judged(Vendor::Gateway, error);
            assert_eq!(verdict.status, status, "{error}");
            assert_eq!(verdict.reading.class(), class, "{error}");
            assert_eq!(verdict.reading.status(), Some(status), "{error}");
        }
        let unknown = judged(Vendor::OpenAi, r#"{"error":{"type":"an_error_to_come"}}"#);
        assert_eq!(unknown.reading.reason(), Some("unknown_error"));
    }
}
