//! The pipeline in an axum handler: a chat endpoint that goes on answering while Opus does not.
//!
//! ```console
//! $ cargo run -p opus-to-gemini --example embed
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "an example that asserts"
)]

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, Request, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use opus_to_gemini::{
    fake::{Behaviour, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    pipeline::{Pipeline, Upstream},
};
use serde_json::Value;
use tower::ServiceExt;
use tower_failover::AllRefused;
use tower_spillway_core::{BoxError, Chance, Ledger, error::find};

/// Streams pass as they come; what a caller asks for beside the body goes no further.
async fn chat(State(pipeline): State<Pipeline>, body: Bytes) -> Response {
    let request = Request::new(Full::new(body));
    match pipeline.oneshot(request).await {
        Ok(response) => {
            let served = response.extensions().get::<Ledger>();
            let served = served.and_then(|ledger| ledger.report().model);
            let mut response = response.map(Body::new);
            let model = served.and_then(|model| HeaderValue::from_str(&model).ok());
            if let Some(model) = model {
                response.headers_mut().insert("x-served-by", model);
            }
            response
        }
        Err(error) => refuse(&error),
    }
}

/// 503 with `Retry-After` while every target is out, 502 otherwise.
fn refuse(error: &BoxError) -> Response {
    let Some(refused) = find::<AllRefused>(&**error) else {
        return (StatusCode::BAD_GATEWAY, "no answer").into_response();
    };
    let wait = refused.retry_in().unwrap_or_default().as_secs() + 1;
    let headers = [(header::RETRY_AFTER, wait.to_string())];
    (StatusCode::SERVICE_UNAVAILABLE, headers, "try again later").into_response()
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // For the real ones: `Pipeline::from_toml(&std::fs::read_to_string("pipeline.toml")?)?`.
    let fakes = Fakes::start(&Chance::seeded(1)).await?;
    let pipeline = Pipeline::builder()
        .target(Upstream::opus(FAKE_ANTHROPIC_KEY).url(fakes.anthropic.url()))
        .target(Upstream::gemini(FAKE_GEMINI_KEY).url(fakes.gemini.url()))
        .build()?;
    // No user waits to find out whether a target is back.
    for probing in pipeline.probes() {
        tokio::spawn(probing);
    }
    let breakers = pipeline.breakers().to_vec();

    let app = Router::new()
        .route("/v1/chat/completions", post(chat))
        .with_state(pipeline);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1/chat/completions", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });

    let (status, served, body) = ask(&url).await?;
    assert_eq!((status, served.as_str()), (200, "claude-opus-5"));
    println!(
        "healthy         {}",
        body["choices"][0]["message"]["content"]
    );

    fakes.anthropic.set(Behaviour::Fail { status: 529 });
    let (status, served, body) = ask(&url).await?;
    assert_eq!((status, served.as_str()), (200, "gemini-2.5-pro"));
    println!(
        "Opus overloaded {}",
        body["choices"][0]["message"]["content"]
    );

    for breaker in &breakers {
        breaker.force_open_for(std::time::Duration::from_secs(30));
    }
    let (status, retry_after, _) = ask(&url).await?;
    assert_eq!(status, 503);
    assert!((1..=31).contains(&retry_after.parse::<u64>()?));
    println!("both out        503, Retry-After: {retry_after}");
    Ok(())
}

/// The status, who served or when to come back, and the body.
async fn ask(url: &str) -> Result<(u16, String, Value), BoxError> {
    let body = r#"{"messages": [{"role": "user", "content": "Hello"}]}"#;
    let request = Request::post(url).body(Full::from(body))?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let (head, body) = client.request(request).await?.into_parts();
    let said = head.headers.get("x-served-by");
    let said = said.or(head.headers.get(header::RETRY_AFTER));
    let said = said.map_or("", |v| v.to_str().unwrap_or("")).to_owned();
    let body = body.collect().await?.to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok((head.status.as_u16(), said, body))
}
