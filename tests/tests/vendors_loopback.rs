//! What the stack does with what vendors say, over real HTTP.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use common::{
    Req, Res, answer, post,
    server::{Act, Server, client},
    timed,
};
use http_body_util::BodyExt;
use tower::{Service, ServiceBuilder, ServiceExt, util::BoxCloneService};
use tower_spillway::{
    circuit_breaker::{BreakerConfig, State},
    core::Report,
    prelude::*,
};
use tower_spillway_llm::{Vendor, VendorVerdictLayer};

const TOO_LONG: &str = r#"{"error":{"code":"invalid_request_error","type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
const SPEND_LIMIT: &str = r#"{"error":{"code":"invalid_request_error","type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-10-01 at 00:00 UTC."}}"#;
const BAD_KEY: &str = r#"{"error":{"code":"authentication_error","message":"invalid x-api-key"}}"#;
const ANSWER: &str =
    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}],"usage":{}}"#;

fn json(status: u16, body: impl Into<String>) -> Res {
    let mut response = answer(status, &[("content-type", "application/json")]);
    *response.body_mut() = body.into().into();
    response
}

async fn saying(status: u16, body: &'static str) -> Server {
    Server::start(move |_| Act::Answer(json(status, body))).await
}

/// Opus before Gemini, each with its vendor's table.
struct Stack {
    client: BoxCloneService<Req, http::Response<Vec<u8>>, BoxError>,
    breakers: CircuitBreakerLayer,
}

fn stack(opus: &Server, gemini: &Server, larger_context: bool) -> Stack {
    let breakers = CircuitBreakerLayer::with_config(BreakerConfig::new().failures(3)).unwrap();
    let target = |vendor| {
        ServiceBuilder::new()
            .layer(JitterBackoffLayer::new())
            .layer(RetryAfterLayer::new())
            .layer(breakers.clone())
            .layer(VendorVerdictLayer::new(vendor).larger_context_elsewhere(larger_context))
            .service(client())
    };
    let to = |server: &Server| {
        let uri = server.uri("/");
        move |request: &mut Req| {
            *request.uri_mut() = uri.clone();
            Ok(())
        }
    };
    let failover = FailoverService::new([
        Target::new("opus", target(Vendor::AnthropicCompat))
            .prepare(to(opus))
            .retry_ambiguous(true),
        Target::new("gemini", target(Vendor::GeminiCompat)).prepare(to(gemini)),
    ]);
    let client = failover.unwrap().map_future(|call| async {
        let (parts, body) = call.await?.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        Ok(http::Response::from_parts(parts, body))
    });
    Stack {
        client: BoxCloneService::new(client),
        breakers,
    }
}

impl Stack {
    async fn send(&mut self) -> (http::Response<Vec<u8>>, Report) {
        let response = self
            .client
            .ready()
            .await
            .unwrap()
            .call(post())
            .await
            .unwrap();
        let report = response.extensions().get::<Ledger>().unwrap().report();
        (response, report)
    }
}

#[tokio::test]
async fn a_gemini_429_whose_only_hint_is_in_the_body_is_waited_out() {
    let turn = AtomicUsize::new(0);
    let gemini = Server::start(move |_| {
        Act::Answer(match turn.fetch_add(1, Ordering::SeqCst) {
            0 => json(
                429,
                r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
                {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.250300001s"}]}}]"#,
            ),
            _ => json(200, ANSWER),
        })
    })
    .await;
    let down = saying(401, BAD_KEY).await;
    let mut stack = stack(&down, &gemini, false);
    let ((response, report), took) = timed(stack.send()).await;
    assert_eq!(response.status(), 200);
    let wait = report.attempts[1].wait.unwrap();
    let asked = Duration::from_millis(251);
    assert!((asked..=asked * 3 / 2).contains(&wait), "{wait:?}");
    assert!(took >= asked, "not a millisecond early: {took:?}");
}

#[tokio::test]
async fn a_spend_limit_reaches_gemini_in_one_hop() {
    let (opus, gemini) = (saying(400, SPEND_LIMIT).await, saying(200, ANSWER).await);
    let (response, report) = stack(&opus, &gemini, false).send().await;
    assert_eq!(response.body(), ANSWER.as_bytes());
    assert_eq!((opus.log().len(), gemini.log().len()), (1, 1));
    assert_eq!(report.fallback_reason.unwrap().class, Class::TargetDown);
}

#[tokio::test]
async fn an_oversized_prompt_comes_back_as_the_vendors_own_400() {
    let (opus, gemini) = (saying(400, TOO_LONG).await, saying(200, ANSWER).await);
    let mut stack = stack(&opus, &gemini, false);
    let (response, report) = stack.send().await;
    assert_eq!(response.status(), 400);
    assert_eq!(response.body(), TOO_LONG.as_bytes());
    assert_eq!(report.sends(), 1);
    assert_eq!(
        stack.breakers.breaker("opus").snapshot().failures_in_a_row,
        0
    );
}

#[tokio::test]
async fn an_oversized_prompt_goes_to_the_larger_context_in_one_hop() {
    let (opus, gemini) = (saying(400, TOO_LONG).await, saying(200, ANSWER).await);
    let mut stack = stack(&opus, &gemini, true);
    for _ in 0..5 {
        let (response, report) = stack.send().await;
        assert_eq!(response.status(), 200);
        assert_eq!(report.attempts[0].class, Class::NotHere);
    }
    assert_eq!(stack.breakers.breaker("opus").state(), State::Closed);
    assert_eq!((opus.log().len(), gemini.log().len()), (5, 5));
}

#[tokio::test]
async fn a_401_of_one_target_leaves_the_other_serving_and_the_breaker_held() {
    let (opus, gemini) = (saying(401, BAD_KEY).await, saying(200, ANSWER).await);
    let mut stack = stack(&opus, &gemini, false);
    for _ in 0..5 {
        assert_eq!(stack.send().await.0.status(), 200);
    }
    assert_eq!((opus.log().len(), gemini.log().len()), (1, 5));
    let held = stack.breakers.breaker("opus").snapshot();
    assert_eq!(held.state, State::Open);
    assert_eq!(stack.breakers.breaker("gemini").state(), State::Closed);
}
