//! Over loopback HTTP: a breaker that hears how streams end, outside of the guard that knows it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod streams;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use streams::{
    Do, Got,
    server::{Script, Server, client},
    tokens::{PREAMBLE, count, send, tokens, whole},
};
use tower::{Layer, ServiceExt, util::BoxCloneSyncService};
use tower_circuit_breaker::{
    AtBodyEnd, BreakerConfig, CircuitBreakerLayer, OutcomeBody, Refused, State, TripReason,
};
use tower_failover::{FailoverService, Target};
use tower_layer::Stack;
use tower_spillway_core::{BoxError, Http};
use tower_spillway_llm::{GuardedBody, PeekedBody, StreamGuardLayer, Vendor, VendorVerdictLayer};

type Req = Request<Full<Bytes>>;
type Body = OutcomeBody<GuardedBody<PeekedBody<hyper::body::Incoming>>>;
type Res = http::Response<Body>;
type Client = BoxCloneSyncService<Req, Res, BoxError>;

fn layer() -> CircuitBreakerLayer<Http, AtBodyEnd> {
    CircuitBreakerLayer::with_config(BreakerConfig::new().failures(3))
        .unwrap()
        .outcome_at_body_end()
}

/// The stack of a target, whose breaker is the outermost.
fn target(layer: &CircuitBreakerLayer<Http, AtBodyEnd>) -> Client {
    let inside = Stack::new(
        VendorVerdictLayer::new(Vendor::OpenAi),
        StreamGuardLayer::new(Vendor::OpenAi),
    );
    Client::new(layer.layer(inside.layer(client())))
}

fn chat(server: &Server) -> Req {
    Request::post(server.uri()).body(Full::from("{}")).unwrap()
}

async fn ask(client: &Client, server: &Server) -> Result<Res, BoxError> {
    client.clone().oneshot(chat(server)).await
}

/// After a wait of any length: a server that aborts drops what it has not written yet.
fn cut_after_content() -> Script {
    let cut = [Do::At(std::time::Duration::from_millis(20)), Do::Reset];
    Script::stream([vec![send(PREAMBLE)], tokens("a", 0..20), cut.to_vec()].concat())
}

#[tokio::test]
async fn streams_that_are_cut_after_content_trip_the_breaker() {
    let (primary, fallback) = (
        Server::start(cut_after_content()).await,
        Server::start(Script::stream(whole("b"))).await,
    );
    let layer = layer();
    let targets = [("primary", &primary), ("fallback", &fallback)].map(|(name, server)| {
        let uri = server.uri();
        Target::new(name, target(&layer))
            .prepare(move |request: &mut Req| {
                *request.uri_mut() = uri.clone();
                Ok(())
            })
            .retry_ambiguous(true)
    });
    let failover = FailoverService::new(targets).unwrap();
    let breaker = layer.breaker("primary");
    for n in 0..3 {
        assert_eq!(breaker.state(), State::Closed, "after {n} streams");
        let got = Got::of(failover.clone().oneshot(chat(&primary)).await).await;
        // The caller's body ends well, in an error event.
        assert!(got.is_broken_in_sight(), "{got:?}");
        assert_eq!(count(&got.body, "a"), 20);
    }
    let snapshot = breaker.snapshot();
    assert_eq!(snapshot.state, State::Open);
    assert_eq!(snapshot.reason, Some(TripReason::Consecutive));

    let got = Got::of(failover.clone().oneshot(chat(&primary)).await).await;
    assert!(got.is_whole(), "{got:?}");
    assert_eq!(count(&got.body, "b"), 60);
    assert_eq!((primary.requests(), fallback.requests()), (3, 1));
    assert_eq!(layer.breaker("fallback").state(), State::Closed);
}

#[tokio::test]
async fn callers_that_leave_trip_nothing_and_are_no_success() {
    let stalls = [vec![send(PREAMBLE)], tokens("a", 0..20), vec![Do::Stall]].concat();
    let server = Server::start(Script::stream(stalls)).await;
    let layer = layer();
    let (client, breaker) = (target(&layer), layer.unnamed_breaker());
    breaker.permit().unwrap().failure();
    for _ in 0..10 {
        let mut body = ask(&client, &server).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
    }
    let snapshot = breaker.snapshot();
    assert_eq!(
        (snapshot.state, snapshot.failures_in_a_row),
        (State::Closed, 1)
    );
    server.closed().await;

    // As probes they give their slot back, and settle nothing.
    breaker.half_open();
    for _ in 0..10 {
        let mut body = ask(&client, &server).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        assert_eq!(breaker.snapshot().probes_out, 1);
        let error = ask(&client, &server).await.err().unwrap();
        assert!(Refused::find(&*error).is_some());
        drop(body);
        assert_eq!(breaker.snapshot().probes_out, 0);
    }
    assert_eq!(breaker.state(), State::HalfOpen);
}

/// Clients stop reading at the last event, whatever comes after it.
#[tokio::test]
async fn who_stops_at_the_last_event_has_not_left() {
    let server = Server::start(Script::stream(whole("a"))).await;
    let layer = layer();
    let (client, breaker) = (target(&layer), layer.unnamed_breaker());
    breaker.half_open();
    for _ in 0..2 {
        assert_eq!(breaker.state(), State::HalfOpen);
        let mut body = ask(&client, &server).await.unwrap().into_body();
        let mut text = String::new();
        while !text.contains("[DONE]") {
            let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
            text.push_str(std::str::from_utf8(&data).unwrap());
        }
        drop(body);
    }
    assert_eq!(breaker.state(), State::Closed);
}
