//! The shared hold together with the other layers.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{sync::Mutex, time::Duration};

use common::{Called, Req, Res, SECOND, Upstream, always, answer, post, send};
use tokio::{task::JoinSet, time::Instant};
use tower::{Layer, ServiceBuilder};
use tower_retry_after::hold::{HoldConfig, SharedHold};
use tower_spillway::{
    circuit_breaker::BreakerConfig,
    core::{
        Cause, Chance,
        testing::script::{Script, Step},
    },
    prelude::*,
};

fn shared() -> SharedHold {
    SharedHold::new(HoldConfig::new()).unwrap()
}

fn retry_after(hold: &SharedHold) -> impl Fn(Upstream) -> Leg + use<> {
    let layer = RetryAfterLayer::new()
        .chance(Chance::seeded(7))
        .shared_hold(hold.clone());
    move |upstream| tower::util::BoxCloneSyncService::new(layer.layer(upstream))
}

type Leg = tower::util::BoxCloneSyncService<Req, Res, BoxError>;

#[tokio::test(start_paused = true)]
async fn a_held_primary_is_a_free_hop() {
    let hold = shared();
    let leg = retry_after(&hold);
    let (opus, gemini) = (always(429, &[("retry-after", "30")]), always(200, &[]));
    let mut service = FailoverService::new([
        Target::new("opus", leg(opus.clone())),
        Target::new("gemini", leg(gemini.clone())),
    ])
    .unwrap();
    for round in 0..5 {
        let called = send(&mut service, post()).await;
        assert_eq!((called.status(), called.took), (200, Duration::ZERO));
        assert_eq!(called.report.target.as_ref().unwrap().as_str(), "gemini");
        let first = &called.report.attempts[0];
        let class = if round == 0 {
            Class::Throttled
        } else {
            Class::Refused
        };
        assert_eq!(
            (first.class, first.cause),
            (class, Some(Cause::OtherTargetFirst))
        );
    }
    assert_eq!((opus.calls(), gemini.calls()), (1, 5));
    assert_eq!(hold.retry_in("opus"), Some(30 * SECOND));
    assert_eq!(hold.retry_in("gemini"), None, "each target has its own");

    // Released, it is asked again.
    hold.release("opus");
    send(&mut service, post()).await;
    assert_eq!(opus.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn all_held_is_answered_at_once_with_the_earliest_time() {
    let hold = shared();
    let leg = retry_after(&hold);
    let (opus, gemini) = (always(200, &[]), always(200, &[]));
    let failover = FailoverService::new([
        Target::new("opus", leg(opus.clone())),
        Target::new("gemini", leg(gemini.clone())),
    ]);
    let layer = CallLayer::new().deadline(20 * SECOND);
    let mut service = layer.layer(failover.unwrap());
    hold.hold("opus", 40 * SECOND);
    hold.hold("gemini", 50 * SECOND);
    let called = send(&mut service, post()).await;
    let error = called.out.unwrap_err();
    let all = error.downcast_ref::<AllRefused>().unwrap();
    assert_eq!(all.retry_in(), Some(40 * SECOND));
    assert_eq!((called.took, called.report.sends()), (Duration::ZERO, 0));

    // Longer than either leg would wait: a retrying layer outside waits for the first of them.
    hold.hold("opus", 70 * SECOND);
    hold.hold("gemini", 80 * SECOND);
    let mut outside = RetryAfterLayer::new().layer(service.get_ref().clone());
    let called = send(&mut outside, post()).await;
    assert_eq!((called.status(), called.took), (200, 70 * SECOND));
    assert_eq!(called.report.target.unwrap().as_str(), "opus");
    assert_eq!((opus.calls(), gemini.calls()), (1, 0));
}

/// Below a backoff that drives, the held layer advises; the breaker below does not hear of it.
#[tokio::test(start_paused = true)]
async fn in_a_stack_the_outer_driver_waits_and_the_breaker_hears_nothing() {
    let hold = shared();
    let breaker = CircuitBreakerLayer::new();
    let upstream = always(200, &[]);
    let mut service = ServiceBuilder::new()
        .layer(JitterBackoffLayer::new())
        .layer(RetryAfterLayer::new().shared_hold(hold.clone()))
        .layer(breaker.clone())
        .service(upstream.clone());
    hold.hold(tower_retry_after::hold::HoldKey::UNNAMED, 9 * SECOND);
    let called = send(&mut service, post()).await;
    assert_eq!((called.status(), called.report.sends()), (200, 1));
    assert!(called.took >= 9 * SECOND);
    assert_eq!(breaker.unnamed_breaker().snapshot().failures_in_a_row, 0);
}

/// So many requests a minute, so many at once, and `Retry-After` for the others.
fn limited(per_minute: u32, burst: u32, latency: Duration) -> Upstream {
    let each = 60 * SECOND / per_minute;
    let opened = Instant::now();
    // When the bucket would be empty, if requests came without a pause.
    let full = Mutex::new(opened);
    Script::from_fn(move |_, _| {
        let now = Instant::now();
        let mut next = full.lock().unwrap();
        let at = (*next).max(now) + each;
        let most = now + each * burst;
        if at <= most {
            *next = at;
            return Step::answer(answer(200, &[])).after(latency);
        }
        let wait = (at - most).as_millis().div_ceil(1000).to_string();
        Step::answer_with(move || {
            let mut response = answer(429, &[]);
            let value = wait.parse().unwrap();
            response.headers_mut().insert("retry-after", value);
            response
        })
        .after(latency)
    })
    .recording()
}

#[tokio::test(start_paused = true)]
async fn primary_down_100_callers_at_once_and_a_small_fallback() {
    for seed in 0..10 {
        // Answering at once only the first is told to wait; slower, all are sent before that.
        let latency = SECOND / 4 * u32::try_from(seed % 2).unwrap();
        let opus = always(503, &[]);
        let gemini = limited(15, 15, latency);
        let chance = Chance::seeded(seed);
        let breaker = BreakerConfig::new()
            .open_time(600 * SECOND)
            .max_open_time(600 * SECOND);
        let builder = ServiceBuilder::new()
            .layer(
                JitterBackoffLayer::new()
                    .chance(chance.clone())
                    .max_attempts(4)
                    .unwrap(),
            )
            .layer(
                RetryAfterLayer::new()
                    .chance(chance.clone())
                    .hold(HoldConfig::new())
                    .unwrap(),
            )
            .layer(CircuitBreakerLayer::with_config(breaker.chance(chance)).unwrap());
        let failover = FailoverService::new([
            Target::new("opus", builder.service(opus.clone())).retry_ambiguous(true),
            Target::new("gemini", builder.service(gemini.clone())).retry_ambiguous(true),
        ]);
        // As in the reference stack; the budget bounds what is sent before the first answer is heard.
        let service = ServiceBuilder::new()
            .layer(CallLayer::new().deadline(60 * SECOND))
            .layer(RetryBudgetLayer::ratio(Default::default()).unwrap())
            .service(failover.unwrap());
        // The outage is known: its breaker is open, and the fallback has a full burst again.
        for _ in 0..5 {
            assert_eq!(send(&mut service.clone(), post()).await.status(), 200);
        }
        tokio::time::sleep(60 * SECOND).await;
        let before = gemini.calls();
        let mut calls = JoinSet::new();
        for _ in 0..100 {
            let mut service = service.clone();
            calls.spawn(async move { send(&mut service, post()).await });
        }
        let calls = calls.join_all().await;
        let answered = calls.iter().filter(|call| was_answered(call)).count();
        let sends = gemini.calls() - before;
        assert!(sends <= 200, "seed {seed}: {sends} sends for 100 calls");
        // Burst, and a minute's worth less what the spread of the wakers leaves unused.
        assert!((15..=30).contains(&answered), "seed {seed}: {answered}");
        println!("seed {seed}: {answered} answered, {sends} sends");
    }
}

/// Answered by the fallback; else turned away with the time to come back, here or by the fallback
/// itself when no time was left to wait for it.
fn was_answered(call: &Called) -> bool {
    match &call.out {
        Ok(response) if response.status() == 200 => true,
        Ok(response) => {
            assert_eq!(response.status(), 429, "{:#?}", call.report);
            assert!(response.headers().contains_key("retry-after"));
            false
        }
        Err(error) => {
            let refused = Refused::find(&**error).unwrap();
            assert!(refused.wait().is_some(), "{error}");
            false
        }
    }
}
