//! Over loopback HTTP with failover: whatever the primary's stream does, the caller gets the whole
//! answer or one clear error; and with `Commit::Complete` the whole answer every time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod streams;

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use streams::{
    Do, Got,
    server::{Script, Server, client},
    tokens::{FINISH, OVERLOADED, PREAMBLE, count, send, tokens, whole},
};
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_failover::{FailoverService, Target};
use tower_spillway_core::{BoxError, Ledger};
use tower_spillway_llm::{
    Commit, GuardedBody, PeekedBody, StreamGuardLayer, StreamLimits, Vendor, VendorVerdictLayer,
};

type Req = Request<Full<Bytes>>;
type Res = Response<GuardedBody<PeekedBody<Incoming>>>;
type Client = FailoverService<BoxCloneSyncService<Req, Res, BoxError>, Req>;

/// What a primary does, and whether the caller gets a part of it.
fn primaries() -> Vec<(&'static str, Script, Seen)> {
    let with = |parts: &[Vec<Do>]| Script::stream(parts.concat());
    let comments = (0..3).map(|_| send(": still here\n\n")).collect();
    vec![
        (
            "refuses after the preamble",
            with(&[vec![send(PREAMBLE), send(OVERLOADED)]]),
            Seen::FromFallback,
        ),
        (
            "is silent past the first-content limit",
            with(&[vec![send(PREAMBLE)], comments, vec![Do::Stall]]),
            Seen::FromFallback,
        ),
        (
            "cuts after 40 of 60 tokens",
            // After a wait of any length: a server that aborts drops what it has not written yet.
            with(&[
                vec![send(PREAMBLE)],
                tokens("a", 0..40),
                vec![Do::At(Duration::from_millis(20)), Do::Reset],
            ]),
            Seen::Broken(40),
        ),
        (
            "ends after 40 of 60 tokens",
            with(&[vec![send(PREAMBLE)], tokens("a", 0..40)]),
            Seen::Broken(40),
        ),
        (
            "stalls after 20",
            with(&[vec![send(PREAMBLE)], tokens("a", 0..20), vec![Do::Stall]]),
            Seen::Broken(20),
        ),
        (
            "sends one broken event",
            with(&[
                tokens("a", 0..10),
                vec![send("data: {not json\n\n")],
                tokens("a", 10..60),
                vec![send(FINISH)],
            ]),
            Seen::Broken(10),
        ),
        (
            "omits [DONE]",
            with(&[vec![send(PREAMBLE)], tokens("a", 0..60), vec![send(FINISH)]]),
            Seen::FromPrimary,
        ),
        (
            "answers 200 with an error object",
            Script::json(r#"{"error":{"message":"Overloaded","code":503}}"#),
            Seen::FromFallback,
        ),
        ("is well", Script::stream(whole("a")), Seen::FromPrimary),
    ]
}

/// What the caller gets with the first content.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    FromPrimary,
    FromFallback,
    /// So many tokens, then one error.
    Broken(usize),
}

fn failover(servers: [&Server; 2], commit: Commit, limit: Duration) -> Client {
    let guard = StreamGuardLayer::new(Vendor::OpenAi)
        .commit(commit)
        .limits(StreamLimits {
            first_content: Some(limit),
            idle: Some(limit),
            total: None,
        })
        .unwrap();
    let stack = ServiceBuilder::new()
        .layer(guard)
        .layer(VendorVerdictLayer::new(Vendor::OpenAi))
        .service(client());
    let targets = ["primary", "fallback"].into_iter().zip(servers);
    let targets = targets.map(|(name, server)| {
        let uri = server.uri();
        Target::new(name, BoxCloneSyncService::new(stack.clone()))
            .prepare(move |request: &mut Req| {
                *request.uri_mut() = uri.clone();
                Ok(())
            })
            .retry_ambiguous(true)
    });
    FailoverService::new(targets).unwrap()
}

fn chat() -> Req {
    Request::post("/").body(Full::from("{}")).unwrap()
}

/// Named, since the compiler forgets `'static` inside an async block: `BoxError: Into<BoxError>` is
/// then not general enough for a future that is spawned.
fn ask(
    client: Client,
    request: Req,
) -> Pin<Box<dyn Future<Output = Result<Res, BoxError>> + Send>> {
    Box::pin(client.oneshot(request))
}

async fn whatever_the_primary_does(commit: Commit) {
    let mut runs = tokio::task::JoinSet::new();
    for (what, script, seen) in primaries() {
        runs.spawn(async move {
            let primary = Server::start(script).await;
            let fallback = Server::start(Script::stream(whole("b"))).await;
            let client = failover([&primary, &fallback], commit, Duration::from_secs(1));
            let ledger = Ledger::new();
            let mut request = chat();
            request.extensions_mut().insert(ledger.clone());
            let got = Got::of(ask(client, request).await).await;
            let report = ledger.report();
            let tokens = ["a", "b"].map(|who| count(&got.body, who));
            let wanted = match (seen, commit) {
                (Seen::Broken(_), Commit::Complete) => Seen::FromFallback,
                (seen, _) => seen,
            };
            match wanted {
                Seen::Broken(n) => {
                    assert!(got.is_broken_in_sight(), "{what}: {got:?}");
                    assert_eq!(tokens, [n, 0], "{what}");
                }
                Seen::FromPrimary => {
                    assert!(got.is_whole(), "{what}: {got:?}");
                    assert_eq!(tokens, [60, 0], "{what}");
                }
                Seen::FromFallback => {
                    assert!(got.is_whole(), "{what}: {got:?}");
                    assert_eq!(tokens, [0, 60], "{what}");
                    assert_eq!(report.target.unwrap().as_str(), "fallback");
                }
            }
            assert!(report.first_content.is_some(), "{what}");
            primary.closed().await;
            fallback.closed().await;
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

#[tokio::test]
async fn the_caller_gets_the_whole_answer_or_one_clear_error() {
    whatever_the_primary_does(Commit::FirstContent).await;
}

#[tokio::test]
async fn the_whole_answer_every_time_when_held_until_complete() {
    whatever_the_primary_does(Commit::Complete).await;
}

#[tokio::test]
async fn a_dropped_body_cancels_the_upstream_request_at_once() {
    let long = Duration::from_secs(600);
    let stalls = [vec![send(PREAMBLE)], tokens("a", 0..20), vec![Do::Stall]].concat();
    let primary = Server::start(Script::stream(stalls)).await;
    let fallback = Server::start(Script::stream(whole("b"))).await;
    let client = failover([&primary, &fallback], Commit::FirstContent, long);

    let mut bodies = Vec::new();
    for _ in 0..10 {
        let response = client.clone().oneshot(chat()).await.unwrap();
        let mut body = response.into_body();
        body.frame().await.unwrap().unwrap();
        bodies.push(body);
    }
    assert_eq!((primary.requests(), primary.connections()), (10, 10));
    drop(bodies);
    primary.closed().await;

    // And while it is held.
    let client = failover([&primary, &fallback], Commit::Complete, long);
    let call = tokio::spawn(client.oneshot(chat()));
    while primary.connections() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    call.abort();
    primary.closed().await;
    assert_eq!(fallback.requests(), 0);
}
