//! Answers that a vendor's content policy keeps back although the call succeeded.

use serde::Deserialize;
use tower_spillway_core::{Class, Reading};

/// Why a choice ended that was kept back.
const KEPT_BACK: [&str; 3] = ["content_filter", "refusal", "safety"];

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    finish_reason: Option<String>,
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    refusal: Option<String>,
}

impl Choice {
    fn is_kept_back(&self) -> bool {
        let ended = self.finish_reason.as_deref();
        let refused = self.message.as_ref().and_then(|m| m.refusal.as_deref());
        ended.is_some_and(|reason| KEPT_BACK.iter().any(|k| reason.eq_ignore_ascii_case(k)))
            || refused.is_some_and(|said| !said.is_empty())
    }
}

/// Says of a plain answer that another target is to give it, if all of its choices are kept back.
pub(super) fn judge(body: &[u8]) -> Option<Reading> {
    is_kept_back(body).then(|| Reading::new(Class::NotHere).with_reason("content_policy"))
}

fn is_kept_back(body: &[u8]) -> bool {
    let choices = serde_json::from_slice(body).map_or_else(|_| Vec::new(), |a: Answer| a.choices);
    !choices.is_empty() && choices.iter().all(Choice::is_kept_back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_back_if_nothing_of_it_is_one() {
        for (body, kept_back) in [
            (
                r#"{"choices":[{"finish_reason":"content_filter","message":{"content":""}}]}"#,
                true,
            ),
            (r#"{"choices":[{"finish_reason":"SAFETY"}]}"#, true),
            (
                r#"{"choices":[{"finish_reason":"stop","message":{"refusal":"I cannot."}}]}"#,
                true,
            ),
            (
                r#"{"choices":[{"finish_reason":"stop","message":{"refusal":null}}]}"#,
                false,
            ),
            (
                r#"{"choices":[{"finish_reason":"content_filter"},{"finish_reason":"stop"}]}"#,
                false,
            ),
            (r#"{"choices":[]}"#, false),
            ("no json", false),
        ] {
            assert_eq!(is_kept_back(body.as_bytes()), kept_back, "{body}");
        }
    }
}
