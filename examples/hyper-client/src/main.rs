//! hyper-util's client under the full stack: one call that goes on to a fallback when it must.
//!
//! Run with `cargo run -p hyper-client -- http://primary.example/ http://fallback.example/ question`.

use std::{env, time::Duration};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_spillway::{core::in_flight::InFlightLayer, prelude::*};

/// `Full` is `Clone`, so that no `ReplayLayer` is needed.
type Ask = Request<Full<Bytes>>;

/// The whole stack over a primary and a fallback.
fn stack(
    targets: [(&'static str, Uri); 2],
) -> Result<
    impl Service<
        Ask,
        Response = Response<impl Body<Data = Bytes, Error: Into<BoxError>>>,
        Error = BoxError,
    > + Clone,
    BoxError,
> {
    let client: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    // Used for each target; breakers, permits and holds are kept apart by the targets' names.
    let target = ServiceBuilder::new()
        .layer(JitterBackoffLayer::new())
        .layer(RetryAfterLayer::new())
        .layer(CircuitBreakerLayer::new())
        .layer(InFlightLayer::new(50)?)
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(8)))
        .service(client);
    let targets = targets.map(|(name, uri)| {
        Target::new(name, target.clone())
            // A POST that may have been processed is sent again all the same: asking twice is fine.
            .retry_ambiguous(true)
            .prepare(move |request: &mut Ask| {
                *request.uri_mut() = uri.clone();
                Ok(())
            })
    });
    Ok(ServiceBuilder::new()
        .layer(CallLayer::new().deadline(Duration::from_secs(60)))
        .layer(RetryBudgetLayer::per_call(Duration::from_secs(10), 6)?)
        .service(FailoverService::new(targets)?))
}

/// One call: the answer, and what it took.
async fn ask<S, B>(client: S, question: String) -> Result<(Bytes, Report), BoxError>
where
    S: Service<Ask, Response = Response<B>, Error = BoxError>,
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let response = client
        .oneshot(Request::post("/").body(question.into())?)
        .await?;
    let report = response.extensions().get::<Ledger>().map(Ledger::report);
    let report = report.ok_or("no ledger")?;
    let answer = response.into_body().collect().await.map_err(Into::into)?;
    Ok((answer.to_bytes(), report))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = env::args().skip(1);
    let mut next = || args.next().ok_or("give two URLs and a question");
    let targets = [
        ("primary", next()?.parse()?),
        ("fallback", next()?.parse()?),
    ];
    let (answer, report) = ask(stack(targets)?, next()?).await?;
    println!("{}", String::from_utf8_lossy(&answer));
    for attempt in &report.attempts {
        eprintln!("{:?} {}", attempt.target, attempt.class);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
