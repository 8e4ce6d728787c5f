//! The APIs whose streams are understood, and how each tells its caller of an error.

use bytes::Bytes;
use serde_json::{Value, json};

use super::error::Break;
use crate::Vendor;

/// The API whose events a stream is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI's chat completions, and what is compatible with them.
    Chat,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent?alt=sse`.
    Gemini,
    /// OpenAI's responses.
    Responses,
}

impl Dialect {
    /// What a vendor's streams are made of, as far as the vendor decides.
    pub fn of(vendor: Vendor) -> Self {
        match vendor {
            Vendor::Anthropic => Self::Anthropic,
            Vendor::Gemini | Vendor::Vertex => Self::Gemini,
            _ => Self::Chat,
        }
    }

    /// The last event of a stream that broke. `after` is the number of the last event, where events
    /// are numbered.
    pub(super) fn error_event(self, what: &Told<'_>, after: Option<u64>) -> Bytes {
        let message = what.message;
        match self {
            Self::Chat => {
                let error = json!({
                    "message": message,
                    "type": if what.late { "timeout" } else { "server_error" },
                    "param": null,
                    "code": what.code,
                });
                event("", &json!({ "error": error }))
            }
            Self::Anthropic => {
                let kind = if what.late {
                    "timeout_error"
                } else {
                    "api_error"
                };
                let error = json!({ "type": kind, "message": message });
                event(
                    "event: error\n",
                    &json!({ "type": "error", "error": error }),
                )
            }
            Self::Gemini => {
                let (code, status) = match what.late {
                    true => (504, "DEADLINE_EXCEEDED"),
                    false => (503, "UNAVAILABLE"),
                };
                let error = json!({ "code": code, "message": message, "status": status });
                event("", &json!({ "error": error }))
            }
            Self::Responses => {
                let event_of = json!({
                    "type": "error",
                    "code": what.code,
                    "message": message,
                    "param": null,
                    "sequence_number": after.map_or(0, |n| n.saturating_add(1)),
                });
                event("event: error\n", &event_of)
            }
        }
    }
}

fn event(name: &str, data: &Value) -> Bytes {
    format!("{name}data: {data}\n\n").into()
}

/// What a caller is told of a break.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'t> {
    pub(super) code: &'t str,
    pub(super) message: &'t str,
    /// A time limit ran out.
    pub(super) late: bool,
}

impl<'t> Told<'t> {
    pub(super) fn of(why: Break) -> Self {
        Self {
            code: why.as_str(),
            message: why.message(),
            late: why.limit().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn said(dialect: Dialect, why: Break, after: Option<u64>) -> String {
        let event = dialect.error_event(&Told::of(why), after);
        String::from_utf8(event.to_vec()).unwrap()
    }

    #[test]
    fn each_dialect_has_its_own_event() {
        let message = Break::EndedEarly.message();
        assert_eq!(
            said(Dialect::Chat, Break::EndedEarly, None),
            format!(
                "data: {{\"error\":{{\"message\":\"{message}\",\"type\":\"server_error\",\
                 \"param\":null,\"code\":\"stream_ended_early\"}}}}\n\n"
            )
        );
        assert_eq!(
            said(Dialect::Anthropic, Break::EndedEarly, None),
            format!(
                "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\
                 \"message\":\"{message}\"}}}}\n\n"
            )
        );
        assert_eq!(
            said(Dialect::Gemini, Break::EndedEarly, None),
            format!(
                "data: {{\"error\":{{\"code\":503,\"message\":\"{message}\",\
                 \"status\":\"UNAVAILABLE\"}}}}\n\n"
            )
        );
        assert_eq!(
            said(Dialect::Responses, Break::EndedEarly, Some(6)),
            format!(
                "event: error\ndata: {{\"type\":\"error\",\"code\":\"stream_ended_early\",\
                 \"message\":\"{message}\",\"param\":null,\"sequence_number\":7}}\n\n"
            )
        );
        let late = Break::Idle(Duration::from_secs(1));
        assert!(said(Dialect::Anthropic, late, None).contains("timeout_error"));
        assert!(said(Dialect::Gemini, late, None).contains("DEADLINE_EXCEEDED"));
    }
}
