//! The layers for LLM vendors come with the prelude.
#![cfg(feature = "llm")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};
use tower_spillway::prelude::*;

/// A target that answers so.
fn vendor(
    status: StatusCode,
    content_type: &'static str,
    body: &'static str,
) -> BoxCloneSyncService<Request<Full<Bytes>>, Response<Full<Bytes>>, BoxError> {
    BoxCloneSyncService::new(service_fn(move |_| async move {
        let response = Response::builder()
            .status(status)
            .header("content-type", content_type);
        Ok(response.body(Full::from(body))?)
    }))
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_a_stream_goes_to_the_next_target() {
    let stack = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(JitterBackoffLayer::new())
        .layer(RetryAfterLayer::new())
        .layer(CircuitBreakerLayer::new())
        .layer(StreamGuardLayer::new(Vendor::OpenAi))
        .layer(VendorVerdictLayer::new(Vendor::OpenAi))
        .layer(InFlightLayer::new(50).unwrap());
    let events = "text/event-stream";
    let broken =
        "data: {\"error\":{\"code\":\"insufficient_quota\",\"message\":\"none left\"}}\n\n";
    let good = concat!(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n"
    );
    let client = FailoverService::new([
        Target::new("one", stack.service(vendor(StatusCode::OK, events, broken))),
        Target::new("two", stack.service(vendor(StatusCode::OK, events, good))),
    ])
    .unwrap();

    let request = Request::post("/v1/chat/completions").body(Full::default());
    let response = client.oneshot(request.unwrap()).await.unwrap();
    let report = response.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(report.target.unwrap().as_str(), "two");
    let reason = report.fallback_reason.unwrap();
    assert_eq!(reason.class, Class::TargetDown);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, good);
}
