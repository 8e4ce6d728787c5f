//! A reverse proxy on axum that streams both ways and sends again what failed upstream.
//!
//! Request bodies are axum's, which cannot be cloned: `ReplayLayer` records each while it is first
//! sent, so that it can be sent again.
//!
//! Run with `cargo run -p axum-proxy -- 127.0.0.1:3000 http://upstream.example`.

use std::{env, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderName, Request, StatusCode, Uri, header, uri::PathAndQuery};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_spillway::prelude::*;

type Upstream = BoxCloneSyncService<Request<Body>, Response, BoxError>;

/// Of one connection only (RFC 9110 7.6.1), or set anew for the next.
const NOT_FORWARDED: [HeaderName; 6] = [
    header::CONNECTION,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The layers over hyper-util's client.
fn upstream() -> Upstream {
    let stack = ServiceBuilder::new()
        .map_response(|response: Response<_>| response.map(Body::new))
        .layer(CallLayer::new().deadline(Duration::from_secs(30)))
        .layer(ReplayLayer::new())
        .layer(JitterBackoffLayer::new())
        .layer(RetryAfterLayer::new())
        .layer(CircuitBreakerLayer::new())
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(8)))
        // The client takes axum's body again.
        .layer(MapRequestBodyLayer::new(Body::new))
        .service(Client::builder(TokioExecutor::new()).build_http());
    BoxCloneSyncService::new(stack)
}

fn proxy(to: Uri) -> Router {
    Router::new().fallback(forward).with_state((to, upstream()))
}

async fn forward(
    State((to, upstream)): State<(Uri, Upstream)>,
    mut request: Request<Body>,
) -> Response {
    let mut parts = to.into_parts();
    parts.path_and_query = request.uri().path_and_query().cloned();
    parts
        .path_and_query
        .get_or_insert(PathAndQuery::from_static("/"));
    let Ok(uri) = Uri::from_parts(parts) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    for name in &NOT_FORWARDED {
        request.headers_mut().remove(name);
    }
    match upstream.oneshot(request).await {
        Ok(response) => response,
        Err(error) if error.is::<TimedOut>() => StatusCode::GATEWAY_TIMEOUT.into_response(),
        Err(error) if error.is::<Refused>() => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = env::args().skip(1);
    let mut next = || args.next().ok_or("give an address and the upstream's URL");
    let listener = tokio::net::TcpListener::bind(next()?).await?;
    Ok(axum::serve(listener, proxy(next()?.parse()?)).await?)
}

#[cfg(test)]
mod tests;
