//! What one event of a stream says.
//!
//! Read by its shape, not by what the target was said to be: a gateway may answer in either dialect.

mod dialects;
mod error;
mod node;

pub(super) use self::{error::InBand, node::Node};
use super::{dialect::Dialect, usage::Counts};

/// What one event says. Most say nothing but that the stream lives.
#[derive(Debug, Default)]
pub(super) struct Event {
    /// Whose event it is, where the shape shows it.
    pub(super) dialect: Option<Dialect>,
    /// Something of the answer: text, a tool call, reasoning, a refusal.
    pub(super) content: bool,
    /// The answers (by index) that it belongs to, as bits, and those of them that are finished.
    pub(super) answers: u128,
    pub(super) finished: u128,
    /// Nothing follows.
    pub(super) done: bool,
    pub(super) error: Option<InBand>,
    pub(super) usage: Option<Counts>,
    /// Where events are numbered.
    pub(super) number: Option<u64>,
}

/// The event could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

const DONE: &[u8] = b"[DONE]";

const ALIVE: [&[u8]; 3] = [b"ping", b"heartbeat", b"keepalive"];

impl Event {
    /// Reads the name and data of an event.
    pub(super) fn read(name: &[u8], data: &[u8]) -> Result<Self, Unreadable> {
        let data = data.trim_ascii();
        if data == DONE {
            return Ok(Self {
                dialect: Some(Dialect::Chat),
                done: true,
                ..Self::default()
            });
        }
        if data.is_empty() {
            return Ok(Self::default());
        }
        match serde_json::from_slice(data) {
            // Google wraps errors in an array of one.
            Ok(Node::Array(items)) => Ok(match items.as_slice() {
                [one] => Self::of(name, one),
                _ => Self::default(),
            }),
            Ok(node) => Ok(Self::of(name, &node)),
            Err(_) if ALIVE.contains(&name) => Ok(Self::default()),
            Err(_) => Err(Unreadable),
        }
    }

    fn of(name: &[u8], node: &Node<'_>) -> Self {
        let Some(fields) = node.as_object() else {
            return Self::default();
        };
        let mut event = Self {
            number: fields.get("sequence_number").and_then(Node::as_u64),
            usage: Counts::of(node),
            error: error::of(name, fields),
            ..Self::default()
        };
        // Code Assist puts Gemini's event inside.
        let inside = match fields.get("response") {
            Some(Node::Object(inside)) if inside.contains_key("candidates") => inside,
            _ => fields,
        };
        if let Some(choices) = fields.get("choices").and_then(Node::as_array) {
            event.dialect = Some(Dialect::Chat);
            choices.iter().for_each(|choice| event.choice(choice));
        } else if let Some(kind) = fields.get("type").and_then(Node::as_str) {
            match kind.strip_prefix("response.") {
                Some(kind) => event.responses(kind, fields),
                None => event.anthropic(kind, fields),
            }
        } else if inside.contains_key("candidates") || inside.contains_key("promptFeedback") {
            event.gemini(inside);
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read(data: &str) -> Event {
        Event::read(b"", data.as_bytes()).unwrap()
    }

    #[test]
    fn content() {
        for content in [
            r#"{"choices":[{"delta":{"content":"x"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{}]}}]}"#,
            r#"{"choices":[{"delta":{"function_call":{"name":"f"}}}]}"#,
            r#"{"choices":[{"delta":{"refusal":"no"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"x"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"x"}}]}"#,
            r#"{"choices":[{"delta":{"a_kind_to_come":{"x":1}}}]}"#,
            r#"{"choices":[{"text":"x"}]}"#,
            r#"{"choices":[{"delta":{}},{"index":1,"delta":{"content":"x"}}]}"#,
            r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}"#,
            r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#,
            r#"{"response":{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}}"#,
            r#"{"type":"response.output_text.delta","delta":"x"}"#,
            r#"{"type":"response.refusal.delta","delta":"x"}"#,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}"#,
            r#"{"type":"response.output_text.done","text":"x"}"#,
        ] {
            assert!(read(content).content, "{content}");
        }
    }

    #[test]
    fn no_content() {
        for none in [
            r#"{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":null,"tool_calls":[],"refusal":null}}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[],"prompt_filter_results":[{}]}"#,
            r#"{"type":"message_start","message":{"content":[]}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"an_event_to_come","text":"x"}"#,
            r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_start","content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":""}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":""}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"x"}]}}]}"#,
            r#"{"type":"response.created","response":{"output":[]}}"#,
            r#"{"type":"response.queued"}"#,
            r#"{"type":"response.in_progress"}"#,
            r#"{"type":"response.output_item.added","item":{"type":"message","content":[]}}"#,
            r#"{"type":"response.content_part.added","part":{"type":"output_text","text":""}}"#,
            r#"{"type":"response.output_text.delta","delta":""}"#,
            "",
            "null",
            "7",
            "[]",
        ] {
            let event = read(none);
            assert!(!event.content && event.error.is_none(), "{none}");
            assert!(!event.done && event.finished == 0, "{none}");
        }
    }

    #[test]
    fn ends() {
        for end in [
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"candidates":[{"finishReason":"STOP"}]}"#,
            r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#,
            r#"{"type":"response.completed"}"#,
            r#"{"type":"response.incomplete"}"#,
        ] {
            let event = read(end);
            assert_eq!(event.finished, event.answers, "{end}");
            assert_ne!(event.finished, 0, "{end}");
        }
        for done in ["[DONE]", " [DONE] ", r#"{"type":"message_stop"}"#] {
            assert!(read(done).done, "{done}");
        }
        let second = read(r#"{"choices":[{"index":1,"finish_reason":"stop"}]}"#);
        assert_eq!((second.answers, second.finished), (2, 2));
    }

    #[test]
    fn errors() {
        let null = read(r#"{"error":null,"choices":[{"delta":{"content":"x"}}]}"#);
        assert!(null.error.is_none() && null.content);
        for (name, data, body, visible) in [
            (
                "",
                r#"{"error":{"code":429}}"#,
                r#"{"error":{"code":429}}"#,
                Some(Dialect::Chat),
            ),
            (
                "error",
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
                Some(Dialect::Anthropic),
            ),
            (
                "error",
                r#"{"type":"invalid_request_error"}"#,
                r#"{"error":{"type":"invalid_request_error"}}"#,
                Some(Dialect::Anthropic),
            ),
            (
                "error",
                r#"{"type":"error","code":"x","message":"m","sequence_number":3}"#,
                r#"{"error":{"code":"x","message":"m"}}"#,
                Some(Dialect::Responses),
            ),
            (
                "response.failed",
                r#"{"type":"response.failed","response":{"error":{"code":"x"}}}"#,
                r#"{"error":{"code":"x"}}"#,
                Some(Dialect::Responses),
            ),
            (
                "",
                r#"{"status_code":400,":exception-type":"internalServerException"}"#,
                r#"{"error":{"code":"internalServerException"}}"#,
                None,
            ),
            (
                "throttlingException",
                r#"{"message":"m"}"#,
                r#"{"error":{"code":"throttlingException","message":"m"}}"#,
                None,
            ),
        ] {
            let event = Event::read(name.as_bytes(), data.as_bytes()).unwrap();
            let error = event.error.expect(data);
            assert_eq!(error.body, serde_json::from_str::<Value>(body).unwrap());
            if let Some(visible) = visible {
                assert!(error.visible_in.contains(&visible), "{data}");
            } else {
                assert!(error.visible_in.is_empty(), "{data}");
            }
        }
        let finish = read(r#"{"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#);
        assert!(finish.error.unwrap().visible_in.is_empty());
        assert!(InBand::stray(b"[{\"error\":{\"code\":503}}]\n").is_some());
        assert!(InBand::stray(b"{\"error\":null}").is_none());
        assert!(InBand::stray(b"error").is_none());
    }

    #[test]
    fn what_is_no_json_is_unreadable() {
        for bad in ["{not json", "hello", "\u{1}"] {
            assert_eq!(
                Event::read(b"", bad.as_bytes()).unwrap_err(),
                Unreadable,
                "{bad}"
            );
        }
        let deep = "[".repeat(100_000);
        assert!(Event::read(b"", deep.as_bytes()).is_err());
        assert!(Event::read(b"", b"{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}").is_err());
        assert!(Event::read(b"ping", b"hello").is_ok());
    }
}
