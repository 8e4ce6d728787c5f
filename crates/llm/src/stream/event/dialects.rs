//! What an event says in each dialect.

use super::{
    Event, InBand,
    node::{Node, Object},
};
use crate::stream::Dialect;

impl Event {
    pub(super) fn choice(&mut self, choice: &Node<'_>) {
        let answer = bit(choice);
        self.answers |= answer;
        let reason = choice.get("finish_reason").and_then(Node::as_str);
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

    pub(super) fn anthropic(&mut self, kind: &str, fields: &Object<'_>) {
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

    pub(super) fn gemini(&mut self, fields: &Object<'_>) {
        self.dialect = Some(Dialect::Gemini);
        let candidates = fields.get("candidates").and_then(Node::as_array);
        for candidate in candidates.into_iter().flatten() {
            let answer = bit(candidate);
            self.answers |= answer;
            match candidate.get("finishReason").and_then(Node::as_str) {
                None | Some("" | "FINISH_REASON_UNSPECIFIED") => {}
                Some(_) => self.finished |= answer,
            }
            let parts = candidate.get("content").and_then(|c| c.get("parts"));
            let mut parts = parts.and_then(Node::as_array).into_iter().flatten();
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

    pub(super) fn responses(&mut self, kind: &str, fields: &Object<'_>) {
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

/// The bit of an answer's index. More answers than bits share the last one.
fn bit(answer: &Node<'_>) -> u128 {
    let index = answer.get("index").and_then(Node::as_u64).unwrap_or(0);
    1u128 << index.min(127)
}

/// A text, list or object that is not empty.
fn is_something(value: &Node<'_>) -> bool {
    match value {
        Node::String(text) => !text.is_empty(),
        Node::Array(items) => !items.is_empty(),
        Node::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

/// Whether there is anything in it but whose it is. Kinds of content that are not known yet are
/// content.
fn says_more_than_a_role(delta: &Node<'_>) -> bool {
    const LABELS: [&str; 4] = ["role", "type", "id", "index"];
    let fields = delta.as_object().into_iter().flat_map(Object::iter);
    fields
        .filter(|(name, _)| !LABELS.contains(name))
        .any(|(_, value)| is_something(value))
}

/// A block that begins: text begins empty, a tool's name is content.
fn is_block(block: &Node<'_>) -> bool {
    match block.get("type").and_then(Node::as_str) {
        Some("text" | "thinking") => says_more_than_a_role(block),
        _ => true,
    }
}

fn is_part(part: &Node<'_>) -> bool {
    let fields = part.as_object().into_iter().flat_map(Object::iter);
    fields
        .filter(|(name, _)| *name != "thoughtSignature")
        .any(|(_, value)| is_something(value))
}

/// An item of a response: a message or reasoning begins empty, a call is content.
fn is_item(item: &Node<'_>) -> bool {
    match item.get("type").and_then(Node::as_str) {
        Some("message" | "reasoning") => ["content", "summary"]
            .iter()
            .filter_map(|name| item.get(name))
            .any(is_something),
        _ => true,
    }
}
