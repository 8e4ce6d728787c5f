//! `bugs.jsonl`, the rows about budgets, nested retries and the count of sends: each is a test by
//! its id. The upstream counts what came over the wire.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::{fs, sync::Arc, time::Duration};

use http::{Request, Response};
use serde_json::Value;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_circuit_breaker::CircuitBreakerLayer;
use tower_jitter_backoff::{Jitter, JitterBackoffLayer};
use tower_retry_after::RetryAfterLayer;
use tower_retry_budget::{ConcurrencyBudget, CostConfig, RatioConfig, RetryBudgetLayer};
use tower_spillway_core::{
    Class, Gate, Ledger,
    attempt_timeout::AttemptTimeoutLayer,
    testing::script::{Script, Step},
};

type Upstream = Script<Request<String>, Response<String>>;

/// The row of an id: a test by a name that no row has would test nothing.
fn row(id: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/bugs.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let rows = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.into_iter().find(|row| row["id"] == id).unwrap()
}

fn expected(id: &str, name: &str) -> u64 {
    let row = row(id);
    let events = row["events"].as_array().unwrap();
    let mut expects = events.iter().filter_map(|e| e["expect"][name].as_u64());
    expects.next().unwrap()
}

fn answering(status: u16) -> Upstream {
    Script::always(Step::answer_with(move || {
        Response::builder()
            .status(status)
            .body(String::new())
            .unwrap()
    }))
}

fn get() -> Request<String> {
    Request::new(String::new())
}

fn backoff(sends: u32) -> JitterBackoffLayer {
    JitterBackoffLayer::new().max_attempts(sends).unwrap()
}

#[tokio::test(start_paused = true)]
async fn retries_plus_three() {
    let upstream = answering(429);
    let client = backoff(2).layer(upstream.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!(
        upstream.calls() as u64,
        expected("retries-plus-three", "attempts_A")
    );
}

#[tokio::test(start_paused = true)]
async fn num_retries_one_sends_three() {
    let upstream = answering(500);
    let client = backoff(2).layer(upstream.clone());
    client.oneshot(get()).await.unwrap();
    let attempts = expected("num-retries-one-sends-three", "attempts_A");
    assert_eq!(upstream.calls() as u64, attempts);
}

/// `max_attempts` is the number on the wire, whatever its value, in every layer that has one.
#[tokio::test(start_paused = true)]
async fn src_agentgateway_attempts_doc() {
    row("src-agentgateway-attempts-doc");
    for attempts in 1..=5 {
        let upstream = answering(503);
        let client = backoff(attempts).layer(upstream.clone());
        client.oneshot(get()).await.unwrap();
        assert_eq!(upstream.calls(), attempts as usize, "backoff");

        let upstream: Upstream = Script::always(Step::answer_with(|| {
            let builder = Response::builder().status(503).header("retry-after", "1");
            builder.body(String::new()).unwrap()
        }));
        let layer = RetryAfterLayer::new().max_attempts(attempts).unwrap();
        layer.layer(upstream.clone()).oneshot(get()).await.unwrap();
        assert_eq!(upstream.calls(), attempts as usize, "retry-after");

        let upstream = answering(503);
        let budget = RetryBudgetLayer::per_call(Duration::MAX, attempts).unwrap();
        let client = (budget, backoff(9)).layer(upstream.clone());
        client.oneshot(get()).await.unwrap();
        assert_eq!(upstream.calls(), attempts as usize, "per call");
    }
}

/// Four sends outside, three inside: of a target that hangs. What the report says is what came.
#[tokio::test(start_paused = true)]
async fn four_by_three() {
    let most = expected("four-by-three", "attempts_A_max");
    let upstream: Upstream = Script::always(Step::hang());
    let client = ServiceBuilder::new()
        .layer(backoff(4))
        .layer(backoff(3))
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(30)))
        .service(upstream.clone());
    let ledger = Ledger::new();
    let mut request = get();
    request.extensions_mut().insert(ledger.clone());
    client.oneshot(request).await.unwrap_err();
    let sent = upstream.calls();
    assert!(sent as u64 <= most, "{sent} sends");
    assert_eq!(ledger.report().sends(), sent, "logged is what was sent");
    assert_eq!(sent, 3, "the strictest limit of all layers");
}

/// Three layers of retries on one 429.
#[tokio::test(start_paused = true)]
async fn three_layer_forty_five() {
    let most = expected("three-layer-forty-five", "attempts_A_max");
    let upstream = answering(429);
    let client = ServiceBuilder::new()
        .layer(backoff(5))
        .layer(RetryAfterLayer::new().max_attempts(3).unwrap())
        .layer(backoff(3))
        .service(upstream.clone());
    client.oneshot(get()).await.unwrap();
    assert!(upstream.calls() as u64 <= most);
    assert_eq!(upstream.calls(), 3);

    // And with a budget of the call outside, the budget's.
    let upstream = answering(429);
    let client = ServiceBuilder::new()
        .layer(RetryBudgetLayer::per_call(Duration::MAX, 2).unwrap())
        .layer(backoff(5))
        .layer(backoff(3))
        .service(upstream.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!(upstream.calls(), 2);
}

/// A cancelled call leaves no slot taken: 64 calls that are dropped at their first wait, under a
/// budget of calls in flight and one of tokens.
#[tokio::test(start_paused = true)]
async fn lease_leak_on_cancel() {
    row("lease-leak-on-cancel");
    let (flight, tokens) = (
        ConcurrencyBudget::default(),
        CostConfig::new().build().unwrap(),
    );
    let upstream: Upstream = Script::from_fn(|_, _: &Request<String>| {
        Step::answer_with(|| Response::builder().status(503).body(String::new()).unwrap())
            .after(Duration::from_millis(10))
    });
    let client = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&flight))
        .layer(RetryBudgetLayer::shared(&tokens))
        .layer(backoff(3).jitter(Jitter::None))
        .service(upstream.clone());
    for at in [5, 10, 50, 109, 115] {
        let calls: Vec<_> = (0..64)
            .map(|_| tokio::spawn(client.clone().oneshot(get())))
            .collect();
        tokio::time::sleep(Duration::from_millis(at)).await;
        calls.iter().for_each(|call| call.abort());
        for call in calls {
            let _ = call.await;
        }
        assert_eq!(
            (flight.calls(), flight.retries()),
            (0, 0),
            "dropped at {at} ms"
        );
    }
    // Those that were dropped while they waited got their price back.
    let sent = (500.0 - tokens.tokens()) / 14.0;
    assert!(
        (0.0..=64.0).contains(&sent) && sent.fract() == 0.0,
        "{sent}"
    );
    let before = upstream.calls();
    client.oneshot(get()).await.unwrap();
    assert!(upstream.calls() - before >= 2, "admitted, and retried");
}

/// The primary is asked again as soon as its breaker lets calls pass: budgets keep nobody away from
/// it, and what they spent in the outage comes back with their window.
#[tokio::test(start_paused = true)]
async fn never_returns_to_primary() {
    let within = expected(
        "never-returns-to-primary",
        "back_on_A_within_ms_after_recovery",
    );
    let started = tokio::time::Instant::now();
    let outage = Duration::from_secs(60);
    let upstream: Upstream = Script::from_fn(move |_, _: &Request<String>| {
        let status = match started.elapsed() < outage {
            true => 503,
            false => 200,
        };
        Step::answer_with(move || {
            Response::builder()
                .status(status)
                .body(String::new())
                .unwrap()
        })
    });
    let budget = RatioConfig::new().build().unwrap();
    let client = ServiceBuilder::new()
        .layer(RetryBudgetLayer::shared(&budget))
        .layer(backoff(3))
        .layer(CircuitBreakerLayer::new())
        .service(upstream.clone());
    let mut back = None;
    while back.is_none() {
        let answer = client.clone().oneshot(get()).await;
        if answer.is_ok_and(|r| r.status() == 200) {
            back = Some(started.elapsed() - outage);
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(back.unwrap() <= Duration::from_millis(within), "{back:?}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(budget.balance(), 10, "the whole floor again");
}

/// Several gates all grant, or all get back what they gave, whatever their order.
#[tokio::test(start_paused = true)]
async fn several_budgets_all_grant_or_none_is_charged() {
    let cost = CostConfig::new().build().unwrap();
    let empty = ConcurrencyBudget::new(0, 0).unwrap();
    let gates: [Arc<dyn Gate>; 2] = [cost.as_gate(), empty.as_gate()];
    for order in [[0, 1], [1, 0]] {
        let upstream = answering(503);
        let layer = order
            .iter()
            .fold(backoff(3), |layer, &n| layer.gate(gates[n].clone()));
        let answer = layer.layer(upstream.clone()).oneshot(get()).await.unwrap();
        let report = answer.extensions().get::<Ledger>().unwrap().report();
        assert_eq!(report.attempts[0].class, Class::Transient);
        assert_eq!((upstream.calls(), cost.tokens()), (1, 500.0));
        assert_eq!(cost.snapshot().granted, 0);
    }
}
