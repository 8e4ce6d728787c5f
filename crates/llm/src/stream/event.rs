//! What one event of a stream says.
//!
//! Read by its shape, not by what the target was said to be: a gateway may answer in either dialect.

use serde_json::{Map, Value};

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

/// An error in an event.
#[derive(Debug, PartialEq)]
pub(super) struct InBand {
    /// As the body of an ordinary answer.
    pub(super) body: Value,
    /// The dialects whose callers see it as an error, were it given to them.
    pub(super) visible_in: &'static [Dialect],
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
            Ok(Value::Array(mut items)) if items.len() == 1 => {
                Ok(Self::of(name, &items.pop().unwrap_or_default()))
            }
            Ok(value) => Ok(Self::of(name, &value)),
            Err(_) if ALIVE.contains(&name) => Ok(Self::default()),
            Err(_) => Err(Unreadable),
        }
    }

    /// An error that stands between events, as bare JSON.
    pub(super) fn stray_error(text: &[u8]) -> Option<InBand> {
        let value = match serde_json::from_slice(text).ok()? {
            Value::Array(mut items) if items.len() == 1 => items.pop()?,
            value => value,
        };
        let error = value.get("error").is_some_and(truthy);
        error.then_some(InBand {
            body: value,
            visible_in: &[],
        })
    }

    fn of(name: &[u8], value: &Value) -> Self {
        let Some(fields) = value.as_object() else {
            return Self::default();
        };
        let mut event = Self {
            number: fields.get("sequence_number").and_then(Value::as_u64),
            usage: Counts::of(value),
            error: error_in(name, fields),
            ..Self::default()
        };
        // Code Assist puts Gemini's event inside.
        let inside = match fields.get("response") {
            Some(Value::Object(inside)) if inside.contains_key("candidates") => inside,
            _ => fields,
        };
        if let Some(choices) = fields.get("choices").and_then(Value::as_array) {
            event.dialect = Some(Dialect::Chat);
            choices.iter().for_each(|choice| event.choice(choice));
        } else if let Some(kind) = fields.get("type").and_then(Value::as_str) {
            match kind.strip_prefix("response.") {
                Some(kind) => event.responses(kind, fields),
                None => event.anthropic(kind, fields),
            }
        } else if inside.contains_key("candidates") || inside.contains_key("promptFeedback") {
            event.gemini(inside);
        }
        event
    }

    fn choice(&mut self, choice: &Value) {
        let answer = bit(choice);
        self.answers |= answer;
        let reason = choice.get("finish_reason").and_then(Value::as_str);
        match reason {
            None | Some("") => {}
            Some("error") => {
                // Told beside the choices where the vendor has more to say.
                self.error.get_or_insert_with(|| InBand {
                    body: serde_json::json!({"error": {"type": "server_error",
                        "message": "the stream finished with an error"}}),
                    visible_in: &[],
                });
            }
            Some(_) => self.finished |= answer,
        }
        let parts = ["delta", "message"].map(|part| choice.get(part));
        let said = parts.into_iter().flatten().any(says_more_than_a_role);
        self.content |= said || choice.get("text").is_some_and(is_something);
    }

    fn anthropic(&mut self, kind: &str, fields: &Map<String, Value>) {
        let delta = fields.get("delta");
        match kind {
            "message_start" => {}
            "content_block_start" => {
                self.content = fields.get("content_block").is_some_and(is_block);
            }
            "content_block_delta" => self.content = delta.is_some_and(says_more_than_a_role),
            "message_delta" => {
                let reason = delta.and_then(|d| d.get("stop_reason"));
                if reason.is_some_and(is_something) {
                    self.finished = 1;
                }
            }
            "message_stop" => self.done = true,
            "content_block_stop" => {}
            // `ping`, errors, and what is not known yet: to be tolerated.
            _ => return,
        }
        self.answers = 1;
        self.dialect = Some(Dialect::Anthropic);
    }

    fn gemini(&mut self, fields: &Map<String, Value>) {
        self.dialect = Some(Dialect::Gemini);
        let candidates = fields.get("candidates").and_then(Value::as_array);
        for candidate in candidates.into_iter().flatten() {
            let answer = bit(candidate);
            self.answers |= answer;
            match candidate.get("finishReason").and_then(Value::as_str) {
                None | Some("" | "FINISH_REASON_UNSPECIFIED") => {}
                Some(_) => self.finished |= answer,
            }
            let parts = candidate.get("content").and_then(|c| c.get("parts"));
            let mut parts = parts.and_then(Value::as_array).into_iter().flatten();
            self.content |= parts.any(is_part);
        }
        // The prompt was blocked: that is all there will be.
        let blocked = fields
            .get("promptFeedback")
            .and_then(|f| f.get("blockReason"));
        if blocked.is_some_and(is_something) {
            self.answers |= 1;
            self.finished |= 1;
        }
    }

    fn responses(&mut self, kind: &str, fields: &Map<String, Value>) {
        self.dialect = Some(Dialect::Responses);
        self.answers = 1;
        match kind {
            "completed" | "incomplete" => {
                self.finished = 1;
                self.done = true;
            }
            "output_item.added" | "output_item.done" => {
                self.content = fields.get("item").is_some_and(is_item);
            }
            "content_part.added" => {
                self.content = fields.get("part").is_some_and(says_more_than_a_role);
            }
            kind if kind.ends_with(".delta") => {
                self.content = fields.get("delta").is_some_and(is_something);
            }
            kind if kind.ends_with("text.done") || kind.ends_with("arguments.done") => {
                let said = ["text", "arguments"].map(|name| fields.get(name));
                self.content = said.into_iter().flatten().any(is_something);
            }
            // `created`, `queued`, `in_progress`, and how a built-in tool is getting on.
            _ => {}
        }
    }
}

fn error_in(name: &[u8], fields: &Map<String, Value>) -> Option<InBand> {
    const VISIBLE_FIELD: &[Dialect] = &[Dialect::Chat, Dialect::Gemini];
    const VISIBLE_NAMED: &[Dialect] = &[Dialect::Chat, Dialect::Gemini, Dialect::Anthropic];
    let kind = fields.get("type").and_then(Value::as_str);
    let named = name == b"error";
    if let Some(error) = fields.get("error").filter(|e| truthy(e)) {
        // Responses flatten theirs; the others nest it.
        let responses = kind == Some("error") && !error.is_object();
        return Some(InBand {
            body: Value::Object(fields.clone()),
            visible_in: match (named, responses) {
                (_, true) => &[Dialect::Responses],
                (true, _) => VISIBLE_NAMED,
                (false, _) => VISIBLE_FIELD,
            },
        });
    }
    if kind == Some("response.failed") {
        let error = fields.get("response").and_then(|r| r.get("error"));
        let error = error.filter(|e| truthy(e)).cloned();
        return Some(InBand {
            body: wrap(error.unwrap_or_else(|| Value::Object(Map::new()))),
            visible_in: &[Dialect::Responses],
        });
    }
    // Bedrock names an exception in the frame's headers.
    let exception = match fields.get(":exception-type").and_then(Value::as_str) {
        Some(exception) => Some(exception),
        None => std::str::from_utf8(name)
            .ok()
            .filter(|name| name.to_ascii_lowercase().ends_with("exception")),
    };
    if let Some(exception) = exception {
        let mut error = Map::new();
        error.insert("code".into(), exception.into());
        if let Some(message) = fields.get("message") {
            error.insert("message".into(), message.clone());
        }
        return Some(InBand {
            body: wrap(Value::Object(error)),
            visible_in: &[],
        });
    }
    if named || kind == Some("error") {
        let mut error = fields.clone();
        if kind == Some("error") {
            error.shift_remove("type");
            error.shift_remove("sequence_number");
        }
        return Some(InBand {
            body: wrap(Value::Object(error)),
            visible_in: match kind == Some("error") {
                true => &[Dialect::Responses, Dialect::Anthropic],
                false => &[Dialect::Anthropic],
            },
        });
    }
    None
}

fn wrap(error: Value) -> Value {
    let mut body = Map::new();
    body.insert("error".into(), error);
    Value::Object(body)
}

/// The bit of an answer's index. More answers than bits share the last one.
fn bit(answer: &Value) -> u128 {
    let index = answer.get("index").and_then(Value::as_u64).unwrap_or(0);
    1u128 << index.min(127)
}

/// What a script language takes for true: `"error": null` is none.
fn truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(n) => n.as_f64() != Some(0.0),
        _ => true,
    }
}

/// A text, list or object that is not empty.
fn is_something(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

/// Whether there is anything in it but whose it is. Kinds of content that are not known yet are
/// content.
fn says_more_than_a_role(delta: &Value) -> bool {
    const LABELS: [&str; 4] = ["role", "type", "id", "index"];
    let fields = delta.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| !LABELS.contains(&name.as_str()))
        .any(|(_, value)| is_something(value))
}

/// A block that begins: text begins empty, a tool's name is content.
fn is_block(block: &Value) -> bool {
    match block.get("type").and_then(Value::as_str) {
        Some("text" | "thinking") => says_more_than_a_role(block),
        _ => true,
    }
}

fn is_part(part: &Value) -> bool {
    let fields = part.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| *name != "thoughtSignature")
        .any(|(_, value)| is_something(value))
}

/// An item of a response: a message or reasoning begins empty, a call is content.
fn is_item(item: &Value) -> bool {
    match item.get("type").and_then(Value::as_str) {
        Some("message" | "reasoning") => ["content", "summary"]
            .iter()
            .filter_map(|name| item.get(name))
            .any(is_something),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
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
        assert!(Event::stray_error(b"[{\"error\":{\"code\":503}}]\n").is_some());
        assert!(Event::stray_error(b"{\"error\":null}").is_none());
        assert!(Event::stray_error(b"error").is_none());
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
