//! The text in the events of a stream.

use eventsource_stream::Event;
use serde_json::Value;

/// What one event says to a reader.
pub(super) enum Said {
    /// More of the answer; a refusal is one too.
    Text(String),
    /// It broke: the message of the error.
    Broken(String),
    /// Nothing to read: a role, a reason, the end.
    Nothing,
}

pub(super) fn said(event: &Event) -> Said {
    let Ok(event) = serde_json::from_str::<Value>(&event.data) else {
        // The marker of the end.
        return Said::Nothing;
    };
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").unwrap_or(error);
        return Said::Broken(message.as_str().unwrap_or("no message").to_owned());
    }
    let delta = event.pointer("/choices/0/delta");
    let text = ["content", "refusal"].iter().find_map(|name| {
        let text = delta?.get(*name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    });
    text.map_or(Said::Nothing, Said::Text)
}

/// The reason that a stream without a word gave for its end.
pub(super) fn finish_reason(event: &Event) -> Option<String> {
    let event: Value = serde_json::from_str(&event.data).ok()?;
    let reason = event.pointer("/choices/0/finish_reason")?.as_str()?;
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(data: &str) -> Said {
        said(&Event {
            data: data.to_owned(),
            ..Event::default()
        })
    }

    #[test]
    fn texts_refusals_errors_and_nothing() {
        let delta = |delta: &str| of(&format!("{{\"choices\":[{{\"delta\":{delta}}}]}}"));
        assert!(matches!(delta(r#"{"content":"hi"}"#), Said::Text(t) if t == "hi"));
        assert!(matches!(delta(r#"{"content":null,"refusal":"no"}"#), Said::Text(t) if t == "no"));
        assert!(matches!(
            delta(r#"{"role":"assistant","content":""}"#),
            Said::Nothing
        ));
        assert!(matches!(of("[DONE]"), Said::Nothing));
        assert!(matches!(of(r#"{"error":{"message":"m"}}"#), Said::Broken(m) if m == "m"));
    }
}
