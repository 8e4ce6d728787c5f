//! What every retrying layer keeps to: checks for the tests of a layer over `http` requests.
//!
//! Each is called under paused time with the layer, which sends 3 times, and an answer that it sends
//! again after a wait of at most 10 s.
//!
//! # Panics
//!
//! A check panics where the layer does not keep to it, so that the test fails that calls it.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    contract::{ReadyProbe, ReadyProbeLayer},
    drops,
    gate::CountingGate,
    readiness::{Readiness, WithReadiness},
    script::{Script, Step},
};
use crate::{BoxError, Class, Ledger};

/// What the checks send.
pub type Req = Request<String>;
/// What the upstream answers.
pub type Res = Response<String>;
/// The service below the layer.
pub type Below = WithReadiness<ReadyProbe<Script<Req, Res>>>;

/// A layer that the checks can be made of. It is implemented for all that fit.
pub trait Retrying: Layer<Below, Service: Called> {}

impl<L: Layer<Below, Service: Called>> Retrying for L {}

/// A service that the checks can call. It is implemented for all that fit.
pub trait Called: Service<Req, Response = Res, Error = BoxError> + Clone {}

impl<S: Service<Req, Response = Res, Error = BoxError> + Clone> Called for S {}

fn request() -> Req {
    Request::new("question".to_owned())
}

async fn ready(service: &mut impl Called) {
    let ready = poll_fn(|cx| service.poll_ready(cx)).await;
    assert!(ready.is_ok(), "{ready:?}");
}

async fn call(mut service: impl Called, request: Req) -> Result<Res, BoxError> {
    ready(&mut service).await;
    service.call(request).await
}

/// Every send, the first of a call and the later ones, uses an instance that was polled ready, and
/// none stays ready for nobody.
pub async fn every_send_uses_a_ready_instance(
    layer: &impl Retrying,
    answer: impl Fn() -> Res + Clone + Send + Sync + 'static,
) {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let upstream = Script::always(Step::answer_with(answer.clone()));
        let below = Readiness::new().layer(probe.layer(upstream.clone()));
        let mut service = layer.layer(below);
        for _ in 0..2 {
            ready(&mut service).await;
            let out = service.call(request()).await;
            assert_eq!(out.map(|r| r.status()).ok(), Some(answer().status()));
        }
        drop(service);
        assert_eq!((upstream.calls(), probe.reserved()), (6, 0));
    }
}

/// While it sleeps it holds nothing below ready.
pub async fn no_readiness_is_held_while_sleeping(
    layer: &impl Retrying,
    answer: impl Fn() -> Res + Send + Sync + 'static,
) {
    let probe = ReadyProbeLayer::new();
    let upstream = Script::always(Step::answer_with(answer));
    let service = layer.layer(Readiness::new().layer(probe.layer(upstream.clone())));
    let mut call = pin!(call(service, request()));
    let asleep = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
    assert!(asleep, "it did not wait");
    assert_eq!((upstream.calls(), probe.reserved()), (1, 0));
}

/// A service that fails to become ready again does not take the place of what it had answered.
pub async fn a_readiness_error_gives_the_answer_in_hand(
    layer: &impl Retrying,
    answer: impl Fn() -> Res + Clone + Send + Sync + 'static,
) {
    let readiness = Readiness::new();
    let breaks = readiness.clone();
    let given = answer.clone();
    let upstream = Script::from_fn(move |_, _: &Req| {
        breaks.set_failed("pool closed");
        Step::answer_with(given.clone())
    });
    let below = readiness.layer(ReadyProbeLayer::new().layer(upstream.clone()));
    let out = call(layer.layer(below), request()).await;
    let answer = answer();
    let parts = |r: &Res| (r.status(), r.headers().clone(), r.body().clone());
    assert_eq!(out.as_ref().map(parts).ok(), Some(parts(&answer)));
    assert_eq!(upstream.calls(), 1);
}

/// Dropped at any await point it leaves no call inside of the gate, no retry reserved and no request
/// out, and every send is on record; `gate` is one that `layer` asks.
pub async fn dropped_anywhere_it_leaves_nothing_open(
    layer: &impl Retrying,
    gate: &CountingGate,
    answer: impl Fn() -> Res + Send + Sync + 'static,
) {
    let second = Duration::from_secs(1);
    let upstream = Script::always(Step::answer_with(answer).after(second));
    let probe = ReadyProbeLayer::pending_once();
    let service = layer.layer(Readiness::new().layer(probe.layer(upstream.clone())));
    let last = RefCell::new((Ledger::new(), 0));
    let make = || {
        let ledger = Ledger::new();
        let mut request = request();
        request.extensions_mut().insert(ledger.clone());
        last.replace((ledger, upstream.calls()));
        call(service.clone(), request)
    };
    let dropped = drops::walk(make, |polls| {
        gate.assert_nothing_open();
        assert_eq!(upstream.in_flight(), 0, "after {polls} polls");
        assert_eq!(probe.reserved(), 0, "after {polls} polls");
        let (ledger, before) = &*last.borrow();
        let attempts = ledger.report().attempts;
        let sent = upstream.calls().saturating_sub(*before);
        assert_eq!(attempts.len(), sent, "after {polls} polls");
        // The one that was out at the drop is on record as such; those before it are what they were.
        for attempt in attempts.iter().rev().skip(1) {
            assert_ne!(attempt.class, Class::Cancelled, "after {polls} polls");
        }
    })
    .await;
    // Unpolled, readiness, and at least call, sleep and readiness of each further send.
    assert!(dropped >= 8, "{dropped}");
    assert!(gate.granted() > 0, "it asked the gate");
    gate.assert_nothing_open();
}
