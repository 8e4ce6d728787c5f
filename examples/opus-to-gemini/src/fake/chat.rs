//! The OpenAI-shaped chat that both vendors serve.

use serde_json::{Map, Value, json};

/// What a checked request asks for.
pub(super) struct Chat {
    pub(super) model: String,
    pub(super) answers: u64,
    /// The length of the answer, if it is set.
    words: Option<usize>,
    stream: bool,
    tells_usage: bool,
    /// The tool that it calls in its first turn, if it is offered some.
    tool: Option<String>,
    prompt: String,
    prompt_chars: usize,
}

/// Roles of OpenAI's chat messages.
const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// What is wrong with a body.
pub(super) enum Wrong {
    /// It is not a JSON object.
    NotJson,
    /// A field is missing or out of its bounds.
    Field {
        name: &'static str,
        bound: &'static str,
    },
}

pub(super) fn parse(body: &[u8]) -> Result<Map<String, Value>, Wrong> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Wrong::NotJson),
    }
}

impl Chat {
    /// The fields that both vendors read alike.
    pub(super) fn read(fields: &Map<String, Value>) -> Result<Self, Wrong> {
        let wrong = |name, bound| Wrong::Field { name, bound };
        let model = match fields.get("model").and_then(Value::as_str) {
            Some(model) if !model.is_empty() => model.to_owned(),
            _ => return Err(wrong("model", "Field required")),
        };
        let messages = match fields.get("messages").and_then(Value::as_array) {
            Some(messages) if !messages.is_empty() => messages,
            _ => return Err(wrong("messages", "at least one message is required")),
        };
        let known = |m: &Value| {
            m.get("role")
                .and_then(Value::as_str)
                .is_some_and(|r| ROLES.contains(&r))
        };
        if !messages.iter().all(known) {
            return Err(wrong("messages", "each message needs a known role"));
        }
        for name in ["max_tokens", "max_completion_tokens"] {
            let given = fields.get(name).filter(|v| !v.is_null());
            if given.is_some_and(|v| v.as_u64().is_none_or(|n| n == 0)) {
                return Err(wrong(name, "must be greater than or equal to 1"));
            }
        }
        let answers = match fields.get("n").filter(|v| !v.is_null()) {
            None => 1,
            Some(n) => n.as_u64().ok_or(wrong("n", "must be a whole number"))?,
        };
        let prompt = messages.iter().rev().find(|m| role_of(m) == Some("user"));
        Ok(Self {
            model,
            answers,
            words: None,
            stream: fields
                .get("stream")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            tells_usage: fields
                .get("stream_options")
                .and_then(|options| options.get("include_usage"))
                .and_then(Value::as_bool)
                .unwrap_or(false),
            tool: tool_of(fields, messages),
            prompt: prompt.map(text_of).unwrap_or_default(),
            prompt_chars: messages.iter().map(|m| text_of(m).chars().count()).sum(),
        })
    }

    /// The same, with an answer of so many words.
    pub(super) fn of_words(mut self, words: Option<usize>) -> Self {
        self.words = words;
        self
    }

    /// Whether it asks for a stream.
    pub(super) fn streams(&self) -> bool {
        self.stream
    }

    /// What the model says: which one it is, and that it heard; or as many words as are set.
    fn says(&self) -> String {
        if let Some(words) = self.words {
            let words = (1..=words).map(|n| format!("{}:{n}", self.model));
            return words.collect::<Vec<_>>().join(" ");
        }
        let heard: String = self.prompt.chars().take(60).collect();
        let more = if self.prompt.chars().count() > 60 {
            "…"
        } else {
            ""
        };
        format!("This is a fake {}. You said: {heard}{more}", self.model)
    }

    /// What it calls a tool with: what it was asked.
    fn arguments(&self) -> String {
        json!({"said": self.prompt}).to_string()
    }

    /// `chat.completion`, or the chunks of a stream that say the same.
    pub(super) fn complete(&self, id: &str) -> Result<Value, Vec<Value>> {
        let says = self.says();
        if self.stream {
            return Err(self.chunks(id, &says));
        }
        let (message, end) = match &self.tool {
            Some(tool) => {
                let call = json!({
                    "id": "call_fake",
                    "type": "function",
                    "function": {"name": tool, "arguments": self.arguments()},
                });
                let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
                (message, "tool_calls")
            }
            None => (json!({"role": "assistant", "content": says}), "stop"),
        };
        let choices: Vec<Value> = (0..self.answers)
            .map(|index| json!({"index": index, "message": message, "finish_reason": end}))
            .collect();
        Ok(json!({
            "id": id,
            "object": "chat.completion",
            "created": CREATED,
            "model": self.model,
            "choices": choices,
            "usage": self.usage(),
        }))
    }

    /// Tokens of the prompt.
    pub(super) fn asked(&self) -> u64 {
        tokens(self.prompt_chars)
    }

    /// Tokens of the answer.
    pub(super) fn told(&self) -> u64 {
        tokens(self.says().chars().count())
    }

    fn usage(&self) -> Value {
        let (asked, told) = (self.asked(), self.told());
        json!({
            "prompt_tokens": asked,
            "completion_tokens": told,
            "total_tokens": asked + told,
        })
    }

    fn chunks(&self, id: &str, says: &str) -> Vec<Value> {
        let chunk = |delta: Value, end: Value| {
            json!({
                "id": id,
                "object": "chat.completion.chunk",
                "created": CREATED,
                "model": self.model,
                "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
            })
        };
        let mut chunks = vec![chunk(
            json!({"role": "assistant", "content": ""}),
            Value::Null,
        )];
        let end = match &self.tool {
            Some(tool) => {
                let call = |call: Value| chunk(json!({"tool_calls": [call]}), Value::Null);
                chunks.push(call(json!({
                    "index": 0,
                    "id": "call_fake",
                    "type": "function",
                    "function": {"name": tool, "arguments": ""},
                })));
                let arguments = self.arguments();
                let pieces = arguments.split_inclusive(' ');
                chunks.extend(
                    pieces.map(|piece| call(json!({"index": 0, "function": {"arguments": piece}}))),
                );
                "tool_calls"
            }
            None => {
                let words = says.split_inclusive(' ');
                chunks.extend(words.map(|word| chunk(json!({"content": word}), Value::Null)));
                "stop"
            }
        };
        chunks.push(chunk(json!({}), json!(end)));
        if self.tells_usage {
            chunks.push(json!({
                "id": id,
                "object": "chat.completion.chunk",
                "created": CREATED,
                "model": self.model,
                "choices": [],
                "usage": self.usage(),
            }));
        }
        chunks
    }
}

/// Any fixed time will do: nothing reads it.
const CREATED: u64 = 1_767_225_600;

/// Four characters a token, as a rule of thumb.
fn tokens(chars: usize) -> u64 {
    u64::try_from(chars / 4 + 1).unwrap_or(u64::MAX)
}

/// The first tool on offer, in the first turn only.
fn tool_of(fields: &Map<String, Value>, messages: &[Value]) -> Option<String> {
    let answered = messages.iter().any(|m| role_of(m) == Some("assistant"));
    let name = fields.get("tools")?.pointer("/0/function/name")?.as_str()?;
    (!answered).then(|| name.to_owned())
}

pub(super) fn role_of(message: &Value) -> Option<&str> {
    message.get("role").and_then(Value::as_str)
}

/// The text of a message: a string, or the text parts of a list.
fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    }
}
