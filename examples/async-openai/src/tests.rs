use axum::{
    Router,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use serde_json::json;

use super::*;

/// A vendor on loopback.
async fn vendor<F>(name: &'static str, answer: F) -> Result<Vendor, BoxError>
where
    F: Fn(&Value) -> Response + Clone + Send + Sync + 'static,
{
    let app = Router::new().fallback(async move |headers: HeaderMap, body: String| {
        let key = headers
            .get(header::AUTHORIZATION)
            .and_then(|k| k.to_str().ok());
        if key != Some(&format!("Bearer key of {name}")) {
            return StatusCode::BAD_REQUEST.into_response();
        }
        answer(&serde_json::from_str(&body).unwrap_or_default())
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let (key, model) = (format!("key of {name}"), format!("model of {name}"));
    Ok(Vendor {
        name,
        base,
        key,
        model,
    })
}

fn overloaded(_: &Value) -> Response {
    (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3600")]).into_response()
}

/// Says which model was asked, at once or as a stream.
fn well(request: &Value) -> Response {
    let model = &request["model"];
    let chunk = |part: &str, kind: &str| {
        json!({
            "id": "1", "object": kind, "created": 1, "model": model,
            "choices": [{ "index": 0, part: { "role": "assistant", "content": model }, "finish_reason": null }],
        })
    };
    if request["stream"] == true {
        let event = chunk("delta", "chat.completion.chunk");
        let stream = format!("data: {event}\n\ndata: [DONE]\n\n");
        return ([("content-type", "text/event-stream")], stream).into_response();
    }
    let whole = chunk("message", "chat.completion").to_string();
    ([("content-type", "application/json")], whole).into_response()
}

#[tokio::test]
async fn an_overloaded_vendor_is_left_at_once() -> Result<(), BoxError> {
    let vendors = [
        vendor("opus", overloaded).await?,
        vendor("gemini", well).await?,
    ];
    let client = client(vendors)?;
    let answer = client.chat().create(question("hi")).await?;
    let content = answer
        .choices
        .first()
        .and_then(|c| c.message.content.as_deref());
    assert_eq!(content, Some("model of gemini"));
    Ok(())
}

#[tokio::test]
async fn a_stream_goes_the_same_way() -> Result<(), BoxError> {
    let vendors = [
        vendor("opus", overloaded).await?,
        vendor("gemini", well).await?,
    ];
    let mut stream = client(vendors)?
        .chat()
        .create_stream(question("hi"))
        .await?;
    let chunk = stream.next().await.ok_or("no chunk")??;
    let content = chunk
        .choices
        .first()
        .and_then(|c| c.delta.content.as_deref());
    assert_eq!(content, Some("model of gemini"));
    assert!(stream.next().await.is_none());
    Ok(())
}

#[tokio::test]
async fn when_all_fail_the_last_answer_is_an_error_of_the_crate() -> Result<(), BoxError> {
    let vendors = [
        vendor("opus", overloaded).await?,
        vendor("gemini", overloaded).await?,
    ];
    let out = client(vendors)?.chat().create(question("hi")).await;
    assert!(out.is_err());
    Ok(())
}
