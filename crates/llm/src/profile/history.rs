//! What another vendor left in a conversation.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value, json, value::RawValue};

use super::fields::Name;

type Message = Map<String, Value>;

/// Fields of messages that hold thoughts.
const THOUGHTS: [&str; 6] = [
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
    "signature",
];

/// What else of an assistant's message another vendor may have written.
const OTHERS: [&str; 3] = ["extra_content", "function_call", "tool_calls"];

/// Whether there may be something to rewrite. Most conversations are read no further: nobody else
/// has spoken but the caller, or in plain text only.
pub(super) fn may_hold_others(messages: &RawValue, prefill: bool) -> bool {
    let Ok(turns) = serde_json::from_str::<Vec<Turn>>(messages.get()) else {
        return messages.get().starts_with('[');
    };
    let last = turns.last().is_some_and(|turn| turn.assistants);
    (last && !prefill) || turns.iter().any(|turn| turn.assistants && !turn.plain)
}

/// A message, as far as it tells whether it must be read.
struct Turn {
    assistants: bool,
    plain: bool,
}

impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: Deserializer<'de>>(message: D) -> Result<Self, D::Error> {
        message.deserialize_map(ReadTurn)
    }
}

struct ReadTurn;

impl<'de> Visitor<'de> for ReadTurn {
    type Value = Turn;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut message: A) -> Result<Turn, A::Error> {
        let mut turn = Turn {
            assistants: false,
            plain: true,
        };
        while let Some(Name(name)) = message.next_key()? {
            if name == "role" {
                turn.assistants = message.next_value::<Name<'_>>()?.0 == "assistant";
            } else if name == "content" {
                let content: &RawValue = message.next_value()?;
                turn.plain &= !content.get().starts_with('[');
            } else {
                turn.plain &= !THOUGHTS.iter().chain(&OTHERS).any(|other| *other == name);
                message.next_value::<IgnoredAny>()?;
            }
        }
        Ok(turn)
    }
}

fn role(message: &Message) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or("")
}

fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or("")
}

/// Adds a user's turn after the assistant's own words.
pub(super) fn end_with_user(messages: &mut Vec<Value>) {
    let last = messages.last().and_then(Value::as_object);
    if last.is_some_and(|message| role(message) == "assistant") {
        messages.push(json!({"role": "user", "content": "Please continue."}));
    }
}

/// Drops thoughts; a message that held nothing else goes with them.
pub(super) fn drop_thinking(messages: &mut Vec<Value>, keep_google: bool) {
    messages.retain_mut(|message| {
        let Some(message) = message.as_object_mut() else {
            return true;
        };
        if role(message) != "assistant" {
            return true;
        }
        for name in THOUGHTS {
            message.shift_remove(name);
        }
        if !keep_google {
            drop_extra_content(message);
        }
        let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) else {
            return true;
        };
        let before = blocks.len();
        blocks
            .retain(|block| !matches!(kind(block), "thinking" | "redacted_thinking" | "reasoning"));
        let emptied = before > 0 && blocks.is_empty();
        if emptied {
            message.insert("content".into(), Value::Null);
        }
        !emptied || message.contains_key("tool_calls")
    });
}

fn drop_extra_content(message: &mut Message) {
    message.shift_remove("extra_content");
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        if let Some(call) = call.as_object_mut() {
            call.shift_remove("extra_content");
        }
    }
}

/// Writes calls without Google's signature, and what they gave, as text.
pub(super) fn foreign_tools_as_text(messages: &mut [Value]) {
    let mut foreign = HashSet::new();
    for message in messages.iter_mut().filter_map(Value::as_object_mut) {
        match role(message) {
            "assistant" => calls_to_text(message, &mut foreign),
            "tool" | "function" => result_to_text(message, &foreign),
            "user" => blocks_to_text(message, &foreign),
            _ => {}
        }
    }
}

fn is_signed(call: &Value) -> bool {
    let google = call.get("extra_content").and_then(|e| e.get("google"));
    let signature = google.and_then(|g| g.get("thought_signature")?.as_str());
    signature.is_some_and(|s| !s.is_empty())
}

fn calls_to_text(message: &mut Message, foreign: &mut HashSet<String>) {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    // Of several calls of one message only the first is signed.
    let own = calls.is_some_and(|calls| calls.iter().any(is_signed));
    let mut told = Vec::new();
    if !own {
        for call in calls.into_iter().flatten() {
            foreign.extend(text(call.get("id")));
            let function = call.get("function");
            let part = |name| function.and_then(|f| f.get(name));
            told.push(called(part("name"), part("arguments")));
        }
        message.shift_remove("tool_calls");
        if let Some(call) = message.shift_remove("function_call") {
            foreign.extend(text(call.get("name")));
            told.push(called(call.get("name"), call.get("arguments")));
        }
    }
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten() {
        if kind(block) == "tool_use" {
            foreign.extend(text(block.get("id")));
            *block = text_block(&called(block.get("name"), block.get("input")));
        }
    }
    for text in told {
        append(message, &text);
    }
}

/// The answer to a call that became text is the user's text: no vendor takes a result without its
/// call.
fn result_to_text(message: &mut Message, foreign: &HashSet<String>) {
    let id = message.get("tool_call_id").or_else(|| message.get("name"));
    if !text(id).is_some_and(|id| foreign.contains(&id)) {
        return;
    }
    let told = gave(message.get("content"));
    *message = Message::from_iter([
        ("role".to_owned(), "user".into()),
        ("content".to_owned(), told.into()),
    ]);
}

fn blocks_to_text(message: &mut Message, foreign: &HashSet<String>) {
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten() {
        let answers = || text(block.get("tool_use_id")).is_some_and(|id| foreign.contains(&id));
        if kind(block) == "tool_result" && answers() {
            *block = text_block(&gave(block.get("content")));
        }
    }
}

fn called(name: Option<&Value>, arguments: Option<&Value>) -> String {
    let name = text(name).unwrap_or_else(|| "a tool".into());
    format!("[Called {name} with {}]", flat(arguments))
}

fn gave(content: Option<&Value>) -> String {
    format!("[Result of the call: {}]", flat(content))
}

/// A value as a person would read it.
fn flat(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "nothing".into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) if blocks.iter().all(|b| kind(b) == "text") => {
            let texts = blocks.iter().filter_map(|b| b.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Some(other) => other.to_string(),
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Adds text to whatever content a message has.
fn append(message: &mut Message, more: &str) {
    let content = message.entry("content").or_insert(Value::Null);
    match content {
        Value::Array(blocks) => blocks.push(text_block(more)),
        Value::String(text) if !text.is_empty() => {
            text.push('\n');
            text.push_str(more);
        }
        other => *other = Value::String(more.to_owned()),
    }
}
