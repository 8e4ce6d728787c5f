//! Errors in events, in all their shapes.

use serde_json::{Map, Value};

use super::node::{Node, Object};
use crate::stream::Dialect;

/// An error in an event.
#[derive(Debug, PartialEq)]
pub(in crate::stream) struct InBand {
    /// As the body of an ordinary answer.
    pub(in crate::stream) body: Value,
    /// The dialects whose callers see it as an error, were it given to them.
    pub(in crate::stream) visible_in: &'static [Dialect],
}

impl InBand {
    /// An error that stands between events, as bare JSON.
    pub(in crate::stream) fn stray(text: &[u8]) -> Option<Self> {
        let node = match serde_json::from_slice(text).ok()? {
            Node::Array(mut items) if items.len() == 1 => items.pop()?,
            node => node,
        };
        let error = node.get("error").is_some_and(truthy);
        error.then(|| Self {
            body: node.to_value(),
            visible_in: &[],
        })
    }
}

pub(super) fn of(name: &[u8], fields: &Object<'_>) -> Option<InBand> {
    const VISIBLE_FIELD: &[Dialect] = &[Dialect::Chat, Dialect::Gemini];
    const VISIBLE_NAMED: &[Dialect] = &[Dialect::Chat, Dialect::Gemini, Dialect::Anthropic];
    let kind = fields.get("type").and_then(Node::as_str);
    let named = name == b"error";
    if let Some(error) = fields.get("error").filter(|e| truthy(e)) {
        // Responses flatten theirs; the others nest it.
        let responses = kind == Some("error") && error.as_object().is_none();
        return Some(InBand {
            body: Value::Object(fields.to_map()),
            visible_in: match (named, responses) {
                (_, true) => &[Dialect::Responses],
                (true, _) => VISIBLE_NAMED,
                (false, _) => VISIBLE_FIELD,
            },
        });
    }
    if kind == Some("response.failed") {
        let error = fields.get("response").and_then(|r| r.get("error"));
        let error = error.filter(|e| truthy(e)).map(Node::to_value);
        return Some(InBand {
            body: wrap(error.unwrap_or_else(|| Value::Object(Map::new()))),
            visible_in: &[Dialect::Responses],
        });
    }
    // Bedrock names an exception in the frame's headers.
    let exception = match fields.get(":exception-type").and_then(Node::as_str) {
        Some(exception) => Some(exception),
        None => std::str::from_utf8(name)
            .ok()
            .filter(|name| name.to_ascii_lowercase().ends_with("exception")),
    };
    if let Some(exception) = exception {
        let mut error = Map::new();
        error.insert("code".into(), exception.into());
        if let Some(message) = fields.get("message") {
            error.insert("message".into(), message.to_value());
        }
        return Some(InBand {
            body: wrap(Value::Object(error)),
            visible_in: &[],
        });
    }
    if named || kind == Some("error") {
        let mut error = fields.to_map();
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

/// What a script language takes for true: `"error": null` is none.
fn truthy(value: &Node<'_>) -> bool {
    match value {
        Node::Null | Node::Bool(false) => false,
        Node::String(text) => !text.is_empty(),
        Node::Number(n) => n.as_f64() != Some(0.0),
        _ => true,
    }
}
