//! Reports of what lies below a target's layers, each a test named after its row in `bugs.jsonl`:
//! kinds `tower` and `transport`, and the slot that a stream holds.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;
mod streams;

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bytes::Bytes;
use common::{Body, Req, Res, SECOND, Upstream, always, answer, get, send};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use streams::{Do, Told};
use tokio::{net::TcpListener, task::JoinSet};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer};
use tower_spillway::{
    circuit_breaker::State,
    core::testing::{
        contract::ReadyProbeLayer,
        readiness::Readiness,
        script::{Script, Step},
    },
    prelude::*,
};

const MILLI: Duration = Duration::from_millis(1);

/// Every attempt is made on a service that said it is ready, over one that has a single slot and one
/// that panics otherwise.
#[tokio::test(start_paused = true)]
async fn retry_without_poll_ready() {
    async fn retried<L>(layer: L)
    where
        L: Layer<Probed>,
        L::Service: Service<Req, Response = Res, Error = BoxError>,
    {
        let upstream: Upstream = Script::new(
            [500, 200]
                .map(|status| Step::answer(answer(status, &[("retry-after", "1")])).after(MILLI)),
        );
        let probe = ReadyProbeLayer::pending_once();
        let probed = ServiceBuilder::new()
            .layer(ConcurrencyLimitLayer::new(1))
            .layer(probe.clone())
            .service(upstream.clone());
        let mut client = layer.layer(probed);
        assert_eq!(send(&mut client, get()).await.status(), 200);
        assert_eq!(upstream.calls(), 2);
        drop(client);
        assert_eq!(probe.reserved(), 0);
    }
    type Probed = tower::limit::ConcurrencyLimit<
        tower_spillway::core::testing::contract::ReadyProbe<Upstream>,
    >;
    retried(JitterBackoffLayer::new()).await;
    retried(RetryAfterLayer::new()).await;
    retried((JitterBackoffLayer::new(), RetryAfterLayer::new())).await;
    retried((JitterBackoffLayer::new(), CircuitBreakerLayer::new())).await;

    // A service that fails to become ready again is not asked again: the target is done with, and
    // what it had answered is what counts.
    let (a, b) = (always(500, &[]), always(200, &[]));
    let readiness = Readiness::new();
    let fails = readiness.clone();
    let a = a.inspect(move |_: &Req| fails.set_failed("closed"));
    let stack = JitterBackoffLayer::new().layer(readiness.layer(a.clone()));
    let other = JitterBackoffLayer::new().layer(Readiness::new().layer(b.clone()));
    let targets = [Target::new("A", stack.clone()), Target::new("B", other)];
    let mut client = FailoverService::new(targets).unwrap();
    let called = send(&mut client, get()).await;
    assert_eq!((called.status(), a.calls(), b.calls()), (200, 1, 1));
    assert_eq!(called.report.attempts[0].cause, Some(Cause::NotReady));

    readiness.set_ready();
    let mut alone = stack;
    let called = send(&mut alone, get()).await;
    assert_eq!((called.status(), a.calls()), (500, 2));
}

/// A stream that is dropped half way gives its slot back at once, and so does one that ends.
#[tokio::test(start_paused = true)]
async fn slot_leak_on_stream_abort() {
    let upstream = tower::service_fn(|_: Req| async {
        let token = || Do::Send(Bytes::from_static(b"data: token\n\n"));
        let steps = [token(), Do::At(100 * MILLI), token()];
        Ok::<_, BoxError>(Response::new(Told::new(steps)))
    });
    let slots = InFlightLayer::new(1).unwrap().ready_within(Duration::ZERO);
    let permits = slots.unnamed_permits();
    let client = slots.layer(upstream);
    let ask = || client.clone().oneshot(get());

    let mut stream = ask().await.unwrap().into_body();
    stream.frame().await.unwrap().unwrap();
    tokio::time::sleep(50 * MILLI).await;
    let error = ask().await.err().unwrap();
    assert!(Refused::find(&*error).is_some(), "the one slot is taken");
    drop(stream);
    assert_eq!(permits.in_flight(), 0);

    let second = ask().await.unwrap();
    assert_eq!(second.status(), 200);
    second.into_body().collect().await.unwrap();
    assert_eq!(permits.in_flight(), 0);
    assert_eq!(ask().await.unwrap().status(), 200);
}

/// How long the server of the test below takes for an answer. An attempt may take four times as
/// long; the last of twenty calls, four at a time, comes after five times as long.
const ONE_ANSWER: Duration = Duration::from_millis(500);
const STREAMS: u32 = 4;
const CALLS: usize = 20;

type H2 = Client<HttpConnector, Body>;

/// A server that takes so many requests at once on a connection.
async fn h2_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let serve = service_fn(|request: Request<Incoming>| async move {
                if request.uri().path() != "/hello" {
                    tokio::time::sleep(ONE_ANSWER).await;
                }
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
            });
            let mut server = http2::Builder::new(TokioExecutor::new());
            server.max_concurrent_streams(STREAMS);
            tokio::spawn(server.serve_connection(TokioIo::new(stream), serve));
        }
    });
    address
}

/// A client with its one connection open: before the server's settings are there it would send more
/// than they allow, and be refused.
async fn h2_client(server: SocketAddr) -> H2 {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let hello = Request::get(format!("http://{server}/hello"));
    let hello = hello.body(Body::default()).unwrap();
    let response = client.request(hello).await.unwrap();
    response.into_body().collect().await.unwrap();
    client
}

/// All calls at once: how many timed out, and what the breaker thinks.
async fn twenty<S, B>(
    client: S,
    breakers: &CircuitBreakerLayer,
    server: SocketAddr,
) -> (usize, State)
where
    S: Service<Req, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Debug + Send,
{
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let client = client.clone();
        let request = Request::get(format!("http://{server}/"));
        let request = request.body(Body::default()).unwrap();
        calls.spawn(async move {
            match client.oneshot(request).await {
                Ok(response) => {
                    assert_eq!(response.status(), 200);
                    response.into_body().collect().await.unwrap();
                    false
                }
                Err(error) => error.downcast_ref::<TimedOut>().is_some(),
            }
        });
    }
    let timed_out = calls.join_all().await;
    let timed_out = timed_out.into_iter().filter(|timed_out| *timed_out);
    (timed_out.count(), breakers.unnamed_breaker().state())
}

/// All requests to an origin share one HTTP/2 connection. What waits for a stream of it waits here,
/// not at the target; a bound of our own, outside the time limit, keeps that wait out of the
/// attempt.
#[tokio::test]
async fn h2_single_connection_queue() {
    let server = h2_server().await;
    let bounded = async {
        let breakers = CircuitBreakerLayer::new();
        let slots = InFlightLayer::new(STREAMS as usize).unwrap();
        let client = ServiceBuilder::new()
            .layer(breakers.clone())
            .layer(slots.ready_within(60 * SECOND))
            .layer(AttemptTimeoutLayer::to_head(4 * ONE_ANSWER))
            .service(h2_client(server).await);
        twenty(client, &breakers, server).await
    };
    // The same without it: the last four time out though the target is as well as before.
    let unbounded = async {
        let breakers = CircuitBreakerLayer::new();
        let client = ServiceBuilder::new()
            .layer(breakers.clone())
            .layer(AttemptTimeoutLayer::to_head(4 * ONE_ANSWER))
            .service(h2_client(server).await);
        twenty(client, &breakers, server).await
    };
    let (bounded, (false_timeouts, _)) = tokio::join!(bounded, unbounded);
    assert_eq!(bounded, (0, State::Closed));
    assert!(false_timeouts >= STREAMS as usize, "{false_timeouts}");
}
