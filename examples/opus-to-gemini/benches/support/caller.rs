//! Chats, asked as a client would.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::time::Instant;
use tower_spillway_core::BoxError;

/// hyper-util's client, as the stack has one at its bottom.
pub type Direct = Client<HttpConnector, Full<Bytes>>;

pub fn client() -> Direct {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

/// A chat with a prompt of so many bytes.
pub fn chat(prompt: usize, stream: bool) -> Bytes {
    let prompt = "word ".repeat(prompt / 5);
    format!(
        r#"{{"model":"claude-opus","messages":[{{"role":"user","content":"{prompt}"}}],"max_tokens":1000,"stream":{stream}}}"#
    )
    .into()
}

pub fn request(url: &str, chat: &Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(chat.clone()));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = url.parse().unwrap();
    let json = http::HeaderValue::from_static("application/json");
    request.headers_mut().insert(header::CONTENT_TYPE, json);
    request
}

/// From `start` to the first content of a stream, which is then read to its end: the connection
/// can be used again.
pub async fn first_content<B>(start: Instant, response: Response<B>) -> Result<Duration, BoxError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    assert_eq!(response.status(), 200);
    let mut body = pin!(response.into_body());
    let mut first = None;
    while let Some(frame) = body.frame().await {
        let data = frame.map_err(Into::into)?.into_data();
        if first.is_none() && data.is_ok_and(|data| has_content(&data)) {
            first = Some(start.elapsed());
        }
    }
    Ok(first.ok_or("a stream without content")?)
}

/// Whether a token is among these events of the benches' upstream, which are never split.
pub fn has_content(events: &[u8]) -> bool {
    let text = br#"{"content":"token "#;
    events.windows(text.len()).any(|part| part == text)
}
