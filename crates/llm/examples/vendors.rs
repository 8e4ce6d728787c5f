//! One failover over two vendors that say "not now" in their own ways: Gemini in the body of a 429,
//! Anthropic with a 400 that is an empty account.
//!
//! Run with `cargo run -p tower-spillway-llm --example vendors`.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_spillway_core::{BoxError, Reading, hint::Hint};
use tower_spillway_llm::{
    Price, PriceTable, Rule, Rules, TargetProfile, Usage, Vendor, VendorVerdictLayer,
};

type Body = Full<Bytes>;

/// What a vendor sends, and what the layer makes of it.
async fn read(vendor: Vendor, status: u16, body: &'static str) -> Result<String, BoxError> {
    // A gateway's own code, added to the vendor's table.
    let own = Rule::new("gateway_busy", tower_spillway_core::Class::Transient).codes(["gw-17"]);
    let rules = Rules::of(vendor).with(own).larger_context_elsewhere(true);
    let client = ServiceBuilder::new()
        .layer(VendorVerdictLayer::with_rules(rules))
        .service(service_fn(move |_: Request<Body>| async move {
            let response = Response::builder().status(status);
            Ok::<_, BoxError>(response.body(Body::from(body))?)
        }));
    let response = client.oneshot(Request::new(Body::default())).await?;
    let reading = response.extensions().get::<Reading>().cloned();
    // Whatever was read, the caller gets it.
    assert_eq!(response.into_body().collect().await?.to_bytes(), body);
    let Some(reading) = reading else {
        return Ok(format!("{vendor} {status}: an answer"));
    };
    let wait = match reading.hint().and_then(Hint::after) {
        Some(wait) => format!(", again in {:.1} s", Duration::as_secs_f64(&wait)),
        None => String::new(),
    };
    let reason = reading.reason().unwrap_or("no reason");
    Ok(format!(
        "{vendor} {status}: {} ({reason}){wait}",
        reading.class()
    ))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut lines = Vec::new();
    for (vendor, status, body) in [
        (
            Vendor::GeminiCompat,
            429,
            r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
                {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"45.837906927s"}]}}]"#,
        ),
        (
            Vendor::GeminiCompat,
            429,
            r#"[{"error":{"code":429,"message":"Quota exceeded, limit: 0. Please retry in 59s."}}]"#,
        ),
        (
            Vendor::AnthropicCompat,
            400,
            r#"{"error":{"code":"invalid_request_error","message":"Your credit balance is too low"}}"#,
        ),
        (
            Vendor::AnthropicCompat,
            400,
            r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        ),
        (Vendor::OpenAi, 400, r#"{"error":{"code":"gw-17"}}"#),
        (
            Vendor::OpenRouter,
            200,
            r#"{"error":{"code":502,"message":"Provider returned error"}}"#,
        ),
        (
            Vendor::OpenAi,
            200,
            r#"{"choices":[{"message":{"content":"hi"}}]}"#,
        ),
    ] {
        lines.push(read(vendor, status, body).await?);
    }

    // What a caller asked of Opus, for Gemini.
    let gemini = TargetProfile::gemini_compat("gemini-2.5-pro");
    let asked = Bytes::from(r#"{"model":"claude-opus-5","messages":[],"logit_bias":{}}"#);
    lines.push(String::from_utf8(gemini.rewrite_bytes(&asked).into())?);

    // What an answer cost.
    let prices =
        PriceTable::new("2026-09-01")?.with("gemini-2.5-pro", Price::per_million("1.25", "10")?);
    let answer: Value =
        serde_json::from_str(r#"{"usage":{"prompt_tokens":1000,"completion_tokens":200}}"#)?;
    let usage = Usage::of_value(&answer).ok_or("no usage")?;
    let cost = prices.cost("gemini-2.5-pro", &usage).ok_or("no price")?;
    lines.push(format!("{usage}: {cost} at prices of {}", prices.date()));

    let output = lines.join("\n");
    println!("{output}");
    assert_eq!(
        output,
        "\
gemini-openai-compat 429: throttled (resource_exhausted), again in 45.8 s
gemini-openai-compat 429: target_down (limit_zero)
anthropic-openai-compat 400: target_down (credit_balance_too_low)
anthropic-openai-compat 400: not_here (context_length_exceeded)
openai 400: transient (gateway_busy)
openrouter 200: transient (failed)
openai 200: an answer
{\"model\":\"gemini-2.5-pro\",\"messages\":[]}
1000 in, 200 out: $0.00325 at prices of 2026-09-01"
    );
    Ok(())
}
