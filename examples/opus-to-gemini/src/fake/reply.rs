//! A whole answer of a fake vendor.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

/// Status, headers and body of an answer.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
    /// The events of a stream, as they come; empty if it is none.
    pub(super) events: Vec<Bytes>,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            headers: Vec::new(),
            body: body.to_string().into(),
            events: Vec::new(),
        }
    }

    /// A stream of server-sent events that ends in the usual marker.
    pub(super) fn events(chunks: &[Value]) -> Self {
        let mut events: Vec<Bytes> = chunks
            .iter()
            .map(|chunk| format!("data: {chunk}\n\n").into())
            .collect();
        events.push("data: [DONE]\n\n".into());
        Self {
            status: 200,
            content_type: "text/event-stream",
            headers: Vec::new(),
            body: events.concat().into(),
            events,
        }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// An error object as an event of a stream tells it.
    pub(super) fn refusal(status: u16) -> Value {
        let message = "Overloaded: try again later";
        json!({"error": {"code": status, "type": "overloaded_error", "message": message}})
    }

    /// The head of the answer, around any body.
    pub(super) fn head<B>(&self, body: B) -> Response<B> {
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(self.content_type),
        );
        if self.events.is_empty() {
            headers.insert(header::CONTENT_LENGTH, self.body.len().into());
        }
        for (name, value) in &self.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.append(*name, value);
            }
        }
        response
    }
}
