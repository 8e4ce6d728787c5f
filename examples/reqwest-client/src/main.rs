//! reqwest under the layers: a file is streamed up, and sent again when it must be.
//!
//! reqwest's requests and responses are turned into those of `http` and back at the bottom of the
//! stack, so that everything above reads status and headers as with any other client.
//!
//! Run with `cargo run -p reqwest-client -- http://127.0.0.1:8080/upload file`.

use std::{env, time::Duration};

use http::{Request, Response};
use reqwest::{Body, Client};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_spillway::prelude::*;

/// The layers over a client.
fn stack(
    client: Client,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = BoxError> + Clone {
    let send = service_fn(move |request: Request<ReplayBody<Body>>| {
        let client = client.clone();
        async move {
            let request = request.map(Body::wrap).try_into()?;
            let response = client.execute(request).await?;
            Ok::<_, reqwest::Error>(Response::from(response))
        }
    });
    ServiceBuilder::new()
        .layer(CallLayer::new().deadline(Duration::from_secs(60)))
        // A streamed body of reqwest cannot be cloned.
        .layer(ReplayLayer::new())
        .layer(JitterBackoffLayer::new())
        .layer(RetryAfterLayer::new())
        .layer(CircuitBreakerLayer::new())
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(10)))
        .service(send)
}

/// One upload: reqwest's response again, with all that reqwest can do with it, and the report.
async fn upload<S>(
    service: S,
    url: &str,
    body: impl Into<Body>,
) -> Result<(reqwest::Response, Option<Report>), BoxError>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError>,
{
    let request = Request::put(url).body(body.into())?;
    let response = service.oneshot(request).await?;
    let report = response.extensions().get::<Ledger>().map(Ledger::report);
    Ok((response.into(), report))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = env::args().skip(1);
    let mut next = || args.next().ok_or("give a URL and a file");
    let (url, file) = (next()?, tokio::fs::File::open(next()?).await?);
    let (response, report) = upload(stack(Client::new()), &url, file).await?;
    println!("{}", response.status());
    for attempt in report.iter().flat_map(|report| &report.attempts) {
        eprintln!("{:?} {} {:?}", attempt.status, attempt.class, attempt.cause);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
