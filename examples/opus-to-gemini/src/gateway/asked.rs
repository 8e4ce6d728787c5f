//! What a request asks for.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use tower_spillway_llm::Fields;

use super::error::ApiError;

/// A request as it goes on, and what the gateway had to know of it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The model that was named.
    pub(super) model: String,
    /// Whether the answer is to come in events.
    pub(super) stream: bool,
    /// Models of the caller's own chain; empty if it brought none.
    pub(super) fallbacks: Vec<String>,
    /// Without `fallbacks`.
    pub(super) body: Bytes,
}

/// The most models of a chain that a request brings.
const MOST_FALLBACKS: usize = 8;

impl Asked {
    /// Reads a body. What only a vendor can judge is left to it.
    pub(super) fn read(body: Bytes, with_fallbacks: bool) -> Result<Self, ApiError> {
        let mut fields = Fields::read(&body).map_err(|error| {
            let place = format!("line {} column {}", error.line(), error.column());
            bad(format!("The body is not a JSON object ({place})."))
        })?;
        let model = text(&fields, "model")?;
        let stream = match fields.get("stream") {
            None | Some("null" | "false") => false,
            Some("true") => true,
            Some(_) => return Err(bad("stream must be true or false.").param("stream")),
        };
        if !fields.has_some("messages") {
            let wrong = bad("messages must be an array of at least one message.");
            return Err(wrong.param("messages"));
        }
        let fallbacks = match fields.get("fallbacks") {
            Some(_) if !with_fallbacks => {
                let message = "This gateway takes no fallbacks from a request \
                               (allow_request_fallbacks is false).";
                return Err(bad(message).param("fallbacks"));
            }
            Some(models) => models_of(models)?,
            None => Vec::new(),
        };
        let body = match fields.get("fallbacks") {
            Some(_) => {
                fields.remove("fallbacks");
                fields.to_bytes()
            }
            None => body,
        };
        Ok(Self {
            model,
            stream,
            fallbacks,
            body,
        })
    }
}

fn bad(message: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::invalid(StatusCode::BAD_REQUEST, "invalid_request", message)
}

fn text(fields: &Fields<'_>, name: &'static str) -> Result<String, ApiError> {
    let text = fields.get(name).map(serde_json::from_str);
    match text {
        Some(Ok(text)) => Ok(text),
        Some(Err(_)) => Err(bad(format!("{name} must be a string.")).param(name)),
        None => Err(bad(format!("{name} is missing.")).param(name)),
    }
}

fn models_of(models: &str) -> Result<Vec<String>, ApiError> {
    let read = serde_json::from_str::<Option<Vec<String>>>(models).ok();
    let models = read.map(Option::unwrap_or_default);
    let models = models.filter(|models| models.len() <= MOST_FALLBACKS);
    models.ok_or_else(|| {
        let message = format!("fallbacks must be an array of at most {MOST_FALLBACKS} models.");
        bad(message).param("fallbacks")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Asked, ApiError> {
        Asked::read(Bytes::copy_from_slice(body.as_bytes()), true)
    }

    #[test]
    fn what_is_asked_for() {
        let asked = read(r#"{"model":"a","messages":[1],"stream":true,"x":{"model":"b"}}"#);
        let asked = asked.unwrap();
        assert_eq!((asked.model.as_str(), asked.stream), ("a", true));
        assert!(asked.fallbacks.is_empty());
        // Escapes are no way around.
        let asked = read(r#"{"m\u006fdel":"a","messages":[1],"fallb\u0061cks":["b"],"x":1.50}"#);
        let asked = asked.unwrap();
        assert_eq!(asked.fallbacks, ["b"]);
        assert_eq!(asked.body, r#"{"model":"a","messages":[1],"x":1.50}"#);
    }

    #[test]
    fn what_is_no_chat_is_refused() {
        for body in [
            "",
            "[]",
            "\"x\"",
            "{",
            r#"{"messages":[1]}"#,
            r#"{"model":1,"messages":[1]}"#,
            r#"{"model":"a"}"#,
            r#"{"model":"a","messages":[ ]}"#,
            r#"{"model":"a","messages":"hi"}"#,
            r#"{"model":"a","messages":[1],"stream":1}"#,
            r#"{"model":"a","messages":[1],"fallbacks":"b"}"#,
            r#"{"model":"a","messages":[1],"fallbacks":["1","2","3","4","5","6","7","8","9"]}"#,
        ] {
            let error = read(body).unwrap_err();
            assert_eq!(error.status(), StatusCode::BAD_REQUEST, "{body}");
        }
        let asked = r#"{"model":"a","messages":[1],"fallbacks":[]}"#;
        assert!(Asked::read(asked.into(), false).is_err());
    }
}
