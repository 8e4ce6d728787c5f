use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use tokio::time::{Instant, advance, sleep};
use tower::Layer;
use tower_circuit_breaker::{Breaker, Prober, Refusal, State};
use tower_spillway_core::{
    Class,
    testing::script::{Script, Step},
};

use crate::support::*;

const INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);

fn prober(breaker: &Breaker, target: &Upstream) -> Prober<Upstream, Request, Adapter> {
    let prober = breaker.probe_with(target.clone(), request(), INTERVAL);
    prober.unwrap().adapter(adapter())
}

/// Down until that moment.
fn down_for(seconds: u32) -> Upstream {
    let begin = Instant::now();
    let answers = move |_, _: &Request| {
        let down = begin.elapsed() < seconds * SECOND;
        answer(if down {
            Class::Transient
        } else {
            Class::Success
        })
    };
    Script::from_fn(answers).recording()
}

#[tokio::test(start_paused = true)]
async fn users_wait_for_no_probe_and_it_closes_within_15_s() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let target = down_for(100);
    tokio::spawn(prober(&breaker, &target));
    let users = down_for(100);
    let mut service = layer.layer(users.clone());
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    sleep(6 * SECOND).await;
    assert_eq!(breaker.state(), State::HalfOpen);
    let mut closed = None;
    for second in 6..130 {
        if breaker.state() == State::Closed {
            closed.get_or_insert(second);
        } else {
            let refused = refused(&mut service).await;
            assert_eq!(refused.refusal(), Refusal::ProbesBusy);
            assert!(breaker.is_refusing());
            assert!(refused.wait().unwrap() <= 3 * INTERVAL);
        }
        sleep(SECOND).await;
    }
    assert_eq!(users.calls(), 3, "no user was a probe");
    let closed = closed.unwrap();
    assert!((106..=115).contains(&closed), "closed at {closed} s");
    let snapshot = breaker.snapshot();
    assert_eq!(snapshot.own_probes, target.calls() as u64);
    // The last bad one and five good ones: four of five, and more.
    assert_eq!(snapshot.own_probes_good, 5);
    // 4 s, then 6 s apart while it is down; 2 s once it is back.
    let times = target.times();
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..3], [4 * SECOND, 6 * SECOND, 6 * SECOND]);
    assert!(gaps[gaps.len() - 4..].iter().all(|gap| *gap == INTERVAL));
}

#[tokio::test(start_paused = true)]
async fn dropping_it_returns_half_open_to_users() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let target = Upstream::always(Step::hang());
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    let probing = tokio::spawn(prober(&breaker, &target));
    sleep(6 * SECOND).await;
    assert_eq!(target.calls(), 1);
    assert_eq!(refused(&mut service).await.refusal(), Refusal::ProbesBusy);
    probing.abort();
    tokio::task::yield_now().await;
    assert_eq!(target.dropped(), 1);
    assert!(
        !breaker.is_refusing(),
        "a user's call may be the next probe"
    );
    send(&mut service, request()).await.unwrap();
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_never_polled_changes_nothing() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    let _idle = prober(&breaker, &down_for(0));
    advance(5 * SECOND).await;
    send(&mut service, request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_hangs_is_a_bad_one() {
    let breaker = Breaker::new("opus", config()).unwrap();
    let target = Upstream::always(Step::hang());
    tokio::spawn(prober(&breaker, &target).time_limit(SECOND));
    breaker.trip();
    sleep(30 * SECOND).await;
    // At 5 s, then 4 and 6 s apart, although each takes a second.
    assert_eq!(target.calls(), 5);
    let snapshot = breaker.snapshot();
    assert_eq!((snapshot.own_probes, snapshot.own_probes_good), (5, 0));
    assert_eq!(snapshot.state, State::HalfOpen);
}

#[tokio::test(start_paused = true)]
async fn answers_can_be_priced() {
    let breaker = Breaker::new("opus", config()).unwrap();
    let cost = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&cost);
    let priced = prober(&breaker, &down_for(0)).on_answer(move |_| {
        sum.fetch_add(3, SeqCst);
    });
    tokio::spawn(priced);
    breaker.trip();
    sleep(60 * SECOND).await;
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(cost.load(SeqCst), 18);
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_its_breaker() {
    let breaker = Breaker::new("opus", config()).unwrap();
    let probing = tokio::spawn(prober(&breaker, &down_for(0)));
    tokio::task::yield_now().await;
    drop(breaker);
    probing.await.unwrap();
}

#[test]
fn an_interval_of_nothing_is_refused() {
    let breaker = Breaker::new("opus", config()).unwrap();
    let target = Upstream::always(Step::hang());
    let error = breaker
        .probe_with(target, request(), std::time::Duration::ZERO)
        .unwrap_err();
    assert_eq!(error.what(), "interval");
}
