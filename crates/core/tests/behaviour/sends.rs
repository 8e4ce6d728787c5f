//! How often a request is sent.

use std::time::Duration;

use http::{Method, Request};
use tower::{Layer, ServiceBuilder};
use tower_spillway_core::{
    Carried, Cause, Engine, Http, Ledger, Limits, RetryLayer, testing::script::Script,
};

use crate::support::*;

/// All orders of some things.
fn orders<T: Clone>(things: &[T]) -> Vec<Vec<T>> {
    if things.is_empty() {
        return vec![Vec::new()];
    }
    (0..things.len())
        .flat_map(|first| {
            let mut rest = things.to_vec();
            let first = rest.remove(first);
            orders(&rest).into_iter().map(move |mut order| {
                order.push(first.clone());
                order
            })
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn one_layer_sends_three_times_by_default() {
    let upstream = always(500);
    let client = plain_retry(retry(SECOND), Limits::default()).layer(upstream.clone());
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 500);
    assert_eq!(upstream.times(), [Duration::ZERO, SECOND, 2 * SECOND]);
}

#[tokio::test(start_paused = true)]
async fn a_success_is_sent_once_and_a_later_success_ends_the_retries() {
    let upstream = then(&[200]);
    let client = plain_retry(retry(SECOND), Limits::default()).layer(upstream.clone());
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 200);
    assert_eq!(upstream.calls(), 1);

    let upstream = then(&[500, 429, 200, 500]);
    let client = plain_retry(retry(SECOND), sends(9)).layer(upstream.clone());
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 200);
    assert_eq!(upstream.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn stacked_layers_never_exceed_the_strictest_limit_in_any_order() {
    let sets: [(&[Option<u32>], usize); 5] = [
        (&[Some(3), Some(5)], 3),
        (&[None, Some(5)], 5),
        (&[None, None], 3),
        (&[Some(4), None, Some(7), Some(6), None], 4),
        (&[None, None, None, None, None], 3),
    ];
    for (limits, most) in sets {
        for order in orders(limits) {
            let upstream = always(429);
            let layers = order.iter().map(|max_attempts| {
                let limits = Limits {
                    max_attempts: *max_attempts,
                    ..Limits::default()
                };
                plain_retry(retry(SECOND), limits)
            });
            let client = stack(layers.collect::<Vec<_>>(), upstream.clone());
            assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 429);
            assert_eq!(upstream.calls(), most, "{order:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stacked_layers_over_http_act_as_one() {
    for limits in [[3, 5], [5, 3]] {
        let upstream = Script::always(answer(429, &[])).recording();
        let layers = limits.map(|most| RetryLayer::new(retry(SECOND)).limits(sends(most)));
        let client = stack(layers, upstream.clone());
        let out = call(&client, request(Method::POST)).await.unwrap();
        assert_eq!(out.status(), 429);
        assert_eq!(upstream.calls(), 3);
        let attempts = |r: &Request<Body>| r.extensions().get::<Ledger>().unwrap().attempt();
        let attempts: Vec<_> = upstream.requests().iter().map(attempts).collect();
        assert_eq!(attempts, [1, 2, 3], "each copy carries its own number");
    }
}

#[tokio::test(start_paused = true)]
async fn a_detached_layer_works_over_any_clone_request() {
    let upstream =
        Script::always(tower_spillway_core::testing::script::Step::answer(500)).recording();
    let client = RetryLayer::new(retry(SECOND))
        .adapter(detached())
        .layer(upstream.clone());
    assert_eq!(call(&client, String::from("ping")).await.unwrap(), 500);
    assert_eq!(upstream.requests(), ["ping", "ping", "ping"]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_sends_once_and_says_so() {
    let upstream = always(500);
    let client = plain_retry(retry(SECOND), sends(1)).layer(upstream.clone());
    let ledger = Ledger::new();
    let request = Carried::new(1).with_ledger(ledger.clone());
    assert_eq!(call(&client, request).await.unwrap(), 500);
    assert_eq!(upstream.calls(), 1);
    let report = ledger.report();
    assert_eq!(report.attempts[0].cause, Some(Cause::AttemptsExhausted));
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_the_whole_call_binds_too() {
    let upstream = always(500);
    let client = ServiceBuilder::new()
        .layer(
            tower_spillway_core::call::CallLayer::new()
                .max_sends(2)
                .adapter(plain()),
        )
        .layer(plain_retry(retry(SECOND), sends(9)))
        .service(upstream.clone());
    assert_eq!(call(&client, Carried::new(1)).await.unwrap(), 500);
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn total_wait_of_any_layer_bounds_all() {
    let total = Limits {
        max_total_wait: Some(3 * SECOND),
        ..sends(9)
    };
    for limits in [[total, sends(9)], [sends(9), total]] {
        let upstream = always(500);
        let layers = limits.map(|limits| plain_retry(retry(SECOND), limits));
        let client = stack(layers, upstream.clone());
        let ledger = Ledger::new();
        let request = Carried::new(1).with_ledger(ledger.clone());
        call(&client, request).await.unwrap();
        assert_eq!(upstream.calls(), 4, "equal passes");
        assert_eq!(
            ledger.report().attempts[3].cause,
            Some(Cause::BudgetDenied {
                waited: 3 * SECOND,
                next: SECOND
            })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_service_do_not_share_counts() {
    let upstream = always(500);
    let client = plain_retry(retry(SECOND), sends(2)).layer(upstream.clone());
    let (a, b) = tokio::join!(
        call(&client, Carried::new(1)),
        call(&client, Carried::new(2))
    );
    assert_eq!((a.unwrap(), b.unwrap()), (500, 500));
    assert_eq!(upstream.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn engines_over_http_take_limits_too() {
    let upstream = Script::always(answer(503, &[]));
    let engine = Engine::new(retry(SECOND), Http::new()).limits(sends(4));
    let client = RetryLayer::from_engine(engine).layer(upstream.clone());
    let out = call(&client, request(Method::GET)).await.unwrap();
    assert_eq!(out.status(), 503);
    assert_eq!(upstream.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_the_clock_jumps_over_the_deadline() {
    let upstream = always(500);
    let client = ServiceBuilder::new()
        .layer(
            tower_spillway_core::call::CallLayer::new()
                .deadline(9 * SECOND)
                .adapter(plain()),
        )
        .layer(plain_retry(retry(SECOND), sends(3)))
        .service(upstream.clone());
    let ledger = Ledger::new();
    let request = Carried::new(1).with_ledger(ledger.clone());
    let answer = tokio::spawn(async move { call(&client, request).await });
    tokio::task::yield_now().await;
    // A machine that slept: the wait and the deadline are over at once.
    tokio::time::advance(3600 * SECOND).await;
    assert_eq!(answer.await.unwrap().unwrap(), 500, "what was in hand");
    assert_eq!(upstream.calls(), 1);
    let report = ledger.report();
    assert_eq!(report.attempts[0].cause, Some(Cause::DeadlineWouldPass));
}
