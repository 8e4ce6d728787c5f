//! async-openai over the layers: a chat that goes on to another vendor when it must.
//!
//! The crate takes a tower service in place of its own HTTP client and retries. Here its requests
//! are turned into those of `http`, so that the layers read status and headers, and each target
//! gets its URL, its key and its model.
//!
//! Run with `cargo run -p async-openai-client -- question`; the two vendors are in `PRIMARY` and
//! `FALLBACK`, each as `base-url key model`. Over https reqwest wants its TLS: see Cargo.toml.

use std::{env, time::Duration};

use async_openai::{
    Client,
    config::OpenAIConfig,
    middleware::HttpRequestFactory,
    types::chat::{ChatCompletionRequestUserMessage, CreateChatCompletionRequest},
};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_spillway::prelude::*;

/// One that speaks OpenAI's chat completions.
struct Vendor {
    name: &'static str,
    base: String,
    key: String,
    model: String,
}

impl Vendor {
    fn of_env(name: &'static str) -> Result<Self, BoxError> {
        let text = env::var(name)?;
        let mut words = text.split_whitespace().map(str::to_owned);
        let mut next = || words.next().ok_or("give `base-url key model`");
        let (base, key, model) = (next()?, next()?, next()?);
        Ok(Self {
            name,
            base,
            key,
            model,
        })
    }

    /// Makes a request fit.
    fn prepare(&self, request: &mut Request<Bytes>) -> Result<(), BoxError> {
        *request.uri_mut() = format!("{}{}", self.base, request.uri().path()).parse()?;
        let key = format!("Bearer {}", self.key).parse()?;
        request.headers_mut().insert(header::AUTHORIZATION, key);
        let mut body: Value = serde_json::from_slice(request.body())?;
        let model = body.get_mut("model").ok_or("no model")?;
        *model = self.model.as_str().into();
        *request.body_mut() = serde_json::to_vec(&body)?.into();
        Ok(())
    }
}

/// The crate's client over the layers.
fn client(vendors: [Vendor; 2]) -> Result<Client<OpenAIConfig>, BoxError> {
    let client = reqwest::Client::new();
    let send = service_fn(move |request: Request<Bytes>| {
        let client = client.clone();
        async move {
            let response = client.execute(request.try_into()?).await?;
            Ok::<_, reqwest::Error>(Response::<reqwest::Body>::from(response))
        }
    });
    let target = ServiceBuilder::new()
        .layer(JitterBackoffLayer::new())
        .layer(RetryAfterLayer::new())
        .layer(CircuitBreakerLayer::new())
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(20)))
        .service(send);
    let targets = vendors.map(|vendor| {
        Target::new(vendor.name, target.clone())
            .model(vendor.model.as_str())
            .retry_ambiguous(true)
            .prepare(move |request| vendor.prepare(request))
    });
    let stack = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(Duration::from_secs(60)))
        .service(FailoverService::new(targets)?);
    let service = service_fn(move |factory: HttpRequestFactory| {
        let stack = stack.clone();
        async move {
            let request: Request<reqwest::Body> = factory.build().await?.try_into()?;
            let (parts, body) = request.into_parts();
            // In one piece: a chat is small, and each vendor gets its own model in it.
            let body = body.collect().await?.to_bytes();
            let response = stack.oneshot(Request::from_parts(parts, body)).await?;
            if let Some(ledger) = response.extensions().get::<Ledger>() {
                let report = ledger.report();
                eprintln!(
                    "{:?} in {} ms, {} sends",
                    report.model,
                    report.latency_ms(),
                    report.sends()
                );
            }
            Ok::<_, BoxError>(reqwest::Response::from(response))
        }
    });
    // Only the path of the base and the model remain to be set for each vendor.
    let config = OpenAIConfig::new()
        .with_api_base("http://target")
        .with_api_key("");
    Ok(Client::with_config(config).with_http_service(service))
}

fn question(text: &str) -> CreateChatCompletionRequest {
    CreateChatCompletionRequest {
        model: "set for each vendor".into(),
        messages: vec![ChatCompletionRequestUserMessage::from(text).into()],
        ..CreateChatCompletionRequest::default()
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = client([Vendor::of_env("PRIMARY")?, Vendor::of_env("FALLBACK")?])?;
    let text = env::args().nth(1).ok_or("give a question")?;
    let answer = client.chat().create(question(&text)).await?;
    let choice = answer.choices.first().ok_or("no answer")?;
    println!("{}", choice.message.content.as_deref().unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests;
