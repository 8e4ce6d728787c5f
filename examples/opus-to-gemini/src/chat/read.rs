//! What is in a vendor's answer.

use serde_json::Value;

/// A longer message of a vendor's is cut.
const LONGEST_MESSAGE: usize = 500;

/// The text of a `chat.completion`, or why there is none.
pub(super) fn text(body: &[u8]) -> Result<String, String> {
    let body: Value = serde_json::from_slice(body).map_err(|_| "it is not JSON")?;
    let choice = body.pointer("/choices/0").ok_or("it has no choices")?;
    let text = match choice.pointer("/message/content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    };
    if !text.is_empty() {
        return Ok(text);
    }
    if let Some(refusal) = choice.pointer("/message/refusal").and_then(Value::as_str) {
        return Ok(refusal.to_owned());
    }
    let why = choice.get("finish_reason").and_then(Value::as_str);
    Err(format!("finish reason {}", why.unwrap_or("unknown")))
}

/// The error in a body: of the shapes `{"error": …}` and the same in an array of one.
pub(crate) fn error_in(body: &Value) -> Option<&Value> {
    body.get(0).unwrap_or(body).get("error")
}

/// What an error says: its `message`, or itself where it is a text.
pub(crate) fn message_of(error: &Value) -> Option<&str> {
    error.get("message").unwrap_or(error).as_str()
}

/// The message of an error. Fit for a terminal.
pub(super) fn message(body: &[u8]) -> String {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let message = body.as_ref().and_then(error_in).and_then(message_of);
    let message = message.unwrap_or("(no readable message)");
    message
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST_MESSAGE)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_refusals_and_nothing() {
        let of = |message: &str| {
            let body =
                format!(r#"{{"choices":[{{"message":{message},"finish_reason":"length"}}]}}"#);
            text(body.as_bytes())
        };
        assert_eq!(of(r#"{"content":"hi"}"#), Ok("hi".into()));
        assert_eq!(
            of(r#"{"content":[{"type":"text","text":"hi"}]}"#),
            Ok("hi".into())
        );
        assert_eq!(of(r#"{"content":null,"refusal":"no"}"#), Ok("no".into()));
        assert_eq!(of(r#"{"content":""}"#), Err("finish reason length".into()));
        assert_eq!(text(b"{}"), Err("it has no choices".into()));
        assert_eq!(text(b"<html>"), Err("it is not JSON".into()));
    }

    #[test]
    fn messages_of_both_vendors_fit_for_a_terminal() {
        assert_eq!(message(br#"{"error":{"message":"a"}}"#), "a");
        assert_eq!(message(br#"[{"error":{"message":"b","code":400}}]"#), "b");
        assert_eq!(message(br#"{"error":"c"}"#), "c");
        assert_eq!(
            message(br#"{"error":{"message":"\u001b[31mred"}}"#),
            " [31mred"
        );
        assert_eq!(message(b"<html>"), "(no readable message)");
        let long = format!(r#"{{"error":"{}"}}"#, "x".repeat(9000));
        assert_eq!(message(long.as_bytes()).len(), 500);
    }
}
