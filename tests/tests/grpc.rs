//! Over loopback HTTP/2: gRPC statuses in trailers, as retries, failover and breakers see them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

#[path = "grpc/server.rs"]
mod server;

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use server::{Act, MESSAGE, Server};
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_circuit_breaker::{BreakerConfig, CircuitBreakerLayer, State};
use tower_failover::{FailoverService, Target};
use tower_spillway::prelude::*;
use tower_spillway_core::grpc_status::FirstFrameBody;

type Req = Request<Full<Bytes>>;
type Res = Response<FirstFrameBody<Incoming>>;
type Stack = BoxCloneSyncService<Req, Res, BoxError>;

const OK: Act = Act::End(1, &[("grpc-status", "0")]);
const MS: Duration = Duration::from_millis(1);
const UNAVAILABLE: Act = Act::End(0, &[("grpc-status", "14")]);
const BUSY: Act = Act::End(
    0,
    &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "40")],
);
const NEVER: Act = Act::End(
    0,
    &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "-1")],
);

fn client() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http()
}

/// Retries that may send again what may have been processed.
fn stack(limit: Duration) -> Stack {
    let http = Http::new().retry_ambiguous(true);
    let backoff = JitterBackoffLayer::exponential(MS, 5 * MS).unwrap();
    Stack::new(
        ServiceBuilder::new()
            .layer(backoff.adapter(http.clone()))
            .layer(RetryAfterLayer::new().adapter(http))
            .layer(AttemptTimeoutLayer::to_head(limit))
            .layer(GrpcStatusLayer::new().within(Duration::MAX))
            .service(client()),
    )
}

fn request(uri: &Uri) -> Req {
    let request = Request::post(uri).header("content-type", "application/grpc");
    request.body(Full::from("question")).unwrap()
}

fn report(response: &Res) -> Report {
    response.extensions().get::<Ledger>().unwrap().report()
}

/// What it was, whole: the status at its end, and the messages before it.
async fn read(response: Res) -> (String, Bytes) {
    assert_eq!(response.status(), 200);
    assert!(response.headers().get("grpc-status").is_none());
    let body = response.into_body().collect().await.unwrap();
    let status = body.trailers().unwrap()["grpc-status"].to_str().unwrap();
    (status.to_owned(), body.to_bytes())
}

fn served() -> (String, Bytes) {
    ("0".to_owned(), Bytes::from_static(MESSAGE))
}

#[tokio::test]
async fn unavailable_after_the_head_alone_is_sent_again() {
    let server = Server::start(&[UNAVAILABLE, UNAVAILABLE, OK]).await;
    let response = stack(9000 * MS).oneshot(request(&server.uri())).await;
    let response = response.unwrap();
    let report = report(&response);
    assert_eq!((report.sends(), server.requests()), (3, 3));
    let first = &report.attempts[0];
    assert_eq!((first.class, first.status), (Class::Transient, Some(200)));
    assert_eq!(read(response).await, served());
}

#[tokio::test]
async fn the_servers_pushback_is_waited_out() {
    let server = Server::start(&[BUSY, OK]).await;
    let response = stack(9000 * MS).oneshot(request(&server.uri())).await;
    let response = response.unwrap();
    let first = &report(&response).attempts[0];
    assert_eq!(first.class, Class::Throttled);
    // The hint, and at most half of it more.
    let wait = first.wait.unwrap();
    assert!((40 * MS..=60 * MS).contains(&wait), "{wait:?}");
    assert_eq!(read(response).await, served());
}

#[tokio::test]
async fn a_pushback_that_forbids_gives_the_caller_the_status() {
    let server = Server::start(&[NEVER, OK]).await;
    let response = stack(9000 * MS).oneshot(request(&server.uri())).await;
    let response = response.unwrap();
    let report = report(&response);
    assert_eq!((report.sends(), server.requests()), (1, 1));
    assert_eq!(report.attempts[0].cause, Some(Cause::ServerForbids));
    assert_eq!(read(response).await, ("14".to_owned(), Bytes::new()));
}

#[tokio::test]
async fn after_a_message_nothing_is_sent_again() {
    let server = Server::start(&[Act::End(1, &[("grpc-status", "14")]), OK]).await;
    let response = stack(9000 * MS).oneshot(request(&server.uri())).await;
    let response = response.unwrap();
    assert_eq!((report(&response).sends(), server.requests()), (1, 1));
    let message = Bytes::from_static(MESSAGE);
    assert_eq!(read(response).await, ("14".to_owned(), message));
}

#[tokio::test]
async fn a_stream_that_is_reset_before_its_first_frame_is_sent_again() {
    let server = Server::start(&[Act::Reset, OK]).await;
    let response = stack(9000 * MS).oneshot(request(&server.uri())).await;
    let response = response.unwrap();
    let first = &report(&response).attempts[0];
    assert_eq!((first.class, first.status), (Class::Transient, None));
    assert_eq!(read(response).await, served());
}

#[tokio::test]
async fn a_breaker_and_a_failover_hear_it() {
    let (primary, fallback) = (
        Server::start(&[UNAVAILABLE]).await,
        Server::start(&[OK]).await,
    );
    let breaker = CircuitBreakerLayer::with_config(BreakerConfig::new().failures(3)).unwrap();
    let targets = [("primary", &primary), ("fallback", &fallback)].map(|(name, server)| {
        let (uri, breaker) = (server.uri(), breaker.clone());
        let stack = ServiceBuilder::new()
            .layer(breaker)
            .layer(GrpcStatusLayer::new())
            .service(client());
        Target::new(name, stack)
            .prepare(move |request: &mut Req| {
                *request.uri_mut() = uri.clone();
                Ok(())
            })
            .retry_ambiguous(true)
    });
    let failover = FailoverService::new(targets).unwrap();
    for n in 0..5 {
        let response = failover.clone().oneshot(request(&primary.uri())).await;
        assert_eq!(read(response.unwrap()).await, served());
        assert_eq!(primary.requests(), 3.min(n + 1));
    }
    assert_eq!(breaker.breaker("primary").state(), State::Open);
    assert_eq!(breaker.breaker("fallback").state(), State::Closed);
}

#[tokio::test]
async fn a_stream_whose_first_message_is_late_is_given_on() {
    let server = Server::start(&[Act::Late(&[("grpc-status", "0")])]).await;
    let client = ServiceBuilder::new()
        .layer(JitterBackoffLayer::new())
        .layer(GrpcStatusLayer::new().within(20 * MS))
        .service(client());
    // The message comes only once the caller has the head.
    let head = timeout(9000 * MS, client.oneshot(request(&server.uri()))).await;
    let response = head.unwrap().unwrap();
    server.go_on();
    assert_eq!(read(response).await, served());
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_stream_that_stalls_is_left_with_its_attempt() {
    let server = Server::start(&[Act::Stall, OK]).await;
    let response = stack(1000 * MS).oneshot(request(&server.uri())).await;
    let response = response.unwrap();
    let first = &report(&response).attempts[0];
    assert_eq!((first.class, first.status), (Class::Transient, None));
    assert_eq!(read(response).await, served());
    // The first stream was cancelled at the server too.
    server.closed().await;
}

#[tokio::test]
async fn a_caller_that_leaves_cancels_the_stream() {
    let server = Server::start(&[Act::Stall]).await;
    let call = tokio::spawn(stack(9000 * MS).oneshot(request(&server.uri())));
    while server.requests() == 0 {
        tokio::time::sleep(MS).await;
    }
    assert!(!call.is_finished());
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    server.closed().await;
}
