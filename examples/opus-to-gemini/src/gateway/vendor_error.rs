//! A vendor's error, in OpenAI's shape.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::chat::{error_in, message_of};

/// A longer message of a vendor's is cut.
const LONGEST_MESSAGE: usize = 2000;

/// What a vendor's error says.
pub(super) struct Said {
    pub(super) message: String,
    kind: Option<String>,
    code: Option<String>,
    param: Option<String>,
    /// It is in OpenAI's shape as it came.
    as_it_is: bool,
}

impl Said {
    /// Of the shapes `{"error": {…}}`, the same in an array of one, and `{"error": "message"}`.
    /// `blot` takes keys out: a vendor may quote the one that it rejects.
    pub(super) fn read(body: &[u8], blot: impl Fn(&str) -> String) -> Self {
        let read: Option<Value> = serde_json::from_slice(body).ok();
        let error = read.as_ref().and_then(error_in);
        let field = |names: &[&str]| {
            let mut fields = names.iter().filter_map(|name| error?.get(name));
            fields.find_map(Value::as_str).map(&blot)
        };
        let said = error.and_then(message_of);
        let blotted = said.map(&blot);
        let object = read.as_ref().is_some_and(Value::is_object);
        // Written anew, without the escapes that a key could hide behind.
        let whole = read.as_ref().map(Value::to_string).unwrap_or_default();
        let shaped = object && field(&["message"]).is_some() && field(&["type"]).is_some();
        let clean = blotted.as_deref() == said && blot(&whole) == whole;
        Self {
            message: blotted.map(|m| cut(&m)).unwrap_or_default(),
            kind: field(&["type"]),
            // Google's `code` is the status again, and its `status` is what others call the code.
            code: field(&["code", "status"]),
            param: field(&["param"]),
            as_it_is: shaped && clean,
        }
    }

    /// The body for a caller: as it came, if it has the shape and no key in it.
    pub(super) fn into_body(self, target: &str, status: u16, body: Bytes) -> Bytes {
        if self.as_it_is {
            return body;
        }
        let message = match self.message.is_empty() {
            true => format!("{target} answered {status}, with no readable message."),
            false => self.message,
        };
        let error = json!({
            "message": message,
            "type": self.kind.as_deref().unwrap_or("invalid_request_error"),
            "param": self.param,
            "code": self.code,
        });
        json!({ "error": error }).to_string().into()
    }
}

fn cut(message: &str) -> String {
    message.chars().take(LONGEST_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(body: &'static str) -> Value {
        let blot = |text: &str| text.replace("sk-secret", "[key]");
        let said = Said::read(body.as_bytes(), blot);
        let body = said.into_body("opus", 400, Bytes::from_static(body.as_bytes()));
        serde_json::from_slice(&body).unwrap()
    }

    #[test]
    fn an_error_in_the_shape_comes_back_as_it_is() {
        let body = r#"{"error":{"message":"m","type":"t","code":null,"innererror":{"a":1}}}"#;
        assert_eq!(shaped(body), serde_json::from_str::<Value>(body).unwrap());
    }

    #[test]
    fn other_shapes_keep_their_message() {
        let gemini =
            shaped(r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#);
        let wanted = json!({"error": {"message": "m", "type": "invalid_request_error",
            "param": null, "code": "INVALID_ARGUMENT"}});
        assert_eq!(gemini, wanted);
        let native = shaped(r#"{"type":"error","error":{"type":"not_found_error","message":"n"}}"#);
        assert_eq!(native["error"]["message"], "n");
        assert_eq!(shaped(r#"{"error":"text"}"#)["error"]["message"], "text");
        let html = shaped("<html>");
        assert_eq!(
            html["error"]["message"],
            "opus answered 400, with no readable message."
        );
    }

    #[test]
    fn a_key_in_it_is_blotted_out() {
        for body in [
            r#"{"error":{"message":"bad key sk-secret","type":"t"}}"#,
            r#"{"error":{"message":"m","type":"t"},"key":"sk-secret"}"#,
            r#"{"error":{"message":"bad key sk\u002dsecret","type":"t"}}"#,
            r#"{"error":{"message":"m","type":"t"},"key":"sk\u002dsecret"}"#,
        ] {
            // As a caller reads it.
            let shaped = shaped(body).to_string();
            assert!(!shaped.contains("sk-secret"), "{shaped}");
        }
    }
}
