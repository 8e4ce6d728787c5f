//! One chat, asked.

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use serde_json::json;
use tower::ServiceExt;
use tower_spillway_core::{BoxError, Ledger, Report};

use super::{ChatError, read};
use crate::pipeline::{ChatRequest, ChatResponse, Pipeline};

/// One prompt, to be answered in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Chat {
    prompt: String,
    max_tokens: Option<u32>,
    id: Option<String>,
}

impl Chat {
    /// A prompt from the user.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            max_tokens: None,
            id: None,
        }
    }

    /// The most tokens of the answer. The vendor's own limit by default.
    pub fn max_tokens(mut self, most: u32) -> Self {
        self.max_tokens = Some(most);
        self
    }

    /// A name for the call: each attempt is sent with an `x-attempt-id` made of it.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn request(&self, ledger: Ledger) -> ChatRequest {
        let mut body = json!({"messages": [{"role": "user", "content": self.prompt}]});
        if let (Some(most), Some(body)) = (self.max_tokens, body.as_object_mut()) {
            body.insert("max_tokens".into(), most.into());
        }
        let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
        let id = self.id.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(id)) = id {
            request.headers_mut().insert("x-call-id", id);
        }
        request.extensions_mut().insert(ledger);
        request
    }
}

/// What came of a chat.
#[derive(Debug)]
#[non_exhaustive]
pub struct Asked {
    /// The text of the answer.
    pub answer: Result<String, ChatError>,
    /// What happened on the way.
    pub report: Report,
}

/// Sends a chat through a pipeline.
pub async fn ask(pipeline: &Pipeline, chat: &Chat) -> Asked {
    // Our own handle: after an error it is the only record.
    let ledger = Ledger::new();
    let request = chat.request(ledger.clone());
    let answer = match pipeline.clone().oneshot(request).await {
        Ok(response) => read_answer(pipeline, &ledger, response).await,
        Err(error) => Err(ChatError::NoAnswer(error)),
    };
    Asked {
        answer,
        report: ledger.report(),
    }
}

async fn read_answer(
    pipeline: &Pipeline,
    ledger: &Ledger,
    response: ChatResponse,
) -> Result<String, ChatError> {
    let (head, body) = response.into_parts();
    let no_answer = |error: BoxError| ChatError::NoAnswer(error);
    let body = body.collect().await.map_err(no_answer)?.to_bytes();
    let target = ledger.report().target;
    let target = target.map_or_else(|| "the vendor".to_owned(), |t| t.to_string());
    let status = head.status.as_u16();
    if !head.status.is_success() {
        // A vendor may quote the key that it rejects.
        let message = pipeline.blot(&read::message(&body));
        return Err(ChatError::Vendor {
            target,
            status,
            message,
        });
    }
    read::text(&body).map_err(|why| ChatError::NoText {
        target,
        status,
        why,
    })
}
