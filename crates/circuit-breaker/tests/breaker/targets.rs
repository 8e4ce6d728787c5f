use tower::{Layer, ServiceBuilder};
use tower_circuit_breaker::{Breaker, Refusal, Refused, State};
use tower_spillway_core::{
    Class, Reading,
    testing::{contract::ReadyProbeLayer, readiness::Readiness},
};

use crate::support::*;

fn failing() -> Upstream {
    Upstream::always(answer(Class::Transient))
}

async fn fail_on<S>(service: &mut S, target: &'static str)
where
    S: tower::Service<Request, Response = Reading, Error = tower_spillway_core::BoxError>,
{
    for _ in 0..3 {
        send(service, request_to(target).0).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn one_builder_used_for_two_targets_has_two_breakers() {
    let layer = layer(config());
    let builder = ServiceBuilder::new().layer(layer.clone());
    let mut opus = builder.clone().service(failing());
    let mut gemini = builder.service(Upstream::always(answer(Class::Success)));
    fail_on(&mut opus, "opus").await;
    assert_eq!(layer.breaker("opus").state(), State::Open);
    assert_eq!(layer.breaker("gemini").state(), State::Closed);
    send(&mut gemini, request_to("gemini").0).await.unwrap();
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn layer_called_twice_for_one_target_has_one_breaker() {
    let layer = layer(config());
    let (mut one, mut two) = (layer.layer(failing()), layer.layer(failing()));
    send(&mut one, request_to("opus").0).await.unwrap();
    send(&mut one, request_to("opus").0).await.unwrap();
    send(&mut two, request_to("opus").0).await.unwrap();
    let error = send(&mut one, request_to("opus").0).await.unwrap_err();
    assert!(Refused::find(&*error).is_some());
}

#[tokio::test(start_paused = true)]
async fn one_service_cloned_onto_two_targets_has_two_breakers() {
    let probe = ReadyProbeLayer::new();
    let layer = layer(config());
    let upstream = failing();
    let mut opus = layer.layer(probe.layer(upstream.clone()));
    let mut gemini = opus.clone();
    fail_on(&mut opus, "opus").await;
    // All that the service knows is opus, which is open.
    send(&mut gemini, request_to("gemini").0).await.unwrap();
    send(&mut gemini, request_to("gemini").0).await.unwrap();
    assert_eq!(layer.breaker("gemini").snapshot().failures_in_a_row, 2);
    let error = send(&mut opus, request_to("opus").0).await.unwrap_err();
    assert_eq!(Refused::find(&*error).unwrap().refusal(), Refusal::Open);
    assert_eq!(upstream.calls(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_first_call_for_another_target_does_not_wait_for_inner() {
    let readiness = Readiness::new();
    let layer = layer(config());
    let mut opus = layer.layer(readiness.layer(failing()));
    let mut gemini = opus.clone();
    fail_on(&mut opus, "opus").await;
    readiness.set_pending();
    let error = send(&mut gemini, request_to("gemini").0).await.unwrap_err();
    assert_eq!(Refused::find(&*error).unwrap().refusal(), Refusal::NotReady);
    // Then the service knows better, and waits.
    assert!(!ready_now(&mut gemini));
    readiness.set_ready();
    send(&mut gemini, request_to("gemini").0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fresh_clone_knows_the_target_that_another_learnt() {
    let readiness = Readiness::new();
    let layer = layer(config());
    let pristine = layer.layer(readiness.layer(failing()));
    for _ in 0..3 {
        fail_once(pristine.clone()).await;
    }
    readiness.set_pending();
    // Inner would never become ready.
    let error = send(&mut pristine.clone(), request_to("opus").0)
        .await
        .unwrap_err();
    assert!(Refused::find(&*error).is_some());
}

async fn fail_once<S>(mut service: S)
where
    S: tower::Service<Request, Response = Reading, Error = tower_spillway_core::BoxError>,
{
    send(&mut service, request_to("opus").0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_breaker_shared_on_purpose_hears_all_targets() {
    let shared = Breaker::new("all of them", config()).unwrap();
    let layer = layer(config().failures(100)).with_breaker(shared.clone());
    let (mut one, mut two) = (layer.layer(failing()), layer.layer(failing()));
    send(&mut one, request_to("opus").0).await.unwrap();
    send(&mut two, request_to("gemini").0).await.unwrap();
    send(&mut two, request()).await.unwrap();
    assert_eq!(shared.state(), State::Open);
    assert_eq!(layer.breaker("opus").state(), State::Open);
    assert_eq!(shared.target().unwrap().as_str(), "all of them");
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_ledger_names_no_target() {
    let layer = layer(config());
    let mut service = layer.layer(failing());
    for _ in 0..3 {
        let request = request().with_ledger(tower_spillway_core::Ledger::new());
        send(&mut service, request).await.unwrap();
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Open);
}
