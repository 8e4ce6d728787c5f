//! A target that is down, and what a budget leaves of the retries. No network.
//!
//! Run with: `cargo run -p tower-retry-budget --example budget`

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tower::{Service, ServiceBuilder, ServiceExt};
use tower_retry_budget::{RatioConfig, RetryBudgetLayer};
use tower_spillway_core::{
    BoxError, Carried, Class, Failure, History, Outcome, Plain, RetryLayer, Verdict,
};

const CALLS: u64 = 500;

// Paused time, so that it prints the same on any machine.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    let adapter = Plain(|out: Result<&(), Failure<'_>>| match out {
        Ok(()) => Class::Success,
        Err(_) => Class::Transient,
    });
    // Every fifth call may be sent once more, and 10 retries are always there.
    let budget = RatioConfig::new().ratio(0.2).reserve(10).build()?;
    let sends = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sends);
    let mut client = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget).adapter(adapter))
        .layer(
            RetryLayer::new(|_: &History, _: &Outcome<'_, ()>| Verdict::Retry {
                after: Duration::from_millis(1),
            })
            .adapter(adapter),
        )
        .service_fn(move |_: Carried<u64>| {
            counter.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Err::<(), BoxError>("down".into()))
        });

    for n in 0..CALLS {
        let out = client.ready().await?.call(Carried::new(n)).await;
        // Denied or not, the caller gets the original error.
        assert_eq!(out.err().map(|e| e.to_string()).as_deref(), Some("down"));
    }

    let sends = sends.load(Ordering::Relaxed);
    let after = budget.snapshot();
    println!(
        "{CALLS} calls, {sends} sends; 3 each would be {}",
        CALLS * 3
    );
    println!("{} retries granted, {} denied", after.granted, after.denied);
    assert_eq!(sends, CALLS + CALLS / 5 + 10);
    assert_eq!(after.granted, CALLS / 5 + 10);
    assert!(after.denied > 0);
    Ok(())
}
