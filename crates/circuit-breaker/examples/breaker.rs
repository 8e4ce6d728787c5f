//! An outage of a minute, on a clock that is not waited for.
//!
//! Run with `cargo run -p tower-circuit-breaker --example breaker`.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::time::Instant;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_circuit_breaker::{BreakerConfig, CircuitBreakerLayer, Refused, State};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let begin = Instant::now();
    let layer = CircuitBreakerLayer::with_config(
        BreakerConfig::new()
            .failures(3)
            .open_time(5 * SECOND)
            .jitter(0.0),
    )?;
    let breaker = layer.unnamed_breaker();
    let mut client = ServiceBuilder::new()
        .layer(layer)
        .service(tower::service_fn(move |_: Request<String>| {
            let down = (10..70).contains(&begin.elapsed().as_secs());
            let status = if down {
                StatusCode::BAD_GATEWAY
            } else {
                StatusCode::OK
            };
            let mut response = Response::new(String::new());
            *response.status_mut() = status;
            async { Ok::<_, std::convert::Infallible>(response) }
        }));

    let (mut served, mut failed, mut refused) = (0, 0, 0);
    let mut changes = Vec::new();
    let mut state = breaker.state();
    // One call a second for two minutes.
    for _ in 0..120 {
        match client
            .ready()
            .await?
            .call(Request::new(String::new()))
            .await
        {
            Ok(response) if response.status().is_success() => served += 1,
            Ok(_) => failed += 1,
            Err(error) => {
                let refusal = Refused::find(&*error).ok_or("an error that is no refusal")?;
                assert!(refusal.wait().is_some());
                refused += 1;
            }
        }
        if breaker.state() != state {
            state = breaker.state();
            changes.push((begin.elapsed().as_secs(), state));
            println!("{:>3} s  {state}", begin.elapsed().as_secs());
        }
        tokio::time::sleep(SECOND).await;
    }
    println!("served {served}, failed {failed}, refused {refused}");

    // Three failures, then probes 5, 10, 20 and 40 s apart; the fourth finds the target back.
    assert_eq!(failed, 3 + 3);
    assert_eq!(
        changes,
        [
            (12, State::Open),
            (87, State::HalfOpen),
            (88, State::Closed)
        ]
    );
    assert_eq!((served, failed + refused), (43, 77));
    Ok(())
}
