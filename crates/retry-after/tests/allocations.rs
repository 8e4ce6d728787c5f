//! What the hold allocates: nothing, while nobody is held. A binary of its own: the counter is the
//! whole process's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    future::{Ready, ready},
    task::{Context, Poll, Waker},
};

use tower::{Layer, Service, service_fn};
use tower_retry_after::{RetryAfterLayer, hold::HoldConfig};
use tower_spillway_core::{BoxError, Carried, Class, Failure, Plain};

fn classify(out: Result<&u64, Failure<'_>>) -> Class {
    match out {
        Ok(_) => Class::Success,
        Err(_) => Class::Transient,
    }
}

fn client(request: Carried<u64>) -> Ready<Result<u64, BoxError>> {
    ready(Ok(request.into_inner()))
}

fn allocations<S>(service: &mut S) -> u64
where
    S: Service<Carried<u64>, Response = u64, Error = BoxError>,
{
    let mut cx = Context::from_waker(Waker::noop());
    let counted = allocation_counter::measure(|| {
        assert!(service.poll_ready(&mut cx).is_ready());
        let mut call = std::pin::pin!(service.call(Carried::new(7)));
        assert!(matches!(call.as_mut().poll(&mut cx), Poll::Ready(Ok(7))));
    });
    counted.count_total
}

#[tokio::test]
async fn while_nobody_is_held_the_hold_adds_nothing() {
    let layer = RetryAfterLayer::new().adapter(Plain(classify));
    let mut without = layer.clone().layer(service_fn(client));
    let mut with = layer
        .hold(HoldConfig::new())
        .unwrap()
        .layer(service_fn(client));
    // The first call finds out which hold is its own.
    allocations(&mut with);
    let ledger = 1;
    assert_eq!(allocations(&mut without), ledger);
    assert_eq!(allocations(&mut with), ledger);
}
