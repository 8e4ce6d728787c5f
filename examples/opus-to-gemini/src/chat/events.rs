//! The text in the events of a stream.

use eventsource_stream::Event;
use serde_json::Value;

use super::read;

/// What one event says to a reader.
pub(super) enum Said {
    /// More of the answer; a refusal is one too.
    Text(String),
    /// It broke: the message of the error.
    Broken(String),
    /// Nothing to read: a role, the end. The reason that it gives for the end, if it does.
    Nothing(Option<String>),
}

pub(super) fn said(event: &Event) -> Said {
    let Ok(event) = serde_json::from_str::<Value>(&event.data) else {
        // The marker of the end.
        return Said::Nothing(None);
    };
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        let message = read::message_of(error).unwrap_or("no message");
        return Said::Broken(message.to_owned());
    }
    let delta = event.pointer("/choices/0/delta");
    let text = ["content", "refusal"].iter().find_map(|name| {
        let text = delta?.get(*name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    });
    let reason = event.pointer("/choices/0/finish_reason");
    let reason = reason.and_then(Value::as_str).map(str::to_owned);
    text.map_or(Said::Nothing(reason), Said::Text)
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
            Said::Nothing(None)
        ));
        assert!(matches!(of("[DONE]"), Said::Nothing(None)));
        assert!(matches!(of(r#"{"error":{"message":"m"}}"#), Said::Broken(m) if m == "m"));
    }
}
