//! The layer over requests and responses of many kinds.

use std::{convert::Infallible, future::ready};

use http::{Request, Response, StatusCode};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};
use tower_circuit_breaker::{
    Breaker, BreakerConfig, CircuitBreaker, CircuitBreakerLayer, ResponseFuture, State,
};
use tower_spillway_core::{BoxError, Class, Detached, Failure};

use crate::support::*;

/// As a request body of hyper, axum or tonic: sent once, and not `Clone`.
struct Once(#[expect(dead_code, reason = "only its type matters")] String);

#[tokio::test]
async fn http_requests_need_not_be_clone() {
    let layer = CircuitBreakerLayer::with_config(config()).unwrap();
    let statuses = [429, 404, 200, 500, 408, 503].map(|s| StatusCode::from_u16(s).unwrap());
    let mut statuses = statuses.into_iter().cycle();
    let mut service = layer.layer(service_fn(move |_: Request<Once>| {
        let mut response = Response::new(String::from("body"));
        *response.status_mut() = statuses.next().unwrap();
        ready(Ok::<_, Infallible>(response))
    }));
    for _ in 0..6 {
        let request = Request::new(Once(String::new()));
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(response.body(), "body");
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Open);
}

#[tokio::test]
async fn alone_over_anything() {
    let adapter = Detached(|out: Result<&u8, Failure<'_>>| match out {
        Ok(_) => Class::Success,
        Err(_) => Class::Transient,
    });
    let layer = CircuitBreakerLayer::with_config(config())
        .unwrap()
        .adapter(adapter);
    let mut service = layer.layer(service_fn(|_: Once| ready(Err::<u8, _>("down"))));
    for n in 0..5 {
        let call = service.ready().await.unwrap().call(Once(String::new()));
        let error: BoxError = call.await.unwrap_err();
        assert_eq!(error.to_string() == "down", n < 3);
    }
}

#[tokio::test]
async fn in_a_stack_that_is_boxed_and_optional() {
    let layer = CircuitBreakerLayer::new();
    let stack = ServiceBuilder::new()
        .layer(BoxCloneSyncService::layer())
        .option_layer(Some(layer.clone()))
        .service(service_fn(|_: Request<String>| {
            let mut response = Response::new(String::new());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            // Both sides of an optional layer have one error type.
            ready(Ok::<_, BoxError>(response))
        }));
    for n in 0..6 {
        let out = tokio::spawn(stack.clone().oneshot(Request::new(String::new()))).await;
        assert_eq!(out.unwrap().is_ok(), n < 5);
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Open);
}

#[test]
fn can_be_sent_shared_and_shown() {
    fn all<T: Send + Sync + Unpin + Clone + std::fmt::Debug>(_: &T) {}
    fn shown<T: Send + Sync + std::fmt::Debug>() {}
    let layer = CircuitBreakerLayer::new();
    all(&layer);
    all(&layer.breaker("opus"));
    all(&layer.layer(3));
    all(&BreakerConfig::new());
    all(&layer.breaker("opus").snapshot());
    shown::<ResponseFuture<std::future::Ready<()>, u8>>();
    let service: CircuitBreaker<u8> = layer.layer(3);
    assert_eq!(*service.get_ref(), 3);
    let shown = format!("{:?} {layer:?} {service:?}", layer.breaker("opus"));
    assert!(
        shown.contains("opus") && shown.contains("Closed"),
        "{shown}"
    );
    let other = Breaker::new("opus", BreakerConfig::new().failures(0)).unwrap_err();
    assert_eq!(other.to_string(), "failures must be at least 1");
    assert_eq!(
        CircuitBreakerLayer::with_config(BreakerConfig::new().growth(0.5)).unwrap_err(),
        tower_spillway_core::InvalidConfig::new("growth", "from 1 to 1000")
    );
}
