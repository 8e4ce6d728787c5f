//! A service that says when to come back, and one that asks for too long. No network.
//!
//! Run with: `cargo run -p tower-retry-after --example retry_after`

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use tower::{ServiceBuilder, ServiceExt};
use tower_retry_after::RetryAfterLayer;
use tower_spillway_core::{BoxError, Cause, Ledger};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let sends = Arc::new(AtomicU32::new(0));
    let client = ServiceBuilder::new()
        .layer(RetryAfterLayer::new().longest_wait(Duration::from_secs(30)))
        .service_fn(move |request: Request<String>| {
            let response = Response::builder();
            let response = match request.uri().path() {
                "/soon" if sends.fetch_add(1, Ordering::Relaxed) == 0 => {
                    response.status(429).header("retry-after-ms", "200")
                }
                "/tomorrow" => response.status(429).header("retry-after", "86400"),
                _ => response.status(200),
            };
            std::future::ready(response.body(String::new()))
        });

    let request = Request::get("/soon").body(String::new())?;
    let response = client.clone().oneshot(request).await?;
    let ledger = response.extensions().get::<Ledger>().ok_or("no ledger")?;
    let report = ledger.report();
    println!(
        "/soon: {} after {} sends and a wait of {:?}",
        response.status(),
        report.sends(),
        report.waited
    );
    assert_eq!((response.status().as_u16(), report.sends()), (200, 2));
    // Never early, and at most half as long again.
    assert!(report.waited >= Duration::from_millis(200));
    assert!(report.waited <= Duration::from_millis(300));

    let request = Request::get("/tomorrow").body(String::new())?;
    let response = client.oneshot(request).await?;
    let ledger = response.extensions().get::<Ledger>().ok_or("no ledger")?;
    let report = ledger.report();
    let cause = report.attempts.first().and_then(|attempt| attempt.cause);
    println!("/tomorrow: {} at once, since {cause:?}", response.status());
    assert_eq!((response.status().as_u16(), report.sends()), (429, 1));
    assert_eq!(
        response.headers().get("retry-after").map(|v| v.as_bytes()),
        Some(&b"86400"[..])
    );
    assert_eq!(cause, Some(Cause::HintTooLong));
    Ok(())
}
