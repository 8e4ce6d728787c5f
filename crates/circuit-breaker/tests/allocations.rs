//! What a clean call costs: alone in its file, since the counting allocator is the whole binary's.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{
    convert::Infallible,
    future::Ready,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower::{Layer, Service, service_fn};
use tower_circuit_breaker::{BreakerConfig, CircuitBreaker, CircuitBreakerLayer, Rule, State};
use tower_spillway_core::{
    Carried, Class, Failure, History, Ledger, Outcome, Plain, RetryLayer, Verdict, testing::clock,
};

type Out = Result<u64, Infallible>;

fn call<S>(service: &mut CircuitBreaker<S, Adapter>, request: Carried<u64>) -> u64
where
    S: Service<Carried<u64>, Response = u64, Error = Infallible>,
{
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    match pin!(service.call(request)).poll(&mut cx) {
        std::task::Poll::Ready(Ok(out)) => out,
        _ => panic!("ready at once"),
    }
}

type Adapter = Plain<fn(Result<&u64, Failure<'_>>) -> Class>;

fn service() -> (
    CircuitBreaker<impl Service<Carried<u64>, Response = u64, Error = Infallible> + Clone, Adapter>,
    CircuitBreakerLayer<Adapter>,
) {
    service_with(BreakerConfig::new())
}

fn service_with(
    config: BreakerConfig,
) -> (
    CircuitBreaker<impl Service<Carried<u64>, Response = u64, Error = Infallible> + Clone, Adapter>,
    CircuitBreakerLayer<Adapter>,
) {
    let adapter: Adapter = Plain(|_| Class::Success);
    let layer = CircuitBreakerLayer::with_config(config)
        .unwrap()
        .adapter(adapter);
    let echo =
        |request: Carried<u64>| -> Ready<Out> { std::future::ready(Ok(request.into_inner())) };
    (layer.layer(service_fn(echo)), layer)
}

/// Allocations and clock reads of a thousand clean calls.
fn clean_calls(config: BreakerConfig) -> (u64, u64) {
    let (mut service, layer) = service_with(config);
    // The first call learns the target.
    call(&mut service, Carried::new(1));
    let mut sum = 0;
    let (counted, reads) = clock::reads_during(|| {
        allocation_counter::measure(|| {
            for n in 0..1000 {
                sum += call(&mut service, Carried::new(n));
            }
        })
    });
    assert_eq!(sum, 499_500);
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
    (counted.count_total, reads)
}

#[test]
fn a_clean_call_allocates_nothing_and_reads_the_clock_as_its_rules_need() {
    let config = BreakerConfig::new;
    let second = Duration::from_secs(1);
    assert_eq!(clean_calls(config().rules([Rule::run(5)])), (0, 0), "a run");
    let last = Rule::rate_of_last(0.5, 100, 100);
    assert_eq!(clean_calls(config().rules([last])), (0, 0), "of any age");
    assert_eq!(clean_calls(config()), (0, 1000), "when it ended");
    let slow = Rule::slow(second, 0.5, 10, second);
    assert_eq!(
        clean_calls(config().rule(slow)),
        (0, 2000),
        "how long it took"
    );
}

// The driver above has read when the attempt began, and takes over when it ended.
#[test]
fn below_a_driver_an_attempt_reads_the_clock_twice() {
    let adapter: Adapter = Plain(|_| Class::Success);
    let slow = Rule::slow(Duration::from_secs(1), 0.5, 10, Duration::from_secs(1));
    let (breaker, _) = service_with(BreakerConfig::new().rule(slow));
    let policy = |_: &History, _: &Outcome<'_, u64>| Verdict::Pass;
    let mut driver = RetryLayer::new(policy).adapter(adapter).layer(breaker);
    let mut call = || {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(driver.poll_ready(&mut cx).is_ready());
        assert!(pin!(driver.call(Carried::new(1))).poll(&mut cx).is_ready());
    };
    call();
    let ((), reads) = clock::reads_during(|| (0..100).for_each(|_| call()));
    assert_eq!(reads, 200);
}

#[test]
fn nor_does_one_that_carries_a_ledger() {
    let (mut service, _) = service();
    call(&mut service, Carried::new(1));
    let requests: Vec<_> = (0..100)
        .map(|n| Carried::new(n).with_ledger(Ledger::new()))
        .collect();
    let mut requests = requests.into_iter();
    let (counted, reads) = clock::reads_during(|| {
        allocation_counter::measure(|| {
            for request in requests.by_ref() {
                call(&mut service, request);
            }
        })
    });
    assert_eq!(counted.count_total, 0);
    assert_eq!(reads, 200, "its beginning and its end");
}

#[test]
fn nor_does_a_clone_of_the_service() {
    let (mut first, _) = service();
    call(&mut first, Carried::new(1));
    let counted = allocation_counter::measure(|| {
        for n in 0..100 {
            call(&mut first.clone(), Carried::new(n));
        }
    });
    assert_eq!(counted.count_total, 0);
}

// Nor does one whose outcome is read at the end of its body; the clock is read at the head and at
// the end.
#[test]
fn nor_does_one_that_is_heard_at_the_end_of_its_body() {
    let slow = Rule::slow(Duration::from_secs(1), 0.5, 10, Duration::from_secs(1));
    let layer = CircuitBreakerLayer::with_config(BreakerConfig::new().rule(slow))
        .unwrap()
        .outcome_at_body_end();
    let mut service = layer.layer(service_fn(|_: Request<()>| {
        std::future::ready(Ok::<_, Infallible>(Response::new(Full::new(&b"body"[..]))))
    }));
    let mut call = || {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(service.poll_ready(&mut cx).is_ready());
        let Poll::Ready(Ok(response)) = pin!(service.call(Request::new(()))).poll(&mut cx) else {
            panic!("ready at once");
        };
        let mut body = pin!(response.into_body());
        assert!(body.as_mut().poll_frame(&mut cx).is_ready());
        assert!(body.is_end_stream());
    };
    call();
    let (counted, reads) =
        clock::reads_during(|| allocation_counter::measure(|| (0..100).for_each(|_| call())));
    assert_eq!((counted.count_total, reads), (0, 300));
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
}
