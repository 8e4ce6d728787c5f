//! A retry policy of your own: a closure that judges each outcome.
//!
//! Run with `cargo run -p tower-spillway-core --example own_policy`

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::{Request, Response, StatusCode};
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_spillway_core::{
    BoxError, Cause, History, Ledger, Outcome, Report, RetryLayer, Verdict, call::CallLayer,
};

type Body = String;

/// Twice the wait each time; not while the server says that it is in maintenance.
fn policy(past: &History, outcome: &Outcome<'_, Response<Body>>) -> Verdict {
    match outcome.response() {
        Some(response) if response.headers().contains_key("x-maintenance") => {
            Verdict::Stop(Cause::ServerForbids)
        }
        _ => Verdict::Retry {
            after: Duration::from_millis(5) * 2u32.saturating_pow(past.sends),
        },
    }
}

/// Calls a server that answers with these, one after the other.
async fn call(answers: &[(u16, Option<&'static str>)]) -> Result<(StatusCode, Report), BoxError> {
    let calls = AtomicUsize::new(0);
    let server = service_fn(|_: Request<Body>| {
        let answer = answers.get(calls.fetch_add(1, Ordering::SeqCst));
        async move {
            let (status, maintenance) = *answer.ok_or("one call too many")?;
            let mut response = Response::builder().status(status);
            if let Some(until) = maintenance {
                response = response.header("x-maintenance", until);
            }
            Ok::<_, BoxError>(response.body(Body::new())?)
        }
    });
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(Duration::from_secs(5)))
        .layer(RetryLayer::new(policy))
        .service(server);

    let response = client.oneshot(Request::get("/").body(Body::new())?).await?;
    let ledger = response.extensions().get::<Ledger>().ok_or("no ledger")?;
    Ok((response.status(), ledger.report()))
}

fn print(title: &str, report: &Report) {
    println!("{title}");
    for attempt in &report.attempts {
        let status = attempt.status.map_or("-".into(), |s| s.to_string());
        print!("  {status} {}", attempt.class);
        if let Some(wait) = attempt.wait {
            print!(", sent again after {wait:?}");
        }
        if let Some(cause) = attempt.cause {
            print!(", not sent again: {cause}");
        }
        println!();
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let (status, report) = call(&[(503, None), (502, None), (200, None)]).await?;
    print("a server that recovers", &report);
    assert_eq!(status, StatusCode::OK);
    let waits: Vec<_> = report.attempts.iter().map(|a| a.wait).collect();
    let ms = |ms| Some(Duration::from_millis(ms));
    assert_eq!(waits, [ms(10), ms(20), None]);

    let (status, report) = call(&[(503, Some("noon")), (200, None)]).await?;
    print("a server in maintenance", &report);
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let causes: Vec<_> = report.attempts.iter().map(|a| a.cause).collect();
    assert_eq!(causes, [Some(Cause::ServerForbids)]);

    // The closure never says when to end: three sends are the engine's default.
    let (status, report) = call(&[(500, None), (500, None), (500, None), (200, None)]).await?;
    print("a server that stays down", &report);
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    let causes: Vec<_> = report.attempts.iter().map(|a| a.cause).collect();
    assert_eq!(causes, [None, None, Some(Cause::AttemptsExhausted)]);
    Ok(())
}
