//! Reports of calls that went to another target, each a test named after its row in `bugs.jsonl`:
//! kinds `fallback-policy` where no stream is in it, `routing`, `observability` and `idempotency`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{collections::BTreeMap, time::Duration};

use common::{Called, Req, Upstream, always, answer, logged, post, send};
use http::HeaderValue;
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_spillway::{
    circuit_breaker::State,
    core::testing::script::{Script, Step},
    prelude::*,
};
use tower_spillway_llm::Usage;

const MILLI: Duration = Duration::from_millis(1);

/// Two targets without anything in their stacks.
fn two(a: Target<Upstream, Req>, b: Target<Upstream, Req>) -> FailoverService<Upstream, Req> {
    FailoverService::new([a, b]).unwrap()
}

fn served_by(called: &Called) -> &str {
    called.report.target.as_ref().unwrap().as_str()
}

/// Targets are a list in which a name stands once, so there is no cycle to walk; and an error of the
/// request's own ends the call, whether the target finds it or nobody is asked at all.
#[tokio::test(start_paused = true)]
async fn cyclic_fallback_graph() {
    let (a, b) = (always(400, &[]), always(400, &[]));
    let targets = ["A", "B", "A"].map(|name| Target::<_, Req>::new(name, a.clone()));
    let error = FailoverService::new(targets).unwrap_err();
    assert!(error.to_string().contains("target name"), "{error}");

    let mut client = two(
        Target::new("A", a.clone()).retry_ambiguous(true),
        Target::new("B", b.clone()).retry_ambiguous(true),
    );
    let called = send(&mut client, post()).await;
    assert_eq!((called.status(), called.took), (400, Duration::ZERO));
    assert_eq!((a.calls(), b.calls()), (1, 0));

    // Malformed arguments: no target's request can be made of them. A layer outside that would
    // retry whatever comes is told not to.
    let (a, b) = (always(200, &[]), always(200, &[]));
    let malformed = |_: &mut Req| Err("malformed tool arguments".into());
    let mut client = JitterBackoffLayer::new().layer(two(
        Target::new("A", a.clone()).prepare(malformed),
        Target::new("B", b.clone()).prepare(malformed),
    ));
    let called = send(&mut client, post()).await;
    let error = called.out.unwrap_err();
    let text = std::iter::successors(Some(&*error as &dyn std::error::Error), |e| e.source())
        .map(ToString::to_string)
        .collect::<String>();
    assert!(text.contains("malformed tool arguments"), "{text}");
    assert_eq!((a.calls(), b.calls()), (0, 0));
    assert_eq!(called.report.attempts.len(), 2, "each was tried once");
    assert_eq!(called.took, Duration::ZERO);
}

/// A failing target that answers faster than a good one. Speed routes nothing here: what is left
/// alone is what failed.
#[tokio::test(start_paused = true)]
async fn src_ewma_black_hole() {
    let a: Upstream = Script::always(Step::answer(answer(500, &[])).after(2 * MILLI));
    let b: Upstream = Script::always(Step::answer(answer(200, &[])).after(100 * MILLI));
    let breakers = CircuitBreakerLayer::new();
    let stack = ServiceBuilder::new()
        .layer(JitterBackoffLayer::new())
        .layer(breakers.clone());
    let mut client = FailoverService::new([
        Target::new("A", stack.service(a.clone())).retry_ambiguous(true),
        Target::new("B", stack.service(b.clone())),
    ])
    .unwrap();
    for _ in 0..100 {
        let called = send(&mut client, post()).await;
        assert_eq!((called.status(), served_by(&called)), (200, "B"));
    }
    assert_eq!(b.calls(), 100);
    assert_eq!(breakers.breaker("A").state(), State::Open);
    assert!(a.calls() <= 20, "{} sends to A", a.calls());
}

/// Every switch says why: in the report, and in an event that names both targets. (The counter of
/// hops is tested where it counts, in `crates/failover`.)
#[tokio::test(start_paused = true)]
async fn no_reason_for_fallback() {
    let (a, b) = (always(429, &[]), always(200, &[]));
    let mut client = two(Target::new("A", a), Target::new("B", b));
    let events = logged(tracing::Level::INFO, async {
        let called = send(&mut client, post()).await;
        assert_eq!(served_by(&called), "B");
        let reason = called.report.fallback_reason.unwrap();
        assert_eq!(
            (reason.target.as_str(), reason.class),
            ("A", Class::Throttled)
        );
    })
    .await;
    let hops: Vec<_> = events
        .iter()
        .filter(|e| e.contains("next target"))
        .collect();
    assert_eq!(hops.len(), 1, "{events:?}");
    for said in [
        r#"spillway.from="A""#,
        r#"spillway.to="B""#,
        r#"error.type="throttled""#,
    ] {
        assert!(hops[0].contains(said), "{said} in {}", hops[0]);
    }
}

/// Whoever counts tokens per target charges the one that the report names; what was taken at the
/// target that failed is back by then.
#[tokio::test(start_paused = true)]
async fn tpm_charged_to_wrong_target() {
    let used = r#"{"choices":[{}],"usage":{"prompt_tokens":60,"completion_tokens":40}}"#;
    let mut served = answer(200, &[]);
    *served.body_mut() = Full::from(used);
    let (a, b) = (always(503, &[]), Script::always(Step::answer(served)));
    let slots = InFlightLayer::new(1).unwrap();
    let stack = ServiceBuilder::new().layer(slots.clone());
    let client = FailoverService::new([
        Target::new("A", stack.service(a.clone())),
        Target::new("B", stack.service(b.clone())),
    ])
    .unwrap();

    let mut charged = BTreeMap::<String, u64>::new();
    let response = client.oneshot(post()).await.unwrap();
    assert_eq!(slots.permits("A").in_flight(), 0, "given back at the hop");
    assert_eq!(slots.permits("B").in_flight(), 1, "until its body ends");
    let report = response.extensions().get::<Ledger>().unwrap().report();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let usage = Usage::of_answer(&body).unwrap();
    *charged
        .entry(report.target.unwrap().to_string())
        .or_default() += usage.input + usage.output;
    assert_eq!(charged, BTreeMap::from([("B".to_owned(), 100)]));
    assert_eq!(slots.permits("B").in_flight(), 0);
    assert_eq!((a.calls(), b.calls()), (1, 1));
}

/// An answer that hides whether the work was done: a `POST` is sent once and the record says why,
/// unless somebody said that it may be done twice. (What is sent again in doubt is counted as
/// `spillway.possible_duplicates`: tested in `crates/core` and `crates/failover`.)
#[tokio::test(start_paused = true)]
async fn post_502_may_be_billed() {
    let run = async |status: u16, request: Req, terms: fn(Target<_, _>) -> Target<_, _>| {
        let (a, b) = (always(status, &[]), always(200, &[]));
        let stack = JitterBackoffLayer::new().layer(a.clone());
        let other = JitterBackoffLayer::new().layer(b.clone());
        let mut client =
            FailoverService::new([terms(Target::new("A", stack)), Target::new("B", other)])
                .unwrap();
        let called = send(&mut client, request).await;
        (called, a.calls(), b.calls())
    };
    for status in [500, 502, 504] {
        let (called, a, b) = run(status, post(), |target| target).await;
        assert_eq!((called.status(), a, b), (status, 1, 0));
        assert_eq!(
            called.report.attempts[0].cause,
            Some(Cause::MayHaveBeenProcessed)
        );

        let (called, a, b) = run(status, post(), |t| t.retry_ambiguous(true)).await;
        assert_eq!((called.status(), a, b), (200, 2, 1));

        // A target that honours the key, and a request that has one.
        let mut keyed = post();
        let key = HeaderValue::from_static("one-call");
        keyed.headers_mut().insert("idempotency-key", key);
        let (called, a, b) = run(status, keyed, |t| t.honours_idempotency_key(true)).await;
        assert_eq!((called.status(), a, b), (200, 2, 1));
        let (called, a, b) = run(status, post(), |t| t.honours_idempotency_key(true)).await;
        assert_eq!((called.status(), a, b), (status, 1, 0));
    }
    // Turned away for sure: nothing to doubt.
    let (called, a, b) = run(503, post(), |target| target).await;
    assert_eq!((called.status(), a, b), (200, 2, 1));
}
