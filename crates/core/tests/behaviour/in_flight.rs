//! Permits: who has one, for how long, and what waits.

use std::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_spillway_core::{
    BoxError, Carried, Class, Ledger, Refusal, Refused, RetryLayer, TargetName,
    attempt_timeout::AttemptTimeoutLayer,
    call::CallLayer,
    in_flight::{InFlight, InFlightLayer, PermitBody, Permits},
    ledger::LegPlan,
    testing::{
        contract::ReadyProbeLayer,
        drops,
        readiness::Readiness,
        script::{Script, Step},
    },
};

use crate::support::*;

fn layer(limit: usize) -> InFlightLayer {
    InFlightLayer::new(limit).unwrap()
}

fn refusal(error: &BoxError) -> Refusal {
    Refused::find(&**error).unwrap().refusal()
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_are_out_and_all_are_served_in_turn() {
    let layer = layer(3).ready_within(9 * SECOND).until_response();
    let upstream = Script::always(answer(200, &[]).after(SECOND));
    let client = layer.layer(upstream.clone());
    let calls: Vec<_> = (0..9)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { call(&client, request(Method::GET)).await })
        })
        .collect();
    tokio::task::yield_now().await;
    let permits = layer.unnamed_permits();
    assert_eq!((permits.in_flight(), permits.waiting()), (3, 6));
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    let each = [0, 0, 0, 1, 1, 1, 2, 2, 2].map(|s| s * SECOND);
    assert_eq!(upstream.times(), each);
    assert_eq!((permits.in_flight(), permits.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_does_not_come_in_time_is_a_refusal() {
    let layer = layer(1);
    let upstream: Script<_, Response<Body>> = Script::always(Step::hang());
    let client = layer.layer(upstream.clone());
    let first = tokio::spawn({
        let client = client.clone();
        async move { call(&client, request(Method::GET)).await.map(drop) }
    });
    tokio::task::yield_now().await;
    let started = Instant::now();
    let error = call(&client, request(Method::GET)).await.unwrap_err();
    assert_eq!(refusal(&error), Refusal::Overloaded);
    assert_eq!((started.elapsed(), upstream.calls()), (SECOND, 1));

    // Not past the deadline of the call, and before the call's own timer.
    let bounded = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(SECOND / 4))
        .service(client.clone());
    let started = Instant::now();
    let error = call(&bounded, request(Method::GET)).await.unwrap_err();
    assert_eq!(refusal(&error), Refusal::Overloaded);
    assert_eq!(started.elapsed(), SECOND / 4);
    first.abort();
}

/// A queue is no failure of the target: the attempt's time starts with the permit.
#[tokio::test(start_paused = true)]
async fn an_attempts_time_starts_with_its_permit() {
    let layer = layer(1).ready_within(9 * SECOND);
    let upstream = Script::always(answer(200, &[]).after(2 * SECOND));
    let client = ServiceBuilder::new()
        .layer(layer)
        .layer(AttemptTimeoutLayer::to_head(2 * SECOND))
        .service(upstream.clone());
    let one = async { call(&client, request(Method::GET)).await.map(drop) };
    let two = async { call(&client, request(Method::GET)).await.map(drop) };
    let three = async { call(&client, request(Method::GET)).await.map(drop) };
    let (one, two, three) = tokio::join!(one, two, three);
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    assert_eq!(upstream.times(), [0, 2, 4].map(|s| s * SECOND));
}

#[tokio::test(start_paused = true)]
async fn refused_it_is_no_send_and_is_not_retried() {
    let layer = layer(1).ready_within(Duration::ZERO);
    let upstream = Script::<_, Response<Body>>::always(Step::hang());
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(layer)
        .service(upstream.clone());
    let first = tokio::spawn({
        let client = client.clone();
        async move { call(&client, request(Method::GET)).await.map(drop) }
    });
    tokio::task::yield_now().await;
    let ledger = Ledger::new();
    let mut second = request(Method::GET);
    second.extensions_mut().insert(ledger.clone());
    assert!(call(&client, second).await.is_err());
    let report = ledger.report();
    assert_eq!(report.sends(), 0);
    assert_eq!(report.attempts[0].class, Class::Refused);
    first.abort();
}

/// So many pieces, and a failure at the end if it fails.
struct Chunks {
    left: u32,
    fails: bool,
}

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.left == 0 {
            let fails = std::mem::take(&mut self.fails);
            return Poll::Ready(fails.then(|| Err("cut".into())));
        }
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"piece")))))
    }
}

async fn body_of(layer: &InFlightLayer, left: u32, fails: bool) -> Response<PermitBody<Chunks>> {
    let upstream: Script<http::Request<Body>, _> = Script::always(Step::answer_with(move || {
        Response::new(Chunks { left, fails })
    }));
    call(&layer.layer(upstream), request(Method::GET))
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_kept_to_the_end_of_the_body() {
    let layer = layer(1);
    let permits = layer.unnamed_permits();

    let mut response = body_of(&layer, 2, false).await;
    for _ in 0..2 {
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "piece");
        assert_eq!(permits.in_flight(), 1, "in mid-body");
    }
    assert!(response.body_mut().frame().await.is_none());
    assert_eq!(
        permits.in_flight(),
        0,
        "at its end, though it is still held"
    );
    drop(response);

    let mut response = body_of(&layer, 0, true).await;
    assert!(response.body_mut().frame().await.unwrap().is_err());
    assert_eq!(permits.in_flight(), 0, "at its failure");

    let response = body_of(&layer, 2, false).await;
    assert_eq!(permits.in_flight(), 1);
    drop(response);
    assert_eq!(permits.in_flight(), 0, "dropped unread");
}

#[tokio::test(start_paused = true)]
async fn a_body_known_to_be_empty_keeps_no_permit() {
    let layer = layer(1);
    let upstream = Script::always(Step::answer_with(|| Response::new(Body::default())));
    let response = call(&layer.layer(upstream), request(Method::GET))
        .await
        .unwrap();
    assert_eq!(layer.unnamed_permits().in_flight(), 0);
    drop(response);

    let upstream = Script::always(answer(200, &[]));
    let response = call(&layer.layer(upstream), request(Method::GET))
        .await
        .unwrap();
    assert_eq!(layer.unnamed_permits().in_flight(), 1);
    let read = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(read, "body of a 200");
    assert_eq!(layer.unnamed_permits().in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_target_has_permits_of_its_own() {
    let layer = layer(1).adapter(plain()).until_response();
    let upstream: Upstream = Script::always(Step::hang());
    let client = layer.layer(upstream.clone());
    let to = |name: &'static str| {
        let leg = Ledger::new().open_leg(LegPlan::new(TargetName::from(name)), Instant::now());
        client.clone().oneshot(Carried::new(1).with_ledger(leg))
    };
    let opus = tokio::spawn(to("opus"));
    let gemini = tokio::spawn(to("gemini"));
    tokio::task::yield_now().await;
    assert_eq!(upstream.calls(), 2);
    assert_eq!(layer.permits("opus").in_flight(), 1);
    assert_eq!(layer.permits("gemini").in_flight(), 1);
    assert!(to("opus").await.is_err());
    opus.abort();
    gemini.abort();

    let permits = Permits::new(1).unwrap();
    let shared = InFlightLayer::with_permits(permits.clone());
    assert_eq!(shared.permits("opus").limit(), 1);
    let held = body_of(&shared, 1, false).await;
    assert_eq!(shared.permits("gemini").in_flight(), permits.in_flight());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn inner_is_called_only_when_ready_and_reserves_nothing_for_who_waits() {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let layer = layer(1).ready_within(9 * SECOND);
        let upstream = Script::always(answer(200, &[]).after(SECOND));
        let client = layer.layer(probe.layer(upstream.clone()));
        let calls: Vec<_> = (0..4)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { call(&client, request(Method::GET)).await.map(drop) })
            })
            .collect();
        tokio::time::sleep(SECOND / 2).await;
        assert_eq!(
            (layer.unnamed_permits().waiting(), probe.reserved()),
            (3, 0)
        );
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert_eq!((upstream.calls(), probe.reserved()), (4, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_permit_in_hand_it_still_waits_for_readiness_no_longer_than_allowed() {
    for (fails, expected) in [(false, "not_ready"), (true, "closed")] {
        let layer = layer(1);
        let readiness = Readiness::new();
        let upstream = Script::always(answer(200, &[]).after(SECOND / 2));
        let mut client = layer.layer(readiness.layer(upstream.clone()));
        let first = client.ready().await.unwrap().call(request(Method::GET));
        let second = client.ready().await.unwrap().call(request(Method::GET));
        match fails {
            true => readiness.set_failed("closed"),
            false => readiness.set_pending(),
        }
        let started = Instant::now();
        let (first, second) = tokio::join!(async { first.await.map(drop) }, second);
        first.unwrap();
        let error = second.map(drop).unwrap_err();
        if fails {
            assert_eq!(error.to_string(), expected);
        } else {
            assert_eq!(refusal(&error).as_str(), expected);
            assert_eq!(started.elapsed(), SECOND);
        }
        let permits = layer.unnamed_permits();
        assert_eq!((permits.in_flight(), permits.waiting()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_point_it_gives_everything_back() {
    let probe = ReadyProbeLayer::pending_once();
    let layer = layer(1).ready_within(9 * SECOND);
    let permits = layer.unnamed_permits();
    let upstream = Script::always(answer(200, &[]).after(SECOND));
    let client = layer.layer(probe.layer(upstream.clone()));
    let other = RefCell::new(None);
    let drops = drops::walk(
        || {
            // Another call is out, so that this one waits first.
            let client = client.clone();
            other.replace(Some(tokio::spawn({
                let client = client.clone();
                async move { call(&client, request(Method::GET)).await.map(drop) }
            })));
            async move {
                tokio::task::yield_now().await;
                let response = call(&client, request(Method::GET)).await.unwrap();
                response.into_body().collect().await.unwrap()
            }
        },
        |polls| {
            let out = usize::from(!other.borrow().as_ref().unwrap().is_finished());
            assert!(permits.in_flight() <= out, "after {polls} polls");
            assert_eq!(permits.waiting(), 0, "after {polls} polls");
            other.take().unwrap().abort();
        },
    )
    .await;
    assert!(drops >= 4, "{drops}");
    tokio::task::yield_now().await;
    assert_eq!((permits.in_flight(), probe.reserved()), (0, 0));
}

#[test]
fn a_limit_of_none_or_too_many_is_refused() {
    for limit in [0, usize::MAX] {
        let error = InFlightLayer::new(limit).unwrap_err();
        assert_eq!(error.what(), "in_flight");
        assert_eq!(Permits::new(limit).unwrap_err(), error);
    }
}

#[test]
fn auto_traits() {
    fn all<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    all::<InFlightLayer>();
    all::<Permits>();
    all::<InFlight<Upstream>>();
    fn send<T: Send + std::fmt::Debug>(_: &T) {}
    let mut client = layer(1)
        .adapter(plain())
        .until_response()
        .layer(always(200));
    send(&client.call(Carried::new(1)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_a_driver_holds_keeps_no_permit_from_the_retry_nor_from_others() {
    let layer = layer(1);
    let upstream = Script::new([answer(503, &[("retry-after", "30")]), answer(200, &[])]);
    let client = RetryLayer::new(retry(30 * SECOND)).layer(layer.layer(upstream.clone()));
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { call(&client, request(Method::GET)).await }
    });
    tokio::time::sleep(SECOND).await;
    assert_eq!(layer.unnamed_permits().in_flight(), 0);
    assert_eq!(
        call(&client, request(Method::GET)).await.unwrap().status(),
        200
    );
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    assert_eq!(upstream.calls(), 3);
}
