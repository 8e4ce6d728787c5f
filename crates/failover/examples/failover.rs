//! Two upstreams, the first of them overloaded.
//!
//! Run with `cargo run -p tower-failover --example failover`

use http::{Request, Response, StatusCode};
use tower::{ServiceExt, service_fn, util::BoxCloneService};
use tower_failover::{FailoverService, Target};
use tower_spillway_core::{BoxError, Ledger};

type Req = Request<String>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let opus = service_fn(|_: Req| async {
        let mut response = Response::new("overloaded".to_string());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Ok::<_, BoxError>(response)
    });
    let gemini = service_fn(|request: Req| async move {
        Ok::<_, BoxError>(Response::new(format!("{} answers", request.uri())))
    });
    let to = |uri: &'static str, key: &'static str| {
        move |request: &mut Req| {
            *request.uri_mut() = uri.parse()?;
            request.headers_mut().insert("authorization", key.parse()?);
            Ok(())
        }
    };
    let client = FailoverService::new([
        Target::new("opus", BoxCloneService::new(opus))
            .prepare(to("https://opus.example/chat", "Bearer opus-key")),
        Target::new("gemini", BoxCloneService::new(gemini))
            .prepare(to("https://gemini.example/chat", "Bearer gemini-key")),
    ])?;

    let response = client
        .oneshot(Request::post("/chat").body("hi".to_string())?)
        .await?;
    assert_eq!(response.body(), "https://gemini.example/chat answers");

    let ledger = response.extensions().get::<Ledger>().ok_or("no ledger")?;
    let report = ledger.report();
    for attempt in &report.attempts {
        println!(
            "{:?}: {:?} {}",
            attempt.target, attempt.status, attempt.class
        );
    }
    let reason = report.fallback_reason.ok_or("no fallback")?.to_string();
    println!("fallback because of {reason}");
    assert_eq!(reason, "opus: transient");
    Ok(())
}
