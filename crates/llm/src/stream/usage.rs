//! The tokens that a stream counts, in any dialect.

use serde_json::{Map, Value};

use super::event::Node;
use crate::Usage;

/// Counts of one event. A later one completes an earlier one: Anthropic tells the prompt at the
/// start and the answer at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    input: Option<u64>,
    cached: Option<u64>,
    output: Option<u64>,
}

impl Counts {
    /// What an event tells; `None` if nothing.
    pub(super) fn of(event: &Node<'_>) -> Option<Self> {
        // Anthropic and Responses put the first and the last of them inside.
        let inside = ["message", "response"].map(|name| event.get(name));
        let places = std::iter::once(event).chain(inside.into_iter().flatten());
        places.into_iter().find_map(Self::in_object)
    }

    fn in_object(object: &Node<'_>) -> Option<Self> {
        if let Some(Value::Object(gemini)) = object.get("usageMetadata").map(Node::to_value) {
            return Self::gemini(&gemini);
        }
        let usage = object.get("usage")?.to_value();
        if let Some(chat) = Usage::of_counts(&usage) {
            return Some(chat.into());
        }
        let count = |name| usage.get(name).and_then(Value::as_u64);
        // Anthropic counts cached tokens beside the others, OpenAI's responses among them.
        let read = count("cache_read_input_tokens");
        let beside = [read, count("cache_creation_input_tokens")];
        let among = usage.get("input_tokens_details");
        let among = among.and_then(|d| d.get("cached_tokens")?.as_u64());
        let input = count("input_tokens").map(|n| {
            let beside = beside.into_iter().flatten();
            beside.fold(n, u64::saturating_add)
        });
        let output = count("output_tokens");
        (input.is_some() || output.is_some()).then_some(Self {
            input,
            cached: read.or(among),
            output,
        })
    }

    fn gemini(usage: &Map<String, Value>) -> Option<Self> {
        let count = |name| usage.get(name).and_then(Value::as_u64);
        let input = count("promptTokenCount")?;
        let answer = count("candidatesTokenCount").unwrap_or(0);
        let thoughts = count("thoughtsTokenCount").unwrap_or(0);
        Some(Self {
            input: Some(input),
            cached: count("cachedContentTokenCount"),
            output: Some(answer.saturating_add(thoughts)),
        })
    }

    /// With what a later event tells.
    pub(super) fn then(self, later: Self) -> Self {
        Self {
            input: later.input.or(self.input),
            cached: later.cached.or(self.cached),
            output: later.output.or(self.output),
        }
    }

    /// All of it; what was not told is none.
    pub(super) fn total(self) -> Usage {
        let input = self.input.unwrap_or(0);
        Usage {
            input,
            cached: self.cached.unwrap_or(0).min(input),
            output: self.output.unwrap_or(0),
        }
    }
}

impl From<Usage> for Counts {
    fn from(usage: Usage) -> Self {
        Self {
            input: Some(usage.input),
            cached: Some(usage.cached),
            output: Some(usage.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(event: &Value) -> Option<Counts> {
        Counts::of(&serde_json::from_str(&event.to_string()).unwrap())
    }

    fn total(events: &[Value]) -> Usage {
        let counts = events.iter().filter_map(of);
        counts.fold(Counts::default(), Counts::then).total()
    }

    fn usage(input: u64, cached: u64, output: u64) -> Usage {
        Usage {
            input,
            cached,
            output,
        }
    }

    #[test]
    fn every_dialect() {
        let chat = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}});
        assert_eq!(total(&[json!({"usage": null}), chat]), usage(5, 0, 1));
        let anthropic = [
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 20,
                "cache_read_input_tokens": 70, "cache_creation_input_tokens": 10, "output_tokens": 1}}}),
            json!({"type": "message_delta", "usage": {"output_tokens": 15}}),
        ];
        assert_eq!(total(&anthropic), usage(100, 70, 15));
        let gemini = json!({"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4,
            "thoughtsTokenCount": 6, "cachedContentTokenCount": 2}});
        assert_eq!(total(&[gemini]), usage(9, 2, 10));
        let responses = json!({"type": "response.completed", "response": {"usage": {
            "input_tokens": 8, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 2}}});
        assert_eq!(total(&[responses]), usage(8, 3, 2));
        assert_eq!(of(&json!({"usage": "none"})), None);
    }
}
