//! What a clean call costs: alone in its file, since the counting allocator is the whole binary's.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::{convert::Infallible, future::Ready, pin::pin, task::Context};

use tower::{Layer, Service, service_fn};
use tower_circuit_breaker::{CircuitBreaker, CircuitBreakerLayer, State};
use tower_spillway_core::{Carried, Class, Failure, Ledger, Plain, testing::clock};

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
    let adapter: Adapter = Plain(|_| Class::Success);
    let layer = CircuitBreakerLayer::new().adapter(adapter);
    let echo =
        |request: Carried<u64>| -> Ready<Out> { std::future::ready(Ok(request.into_inner())) };
    (layer.layer(service_fn(echo)), layer)
}

#[test]
fn a_clean_call_allocates_nothing_and_reads_no_clock() {
    let (mut service, layer) = service();
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
    assert_eq!((counted.count_total, reads), (0, 0));
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
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
    assert_eq!(reads, 100, "one each");
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
