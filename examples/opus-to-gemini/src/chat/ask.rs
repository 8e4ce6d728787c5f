//! One chat, asked.

use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures_util::StreamExt;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Map, Value, json};
use tower::ServiceExt;
use tower_failover::AllRefused;
use tower_spillway_core::{BoxError, Ledger, Reading, Report, error::find, hint::Hint};
use tower_spillway_llm::{StreamUsage, Usage};

use super::{
    ChatError,
    events::{self, Said},
    read,
};
use crate::pipeline::{ChatRequest, ChatResponse, Pipeline, is_stream};

/// One chat.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Chat {
    body: Map<String, Value>,
    id: Option<String>,
    idempotency_key: Option<String>,
}

impl Chat {
    /// A prompt from the user.
    pub fn new(prompt: impl Into<String>) -> Self {
        let mut body = Map::new();
        let message = json!({"role": "user", "content": prompt.into()});
        body.insert("messages".into(), json!([message]));
        Self::of(body)
    }

    /// A whole request body in OpenAI's shape. Whether the answer is a stream is said by how it is
    /// asked, and not here.
    pub fn of(mut body: Map<String, Value>) -> Self {
        body.shift_remove("stream");
        body.shift_remove("stream_options");
        Self {
            body,
            id: None,
            idempotency_key: None,
        }
    }

    /// The most tokens of the answer. The target's default otherwise.
    pub fn max_tokens(mut self, most: u32) -> Self {
        self.body.insert("max_tokens".into(), most.into());
        self
    }

    /// A name for the call: each attempt is sent with an `x-attempt-id` made of it.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The same key makes it the same call, if the vendor honours keys.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    fn request(&self, ledger: Ledger, streams: bool) -> ChatRequest {
        let mut body = self.body.clone();
        if streams {
            body.insert("stream".into(), true.into());
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
        let body = Value::Object(body).to_string();
        let mut request = Request::new(Full::new(Bytes::from(body)));
        for (name, value) in [
            ("x-call-id", &self.id),
            ("idempotency-key", &self.idempotency_key),
        ] {
            let value = value.as_deref().map(HeaderValue::from_str);
            if let Some(Ok(value)) = value {
                request.headers_mut().insert(name, value);
            }
        }
        request.extensions_mut().insert(ledger);
        request
    }
}

/// What came of a chat.
#[derive(Debug)]
#[non_exhaustive]
pub struct Asked {
    /// The answer.
    pub answer: Result<Answer, ChatError>,
    /// What happened on the way.
    pub report: Report,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Its text.
    pub text: String,
    /// The tokens, if the vendor told.
    pub usage: Option<Usage>,
    /// All that the vendor sent, in one piece; empty for a stream.
    pub body: Bytes,
}

impl Asked {
    /// The tokens of the answer, if there is one that tells.
    pub fn usage(&self) -> Option<Usage> {
        self.answer.as_ref().ok()?.usage
    }
}

/// Sends a chat through a pipeline.
pub async fn ask(pipeline: &Pipeline, chat: &Chat) -> Asked {
    // Our own handle: after an error it is the only record.
    let ledger = Ledger::new();
    let answer = match send(pipeline, chat.request(ledger.clone(), false)).await {
        Ok(response) => read_answer(pipeline, &ledger, response).await,
        Err(error) => Err(error),
    };
    Asked {
        answer,
        report: ledger.report(),
    }
}

/// Sends a chat through a pipeline, and gives each piece of the answer's text to `read` as it comes.
///
/// The answer is all of it. If the stream breaks, what was read so far is a part of an answer, and
/// the error says so.
pub async fn ask_streaming(pipeline: &Pipeline, chat: &Chat, mut read: impl FnMut(&str)) -> Asked {
    let ledger = Ledger::new();
    let answer = match send(pipeline, chat.request(ledger.clone(), true)).await {
        Ok(response) if is_stream(&response) => {
            read_stream(pipeline, &ledger, response, &mut read).await
        }
        Ok(response) => {
            let answer = read_answer(pipeline, &ledger, response).await;
            answer.inspect(|answer| read(&answer.text))
        }
        Err(error) => Err(error),
    };
    Asked {
        answer,
        report: ledger.report(),
    }
}

async fn send(pipeline: &Pipeline, request: ChatRequest) -> Result<ChatResponse, ChatError> {
    let sent = pipeline.clone().oneshot(request).await;
    sent.map_err(|error| match find::<AllRefused>(&*error) {
        Some(refused) => ChatError::AllRefused(*refused),
        None => ChatError::NoAnswer(error),
    })
}

/// An answer that somebody asked for stays within this many bytes of text.
const LONGEST: usize = 32 * 1024 * 1024;

async fn read_stream(
    pipeline: &Pipeline,
    ledger: &Ledger,
    response: ChatResponse,
    read: &mut impl FnMut(&str),
) -> Result<Answer, ChatError> {
    let target = target_of(ledger);
    let (head, body) = response.into_parts();
    let status = head.status.as_u16();
    let broken = |why: &str| ChatError::Broken {
        target: target.clone(),
        why: pipeline.blot(why),
    };
    let (mut text, mut reason) = (String::new(), None);
    let mut events = body.into_data_stream().eventsource();
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| broken(&error.to_string()))?;
        match events::said(&event) {
            Said::Text(more) => {
                if text.len().saturating_add(more.len()) > LONGEST {
                    return Err(broken("it is too long"));
                }
                read(&more);
                text += &more;
            }
            Said::Broken(why) => return Err(broken(&why)),
            Said::Nothing(why) => reason = why.or(reason),
        }
    }
    if text.is_empty() {
        let reason = reason.as_deref().unwrap_or("unknown");
        let why = format!("finish reason {reason}");
        return Err(ChatError::NoText {
            target,
            status,
            why,
        });
    }
    Ok(Answer {
        text,
        usage: head.extensions.get().and_then(StreamUsage::get),
        body: Bytes::new(),
    })
}

fn target_of(ledger: &Ledger) -> String {
    let target = ledger.report().target;
    target.map_or_else(|| "the vendor".to_owned(), |t| t.to_string())
}

async fn read_answer(
    pipeline: &Pipeline,
    ledger: &Ledger,
    response: ChatResponse,
) -> Result<Answer, ChatError> {
    let (head, body) = response.into_parts();
    let no_answer = |error: BoxError| ChatError::NoAnswer(error);
    let body = body.collect().await.map_err(no_answer)?.to_bytes();
    let target = target_of(ledger);
    let status = head.status.as_u16();
    if !head.status.is_success() {
        let reading = head.extensions.get::<Reading>();
        let hint = reading.and_then(Reading::hint);
        return Err(ChatError::Vendor {
            target,
            status,
            // A vendor may quote the key that it rejects.
            message: pipeline.blot(&read::message(&body)),
            asked_to_wait: hint.and_then(Hint::after),
        });
    }
    match read::text(&body) {
        Ok(text) => Ok(Answer {
            text,
            usage: Usage::of_answer(&body),
            body,
        }),
        Err(why) => Err(ChatError::NoText {
            target,
            status,
            why,
        }),
    }
}
