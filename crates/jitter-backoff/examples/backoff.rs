//! A service that fails twice, behind jittered backoff. No network.
//!
//! Run with: `cargo run -p tower-jitter-backoff --example backoff`

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt};
use tower_jitter_backoff::JitterBackoffLayer;
use tower_spillway_core::{BoxError, Ledger};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let sends = Arc::new(AtomicU32::new(0));
    let backoff =
        JitterBackoffLayer::exponential(Duration::from_millis(20), Duration::from_secs(1))?;
    let client = ServiceBuilder::new()
        .layer(backoff.max_attempts(4)?)
        .service_fn(move |_: Request<String>| {
            let status = match sends.fetch_add(1, Ordering::Relaxed) {
                0 => 503,
                1 => 429,
                _ => 200,
            };
            let response = Response::builder().status(status).body(String::new());
            std::future::ready(response)
        });

    let started = Instant::now();
    let response = client.oneshot(Request::new("hello".to_owned())).await?;
    let took = started.elapsed();

    assert_eq!(response.status(), 200);
    let ledger = response.extensions().get::<Ledger>().ok_or("no ledger")?;
    let report = ledger.report();
    for attempt in &report.attempts {
        println!(
            "{:?} after {:?}, then waited {:?}",
            attempt.status, attempt.start, attempt.wait
        );
    }
    let statuses: Vec<_> = report.attempts.iter().filter_map(|a| a.status).collect();
    assert_eq!(statuses, [503, 429, 200]);
    // Two waits, each drawn from 1 ms to 20 ms: another class keeps its own streak.
    assert!(
        report.waited >= Duration::from_millis(2) && report.waited <= Duration::from_millis(40)
    );
    assert!(took >= report.waited);
    println!(
        "answered {} after {} sends",
        response.status(),
        report.sends()
    );
    Ok(())
}
