//! The shared hold: who waits, until when, and what is not sent.

use std::{cell::RefCell, time::Duration};

use http::{Request, Response};
use tokio::{task::JoinHandle, time::Instant};
use tower::{Layer, Service, ServiceExt};
use tower_retry_after::{
    Holding, RetryAfterLayer,
    hold::{HoldConfig, HoldKey, SharedHold},
};
use tower_spillway_core::{
    BoxError, Carried, Cause, Chance, Class, Failure, Ledger, Plain, Reading, Refusal, Refused,
    Report, RetryLayer, Verdict,
    call::CallLayer,
    hint::{Hint, Jitter, Source},
    testing::{
        clock,
        contract::ReadyProbeLayer,
        drops,
        gate::CountingGate,
        readiness::Readiness,
        script::{Script, Step},
    },
};

use crate::support::{MS, SECOND, Upstream, get, response};

const UNNAMED: HoldKey = HoldKey::UNNAMED;

fn layer() -> RetryAfterLayer<tower_spillway_core::Http, Holding> {
    RetryAfterLayer::new()
        .chance(Chance::seeded(4))
        .hold(HoldConfig::new())
        .unwrap()
}

fn exact() -> RetryAfterLayer<tower_spillway_core::Http, Holding> {
    layer().jitter(Jitter::None)
}

/// Throttles with this hint until that time, then answers.
fn throttles(hint: &'static str, until: Duration) -> Upstream {
    let opened = Instant::now();
    Script::from_fn(move |_, _| match opened.elapsed() < until {
        true => Step::answer_with(move || response(429, hint)),
        false => Step::answer_with(|| response(200, "")),
    })
}

type Out = Result<Response<String>, BoxError>;

fn spawn<S>(service: &S) -> JoinHandle<(Out, Report)>
where
    S: Service<Request<String>, Response = Response<String>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let service = service.clone();
    tokio::spawn(async move {
        let ledger = Ledger::new();
        let mut request = get();
        request.extensions_mut().insert(ledger.clone());
        (service.oneshot(request).await, ledger.report())
    })
}

/// One call hears the hint; the others find themselves held. Gives the times of all sends after it.
async fn after_one_hint(callers: usize, hint: &'static str, until: Duration) -> Vec<Duration> {
    let upstream = throttles(hint, until);
    let service = layer().layer(upstream.clone());
    let mut calls = vec![spawn(&service)];
    tokio::task::yield_now().await;
    calls.extend((0..callers).map(|_| spawn(&service)));
    for call in calls {
        let (out, report) = call.await.unwrap();
        assert_eq!(out.unwrap().status(), 200);
        assert!(report.sends() <= 2);
    }
    let times = upstream.times();
    assert_eq!(times[0], Duration::ZERO);
    assert_eq!(
        times.len(),
        callers + 2,
        "nobody was sent to be told the same"
    );
    times[1..].to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_hundred_callers_held_by_one_hint_of_60_s_wake_spread_and_none_early() {
    let sends = after_one_hint(100, "60", 60 * SECOND).await;
    assert!(sends[0] >= 60 * SECOND, "{:?}", sends[0]);
    assert!(sends[100] - sends[0] >= 4 * SECOND, "{sends:?}");
    assert!(sends[100] <= 65 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn bugs_ra_no_jitter_herd() {
    let sends = after_one_hint(30, "2", 2 * SECOND).await;
    assert!(sends[0] >= 2 * SECOND, "{:?}", sends[0]);
    for from in &sends {
        let window = sends
            .iter()
            .filter(|t| (*from..=*from + 50 * MS).contains(*t));
        assert!(window.count() <= 6, "within 50 ms of {from:?}: {sends:?}");
    }
}

/// Who comes shortly before the end is spread as widely as who waited all the time.
#[tokio::test(start_paused = true)]
async fn late_comers_are_spread_too() {
    let upstream = throttles("60", 60 * SECOND);
    let service = layer().layer(upstream.clone());
    let first = spawn(&service);
    tokio::time::sleep(60 * SECOND - MS).await;
    let calls: Vec<_> = (0..50).map(|_| spawn(&service)).collect();
    for call in calls.into_iter().chain([first]) {
        assert_eq!(call.await.unwrap().0.unwrap().status(), 200);
    }
    let sends = &upstream.times()[1..];
    assert!(sends[0] >= 60 * SECOND);
    assert!(sends[50] - sends[0] >= 4 * SECOND, "{sends:?}");
}

#[tokio::test(start_paused = true)]
async fn bugs_recool_keeps_short_deadline() {
    // All are under way before the first is answered.
    let answers = [("1", 5), ("", 50), ("", 60), ("1", 70)];
    let upstream = Script::new(
        answers.map(|(hint, at)| Step::answer_with(move || response(429, hint)).after(at * MS)),
    );
    let config = HoldConfig::new().without_hint(60 * SECOND);
    let layer = RetryAfterLayer::new().hold(config).unwrap();
    let hold = layer.hold_handle().clone();
    let service = layer.layer(upstream.clone());
    let calls: Vec<_> = answers.iter().map(|_| spawn(&service)).collect();
    tokio::time::sleep(10 * MS).await;
    assert_eq!(hold.retry_in(UNNAMED), Some(995 * MS));
    tokio::time::sleep(45 * MS).await;
    assert_eq!(hold.retry_in(UNNAMED), Some(60 * SECOND - 5 * MS), "longer");
    tokio::time::sleep(45 * MS).await;
    let until = 100 * MS + hold.retry_in(UNNAMED).unwrap();
    assert_eq!(until, 60 * SECOND + 60 * MS, "never shorter");
    calls.into_iter().for_each(|call| call.abort());
}

#[tokio::test(start_paused = true)]
async fn bugs_hint_over_cap_discarded() {
    let upstream = throttles("600", 601 * SECOND);
    let config = HoldConfig::new().max_hold(60 * SECOND);
    let layer = RetryAfterLayer::new().hold(config).unwrap();
    let hold = layer.hold_handle().clone();
    let service = layer.layer(upstream.clone());
    // Not waited out in the request, and not taken for no hint.
    let (out, report) = spawn(&service).await.unwrap();
    assert_eq!(out.unwrap().status(), 429);
    assert_eq!(report.attempts[0].cause, Some(Cause::HintTooLong));
    assert_eq!(hold.retry_in(UNNAMED), Some(60 * SECOND));
    assert_eq!(upstream.times(), [Duration::ZERO]);
}

#[tokio::test(start_paused = true)]
async fn a_hint_equal_to_the_longest_hold_holds_for_all_of_it() {
    for (hint, held) in [("299", 299), ("300", 300), ("301", 300)] {
        let layer = exact();
        let service = layer.layer(throttles(hint, SECOND));
        spawn(&service).await.unwrap().0.unwrap();
        assert_eq!(layer.hold_handle().retry_in(UNNAMED), Some(held * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_refused_at_once_with_the_time_to_come_back() {
    for (hint, deadline, cause) in [
        ("30", 20, Cause::DeadlineWouldPass),
        ("90", 200, Cause::HintTooLong),
    ] {
        let layer = exact();
        let upstream = throttles(hint, 200 * SECOND);
        let service =
            (CallLayer::new().deadline(deadline * SECOND), layer.clone()).layer(upstream.clone());
        assert_eq!(spawn(&service).await.unwrap().0.unwrap().status(), 429);
        tokio::time::sleep(5 * SECOND).await;

        let started = Instant::now();
        let (out, report) = spawn(&service).await.unwrap();
        let error = out.unwrap_err();
        let refused = Refused::find(&*error).unwrap();
        assert_eq!(refused.refusal(), Refusal::Held);
        assert_eq!(refused.wait(), layer.hold_handle().retry_in(UNNAMED));
        assert_eq!(started.elapsed(), Duration::ZERO);
        assert_eq!((report.sends(), upstream.calls()), (0, 1));
        assert_eq!(report.attempts[0].cause, Some(cause));
    }
}

#[tokio::test(start_paused = true)]
async fn released_by_hand_the_next_call_passes() {
    let layer = exact();
    let hold = layer.hold_handle();
    let upstream = throttles("60", Duration::ZERO);
    let service = layer.layer(upstream.clone());
    hold.hold(UNNAMED, 60 * SECOND);
    let waiting = spawn(&service);
    tokio::time::sleep(SECOND).await;
    assert!(hold.release(UNNAMED));
    assert!(!hold.release(UNNAMED));
    assert!(!hold.release("opus"), "a name that was never held");
    spawn(&service).await.unwrap().0.unwrap();
    waiting.await.unwrap().0.unwrap();
    assert_eq!(upstream.times(), [SECOND, 60 * SECOND]);
}

/// Unsent retries are no sends and ask no budget.
#[tokio::test(start_paused = true)]
async fn who_finds_the_hold_extended_waits_again() {
    let gate = CountingGate::allowing(9);
    let layer = exact().max_attempts(1).unwrap().gate(gate.as_gate());
    let hold = layer.hold_handle().clone();
    let upstream = throttles("", Duration::ZERO);
    hold.hold(UNNAMED, 10 * SECOND);
    let call = spawn(&layer.layer(upstream.clone()));
    for _ in 0..5 {
        tokio::time::sleep(9 * SECOND).await;
        hold.hold(UNNAMED, 10 * SECOND);
    }
    let (out, report) = call.await.unwrap();
    assert_eq!(out.unwrap().status(), 200);
    assert_eq!(upstream.times(), [55 * SECOND]);
    assert_eq!((report.sends(), gate.asked()), (1, 0));
    assert_eq!(report.waited, 55 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn below_another_driver_it_advises() {
    let layer = exact();
    let upstream = throttles("", Duration::ZERO);
    let outer = RetryLayer::new(
        |_: &_, _: &tower_spillway_core::Outcome<'_, Response<String>>| Verdict::Pass,
    );
    layer.hold_handle().hold(UNNAMED, 7 * SECOND);
    let (out, report) = spawn(&(outer, layer).layer(upstream.clone()))
        .await
        .unwrap();
    assert_eq!(out.unwrap().status(), 200);
    assert_eq!(upstream.times(), [7 * SECOND]);
    assert_eq!(report.sends(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_success_holds_only_by_an_exhausted_ietf_ratelimit() {
    for (name, value, held) in [
        ("ratelimit", "\"default\";r=0;t=30", Some(30 * SECOND)),
        ("ratelimit", "\"default\";r=3;t=30", None),
        ("x-ratelimit-reset-requests", "30", None),
        ("retry-after", "30", None),
    ] {
        let layer = exact();
        let upstream: Upstream = Script::always(Step::answer_with(move || {
            let builder = Response::builder().header(name, value);
            let builder = builder.header("x-ratelimit-remaining-requests", "0");
            builder.body(String::new()).unwrap()
        }));
        let (out, _) = spawn(&layer.layer(upstream)).await.unwrap();
        assert_eq!(out.unwrap().status(), 200);
        assert_eq!(
            layer.hold_handle().retry_in(UNNAMED),
            held,
            "{name}: {value}"
        );
    }
}

/// Only Throttled holds: a 500 says nothing of the others.
#[tokio::test(start_paused = true)]
async fn other_failures_hold_nobody() {
    for (status, hint) in [(500, "30"), (429, ""), (429, "0"), (404, "30")] {
        let layer = exact().max_attempts(1).unwrap();
        let upstream: Upstream = Script::always(Step::answer_with(move || response(status, hint)));
        spawn(&layer.layer(upstream)).await.unwrap().0.unwrap();
        let held = layer.hold_handle().retry_in(UNNAMED);
        assert_eq!(held, None, "{status} {hint}");
    }
}

#[tokio::test(start_paused = true)]
async fn layers_share_a_hold_on_purpose_only() {
    let shared = SharedHold::new(HoldConfig::new()).unwrap();
    let upstream = throttles("30", SECOND);
    let one = RetryAfterLayer::new().shared_hold(shared.clone());
    let two = RetryAfterLayer::new().shared_hold(shared);
    let call = spawn(&one.layer(upstream.clone()));
    tokio::task::yield_now().await;
    assert_eq!(two.hold_handle().retry_in(UNNAMED), Some(30 * SECOND));
    assert_eq!(layer().hold_handle().retry_in(UNNAMED), None);
    call.abort();
}

fn tenant(request: &Request<String>) -> String {
    let value = request.headers().get("x-tenant");
    value.map_or(String::new(), |v| v.to_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn by_a_key_of_the_request() {
    let shared = SharedHold::<String>::new(HoldConfig::new().most_keys(2)).unwrap();
    let upstream = Script::from_fn(|n, _: &Request<String>| {
        Step::answer_with(move || match n {
            1 => response(429, "30"),
            _ => response(200, ""),
        })
    });
    let service = RetryAfterLayer::new()
        .jitter(Jitter::None)
        .keyed_hold(shared.clone(), tenant)
        .layer(upstream.clone());
    let of = |name: &'static str| {
        let request = Request::builder().header("x-tenant", name);
        service
            .clone()
            .oneshot(request.body(String::new()).unwrap())
    };
    let acme = tokio::spawn(of("acme"));
    tokio::task::yield_now().await;
    assert_eq!(shared.retry_in("acme"), Some(30 * SECOND));
    let started = Instant::now();
    of("other").await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO, "another key passes");
    of("acme").await.unwrap();
    assert_eq!(started.elapsed(), 30 * SECOND);
    acme.await.unwrap().unwrap();

    // Full of held keys, those that come share one hold; once idle, keys make room.
    shared.hold("a", 10 * SECOND);
    shared.hold("b", 10 * SECOND);
    shared.hold("c", 20 * SECOND);
    assert_eq!(
        shared.retry_in("d"),
        Some(20 * SECOND),
        "not known, so careful"
    );
    assert_eq!(shared.retry_in("a"), Some(10 * SECOND));
    tokio::time::sleep(11 * SECOND).await;
    shared.hold("d", SECOND);
    assert_eq!(shared.retry_in("d"), Some(SECOND));
}

#[tokio::test(start_paused = true)]
async fn while_held_a_pending_inner_service_keeps_nobody_waiting() {
    let readiness = Readiness::new();
    let upstream = throttles("", Duration::ZERO);
    let layer = exact();
    let mut service = layer.layer(readiness.layer(upstream.clone()));
    service.ready().await.unwrap().call(get()).await.unwrap();
    layer.hold_handle().hold(UNNAMED, 200 * SECOND);
    readiness.set_pending();
    let within = tokio::time::timeout(SECOND, service.ready());
    let error = within
        .await
        .unwrap()
        .unwrap()
        .call(get())
        .await
        .unwrap_err();
    let refused = Refused::find(&*error).unwrap();
    assert_eq!(refused.wait(), Some(200 * SECOND), "too long to wait here");
}

#[tokio::test(start_paused = true)]
async fn ready_without_asking_inner_it_refuses_though_the_hold_ended_in_between() {
    let probe = ReadyProbeLayer::new();
    let upstream = throttles("", Duration::ZERO);
    let layer = exact();
    let mut service = layer.layer(probe.layer(upstream.clone()));
    service.ready().await.unwrap().call(get()).await.unwrap();
    layer.hold_handle().hold(UNNAMED, 10 * SECOND);
    service.ready().await.unwrap();
    assert_eq!(probe.reserved(), 0, "inner was not polled");
    tokio::time::sleep(20 * SECOND).await;
    // Called now it would breach the contract, which the probe would tell.
    assert_eq!(service.call(get()).await.unwrap().status(), 200);
    assert_eq!(upstream.times(), [Duration::ZERO, 20 * SECOND + MS]);
}

#[tokio::test(start_paused = true)]
async fn what_inner_reserved_is_given_back_while_held() {
    let probe = ReadyProbeLayer::new();
    let layer = exact();
    let mut service = layer.layer(probe.layer(throttles("", Duration::ZERO)));
    service.ready().await.unwrap();
    assert_eq!(probe.reserved(), 1);
    layer.hold_handle().hold(UNNAMED, 30 * SECOND);
    let call = tokio::spawn(service.call(get()));
    tokio::time::sleep(SECOND).await;
    assert_eq!(probe.reserved(), 0);
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn every_send_uses_an_instance_that_was_polled_ready() {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let upstream = throttles("5", 20 * SECOND);
        let service = layer()
            .max_attempts(9)
            .unwrap()
            .layer(probe.layer(upstream));
        let calls: Vec<_> = (0..10).map(|_| spawn(&service)).collect();
        for call in calls {
            assert_eq!(call.await.unwrap().0.unwrap().status(), 200);
        }
        drop(service);
        assert_eq!(probe.reserved(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_point_it_leaves_nothing_open() {
    let upstream = Script::from_fn(|_, request: &Request<String>| {
        let first = request.extensions().get::<Ledger>().unwrap().attempt() == 1;
        Step::answer_with(move || match first {
            true => response(429, "1"),
            false => response(200, ""),
        })
        .after(SECOND)
    });
    let probe = ReadyProbeLayer::pending_once();
    let layer = layer();
    let service = layer.layer(probe.layer(upstream.clone()));
    let last = RefCell::new((Ledger::new(), 0));
    let drops = drops::walk(
        || {
            let ledger = Ledger::new();
            let mut request = get();
            request.extensions_mut().insert(ledger.clone());
            last.replace((ledger, upstream.calls()));
            // Held at first, by hand or by the call before.
            layer.hold_handle().hold(UNNAMED, SECOND);
            service.clone().oneshot(request)
        },
        |polls| {
            assert_eq!(upstream.in_flight(), 0, "after {polls} polls");
            assert_eq!(probe.reserved(), 0, "after {polls} polls");
            let (ledger, before) = &*last.borrow();
            let sends = upstream.calls() - before;
            assert_eq!(ledger.report().sends(), sends, "after {polls} polls");
        },
    )
    .await;
    assert!(
        drops >= 6,
        "held, readiness, send, wait, readiness, send: {drops}"
    );
}

fn classify(out: Result<&u16, Failure<'_>>) -> Reading {
    match out {
        Ok(200) => Reading::new(Class::Success),
        Ok(_) => Reading::new(Class::Throttled).with_hint(Some(Hint::After {
            wait: 4 * SECOND,
            source: Source::Custom("busy"),
        })),
        Err(_) => Reading::new(Class::Transient),
    }
}

#[tokio::test(start_paused = true)]
async fn over_carried_requests() {
    let upstream = Script::new([Step::answer(429), Step::answer(200)]);
    let service = RetryAfterLayer::new()
        .jitter(Jitter::None)
        .hold(HoldConfig::new())
        .unwrap()
        .adapter(Plain(classify))
        .layer(upstream.clone());
    let calls = [(); 3].map(|()| service.clone().oneshot(Carried::new(())));
    let [a, b, c] = calls;
    let (a, b, c) = tokio::join!(a, b, c);
    assert_eq!([a.unwrap(), b.unwrap(), c.unwrap()], [200; 3]);
    assert_eq!(upstream.times(), [0, 4, 4, 4].map(|s| s * SECOND));
}

/// Never held it costs no clock read, neither in the call nor in the poll.
#[tokio::test(start_paused = true)]
async fn never_held_it_reads_no_clock() {
    fn reads<S>(service: &mut S) -> u64
    where
        S: Service<Request<String>, Response = Response<String>, Error = BoxError>,
    {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let (_, reads) = clock::reads_during(|| {
            assert!(service.poll_ready(&mut cx).is_ready());
            let mut call = std::pin::pin!(service.call(get()));
            assert!(call.as_mut().poll(&mut cx).is_ready());
        });
        reads
    }
    let upstream = throttles("", Duration::ZERO);
    let mut without = RetryAfterLayer::new().layer(upstream.clone());
    let mut with = exact().layer(upstream);
    for _ in 0..3 {
        assert_eq!(reads(&mut with), reads(&mut without));
    }
}

#[test]
fn wrong_configuration_names_the_bound() {
    for (config, what) in [
        (HoldConfig::new().max_hold(Duration::ZERO), "max_hold"),
        (
            HoldConfig::new().without_hint(Duration::ZERO),
            "without_hint",
        ),
        (HoldConfig::new().most_keys(0), "most_keys"),
    ] {
        let error = RetryAfterLayer::new().hold(config).unwrap_err();
        assert_eq!(error.what(), what);
    }
}

#[test]
fn auto_traits() {
    fn all<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    all::<RetryAfterLayer<tower_spillway_core::Http, Holding>>();
    all::<SharedHold>();
    all::<tower_retry_after::hold::Held<Script<(), ()>>>();
}
