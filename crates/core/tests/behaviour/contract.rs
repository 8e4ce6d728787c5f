//! Every layer calls only what it polled ready, over services that fail the test otherwise.

use http::{Method, Response};
use tower::{Layer, ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer};
use tower_service::Service;
use tower_spillway_core::{
    BoxError, Carried, Limits, Reading, ReplayLayer, RetryLayer,
    attempt_timeout::AttemptTimeoutLayer,
    call::CallLayer,
    classify::ClassifyLayer,
    testing::{
        contract::ReadyProbeLayer,
        script::{Script, Step},
    },
};

use crate::support::*;

type Out<'a, 'e> = Result<&'a Response<Body>, tower_spillway_core::Failure<'e>>;

fn no_reading(_: Out<'_, '_>) -> Option<Reading> {
    None
}

/// Several calls, one after the other and at once, over either probe: the second attempt of each
/// succeeds where the layer retries.
async fn exercise<L>(layer: L)
where
    L: Layer<
            tower_spillway_core::testing::contract::ReadyProbe<
                Script<http::Request<Body>, Response<Body>>,
            >,
            Service: Service<http::Request<Body>, Error = BoxError> + Clone,
        > + Clone,
{
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let upstream = Script::from_fn(|n, _| answer(if n % 2 == 1 { 503 } else { 200 }, &[]));
        let mut client = layer.layer(probe.layer(upstream.clone()));
        for _ in 0..3 {
            let ready = client.ready().await.unwrap();
            ready.call(request(Method::GET)).await.unwrap();
        }
        let (a, b) = tokio::join!(
            call(&client, request(Method::GET)),
            call(&client, request(Method::GET))
        );
        assert!(a.is_ok() && b.is_ok());
        assert!(upstream.calls() >= 5);
        assert_eq!(probe.reserved(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn each_layer_alone() {
    exercise(RetryLayer::new(retry(SECOND))).await;
    exercise(CallLayer::new().deadline(9 * SECOND)).await;
    exercise(AttemptTimeoutLayer::to_head(SECOND)).await;
    exercise(AttemptTimeoutLayer::to_head(SECOND).and_last_byte(Some(SECOND))).await;
    exercise(ClassifyLayer::new(no_reading)).await;
}

#[tokio::test(start_paused = true)]
async fn replay() {
    let probe = ReadyProbeLayer::new();
    let upstream = Script::from_fn(|n, _| answer(if n % 2 == 1 { 503 } else { 200 }, &[]));
    let client = ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(probe.clone())
        .service(upstream.clone());
    for _ in 0..3 {
        let response = call(&client, request(Method::GET)).await.unwrap();
        assert_eq!(response.status(), 200);
    }
    assert_eq!(upstream.calls(), 6);
    assert_eq!(probe.reserved(), 0);
}

#[tokio::test(start_paused = true)]
async fn all_layers_together() {
    exercise(
        ServiceBuilder::new()
            .layer(CallLayer::new().deadline(90 * SECOND))
            .layer(RetryLayer::new(retry(SECOND)))
            .layer(RetryLayer::new(retry(SECOND)))
            .layer(AttemptTimeoutLayer::to_head(SECOND))
            .layer(ClassifyLayer::new(no_reading))
            .into_inner(),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_readiness_is_held_while_sleeping() {
    let probe = ReadyProbeLayer::new();
    let client =
        plain_retry(retry(9 * SECOND), Limits::default()).layer(probe.layer(then(&[500, 200])));
    let look = async {
        tokio::time::sleep(SECOND).await;
        probe.reserved()
    };
    let (out, reserved) = tokio::join!(call(&client, Carried::new(1)), look);
    assert_eq!((out.unwrap(), reserved), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn over_a_concurrency_limit_others_are_served_while_one_sleeps() {
    // The permit of the attempt is given back at its end, not at the end of the call.
    let upstream = Script::from_fn(|n, _| Step::answer(if n == 1 { 500 } else { 200 }));
    let limited = ConcurrencyLimitLayer::new(1).layer(upstream);
    let client = plain_retry(retry(9 * SECOND), Limits::default()).layer(limited);
    let first = tokio::spawn({
        let client = client.clone();
        async move { call(&client, Carried::new(1)).await.unwrap() }
    });
    let second = async {
        tokio::time::sleep(SECOND).await;
        let within = tokio::time::timeout(SECOND, call(&client, Carried::new(2)));
        within.await.unwrap().unwrap()
    };
    assert_eq!(second.await, 200);
    assert_eq!(first.await.unwrap(), 200);
}

#[tokio::test(start_paused = true)]
async fn errors_of_readiness_reach_the_caller() {
    let readiness = tower_spillway_core::testing::readiness::Readiness::new();
    readiness.set_failed("closed");
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().adapter(plain()))
        .layer(plain_retry(retry(SECOND), Limits::default()))
        .layer(readiness)
        .service(Script::<Carried<u64>, u16>::always(Step::answer(200)));
    let error = call(&client, Carried::new(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "closed");
}
