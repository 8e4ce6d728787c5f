//! 1,000 calls at 50 in flight over loopback HTTP while two servers misbehave at random.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{
    Req, answer, post,
    server::{Act, Server, client},
};
use http_body_util::BodyExt;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_spillway::{circuit_breaker::BreakerConfig, core::Report, prelude::*};

const CALLS: usize = 1000;
const IN_FLIGHT: usize = 50;
const CALL: &str = "x-call";

async fn misbehaving(seed: u64) -> Server {
    let rng = Mutex::new(StdRng::seed_from_u64(seed));
    Server::start(move |request| {
        let id = request.headers()[CALL].to_str().unwrap().to_string();
        match rng.lock().unwrap().random_range(0..100) {
            0..8 => Act::Answer(answer(429, &[("retry-after-ms", "3")])),
            8..12 => Act::Answer(answer(429, &[("retry-after", "3600")])),
            12..20 => Act::Answer(answer(500, &[])),
            20..26 => Act::Answer(answer(503, &[])),
            26..32 => Act::Reset,
            32..37 => Act::Hang,
            37..38 => Act::Answer(answer(400, &[])),
            _ => {
                let mut response = answer(200, &[]);
                *response.body_mut() = id.into();
                Act::Answer(response)
            }
        }
    })
    .await
}

/// What a call had from one target, in order: the statuses, `None` where there was no answer.
type Statuses = Vec<Option<u16>>;

#[tokio::test]
async fn each_call_gets_one_answer_and_logs_and_reports_agree_attempt_by_attempt() {
    let servers = [misbehaving(1).await, misbehaving(2).await];
    let names = ["opus", "gemini"];
    // It trips now and then, and is back soon.
    let breaker = BreakerConfig::new()
        .failures(6)
        .open_time(Duration::from_millis(20));
    let target = ServiceBuilder::new()
        .layer(
            JitterBackoffLayer::exponential(Duration::from_millis(1), Duration::from_millis(5))
                .unwrap(),
        )
        .layer(RetryAfterLayer::new())
        .layer(CircuitBreakerLayer::with_config(breaker).unwrap())
        .layer(AttemptTimeoutLayer::to_head(Duration::from_millis(400)))
        .service(client());
    let targets = names.iter().zip(&servers).map(|(name, server)| {
        let uri = server.uri("/");
        Target::new(*name, target.clone())
            .prepare(move |request: &mut Req| {
                *request.uri_mut() = uri.clone();
                Ok(())
            })
            .retry_ambiguous(true)
    });
    let service = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(Duration::from_secs(60)))
        .layer(RetryBudgetLayer::per_call(Duration::from_secs(5), 8).unwrap())
        .service(FailoverService::new(targets).unwrap());

    let slots = Arc::new(tokio::sync::Semaphore::new(IN_FLIGHT));
    let mut calls = tokio::task::JoinSet::new();
    for id in 0..CALLS {
        let slot = slots.clone().acquire_owned().await.unwrap();
        let mut service = service.clone();
        calls.spawn(async move {
            let ledger = Ledger::new();
            let mut request = post();
            let id = id.to_string();
            request.headers_mut().insert(CALL, id.parse().unwrap());
            request.extensions_mut().insert(ledger.clone());
            let out = service.ready().await.unwrap().call(request).await;
            let answered = match out {
                Ok(response) => {
                    let ok = response.status() == 200;
                    let body = response.into_body().collect().await.unwrap().to_bytes();
                    assert!(!ok || body == id, "call {id} got the answer of {body:?}");
                    Some(ok)
                }
                Err(_) => None,
            };
            drop(slot);
            (id, answered, ledger.report())
        });
    }

    let mut reports: HashMap<String, Report> = HashMap::new();
    let mut well = 0;
    while let Some(done) = calls.join_next().await {
        let (id, answered, report) = done.unwrap();
        well += usize::from(answered == Some(true));
        assert!(reports.insert(id, report).is_none(), "one answer a call");
    }
    assert_eq!(reports.len(), CALLS);
    assert!(well > CALLS / 2, "{well} of {CALLS} went well");

    for (name, server) in names.iter().zip(&servers) {
        let mut logged: HashMap<String, Statuses> = HashMap::new();
        for seen in server.log() {
            let id = seen.headers[CALL].to_str().unwrap().to_string();
            logged.entry(id).or_default().push(seen.status);
        }
        for (id, report) in &reports {
            let reported: Statuses = report
                .attempts
                .iter()
                .filter(|a| a.class != Class::Refused)
                .filter(|a| a.target.as_ref().is_some_and(|t| t.as_str() == *name))
                .map(|a| a.status)
                .collect();
            let logged = logged.remove(id).unwrap_or_default();
            assert_eq!(
                logged, reported,
                "call {id} on {name}: {:#?}",
                report.attempts
            );
        }
        assert!(logged.is_empty(), "requests of no call: {logged:?}");
    }
}
