//! Outcomes that are read at the end of the response body.

mod frames;

use http::{HeaderMap, Request, Response};
use http_body::{Body, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{advance, timeout};
use tower::{Layer, Service, ServiceExt};
use tower_circuit_breaker::{
    AtBodyEnd, Breaker, BreakerConfig, CircuitBreaker, CircuitBreakerLayer, OutcomeBody, Refused,
    Rule, State,
};
use tower_spillway_core::{
    Abandoned, BodyEnd, BoxError, Class, Http, Ledger,
    ledger::LegPlan,
    testing::{
        contract::ReadyProbeLayer,
        drops,
        script::{Script, Step},
    },
};

use self::frames::{Do, Frames};
use crate::support::{SECOND, config};

type Req = Request<()>;
type Res = Response<Frames>;
type Upstream = Script<Req, Res>;
type Service_ = CircuitBreaker<Upstream, Http, AtBodyEnd>;

fn layer(config: BreakerConfig) -> CircuitBreakerLayer<Http, AtBodyEnd> {
    CircuitBreakerLayer::with_config(config)
        .unwrap()
        .outcome_at_body_end()
}

fn stream(steps: &[Do]) -> Res {
    Response::new(Frames::new(steps.iter().cloned()))
}

/// A breaker over what always answers so.
fn over(make: impl Fn() -> Res + Clone + Send + Sync + 'static) -> (Service_, Breaker) {
    let layer = layer(config());
    let upstream = Script::from_fn(move |_, _: &Req| Step::answer(make()));
    (layer.layer(upstream), layer.unnamed_breaker())
}

async fn head(service: &Service_) -> Response<OutcomeBody<Frames>> {
    service.clone().oneshot(Request::new(())).await.unwrap()
}

/// What is heard of an answer that is read as far as it goes, after two failures.
async fn heard(make: impl Fn() -> Res + Clone + Send + Sync + 'static) -> Heard {
    let (service, breaker) = over(make);
    let failed = |_| breaker.permit().unwrap().failure();
    (0..2).for_each(failed);
    let response = head(&service).await;
    let _ = response.into_body().collect().await;
    Heard::of(&breaker)
}

#[derive(Debug, PartialEq)]
enum Heard {
    Success,
    Failure,
    RateLimited,
    Nothing,
}

impl Heard {
    fn of(breaker: &Breaker) -> Self {
        let snapshot = breaker.snapshot();
        let run = snapshot.failures_in_a_row;
        match (snapshot.state, run, snapshot.bad_calls) {
            (State::Open, _, _) => Self::Failure,
            (State::Closed, 0, _) => Self::Success,
            (State::Closed, 2, 3) => Self::RateLimited,
            (State::Closed, 2, 2) => Self::Nothing,
            _ => panic!("{snapshot:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_is_heard_at_the_end_and_not_before() {
    let (service, breaker) = over(|| stream(&[Do::Data("a"), Do::Data("b")]));
    breaker.permit().unwrap().failure();
    let mut body = head(&service).await.into_body();
    for _ in 0..2 {
        assert_eq!(breaker.snapshot().failures_in_a_row, 1);
        body.frame().await.unwrap().unwrap();
    }
    assert_eq!(breaker.snapshot().failures_in_a_row, 1);
    assert!(body.frame().await.is_none());
    assert_eq!(breaker.snapshot().failures_in_a_row, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_is_a_failure() {
    let (service, breaker) = over(|| stream(&[Do::Data("a"), Do::Fail]));
    for n in 0..3 {
        assert_eq!(breaker.state(), State::Closed, "after {n}");
        let mut body = head(&service).await.into_body();
        body.frame().await.unwrap().unwrap();
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the connection broke");
        assert_eq!(breaker.snapshot().trips, u64::from(n == 2));
        assert!(body.frame().await.is_none(), "as the body inside");
    }
    assert_eq!(breaker.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_says_nothing() {
    let (service, breaker) = over(|| stream(&[Do::Data("a"), Do::Data("b"), Do::Fail]));
    breaker.permit().unwrap().failure();
    for frames in [0, 1, 2].repeat(20) {
        let mut body = head(&service).await.into_body();
        for _ in 0..frames {
            body.frame().await.unwrap().unwrap();
        }
        drop(body);
        let snapshot = breaker.snapshot();
        assert_eq!((snapshot.failures_in_a_row, snapshot.calls), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_no_success_settles_at_once() {
    let (service, breaker) = over(|| {
        let mut response = stream(&[Do::Data("sorry"), Do::Stall]);
        *response.status_mut() = http::StatusCode::BAD_GATEWAY;
        response
    });
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(head(&service).await);
    }
    assert_eq!(breaker.state(), State::Open);
    // Their bodies count no second time.
    drop(open);
    assert_eq!(breaker.snapshot().trips, 1);
    let error = service.clone().oneshot(Request::new(())).await.err();
    assert!(Refused::find(&*error.unwrap()).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_service_is_read_as_before() {
    let layer = layer(config());
    let upstream = Upstream::always(Step::fail(|| "down"));
    let service = layer.layer(upstream);
    for _ in 0..3 {
        let error = service.clone().oneshot(Request::new(())).await.err();
        assert_eq!(error.unwrap().to_string(), "down");
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_knows_its_end_need_not_be_polled_again() {
    // Empty from the first: settled with the head.
    let (service, breaker) = over(|| Response::new(Frames::new([]).knows_its_end()));
    breaker.permit().unwrap().failure();
    let response = head(&service).await;
    assert_eq!(breaker.snapshot().failures_in_a_row, 0);
    assert!(response.body().is_end_stream());

    // With its last frame.
    let (service, breaker) = over(|| Response::new(Frames::new([Do::Data("a")]).knows_its_end()));
    breaker.permit().unwrap().failure();
    let mut body = head(&service).await.into_body();
    assert_eq!(breaker.snapshot().failures_in_a_row, 1);
    body.frame().await.unwrap().unwrap();
    assert_eq!(breaker.snapshot().failures_in_a_row, 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_short_is_a_failure() {
    let cases = [
        // The hint, the header, what comes, and what it is.
        (Some(SizeHint::with_exact(4)), None, "abcd", Heard::Success),
        (Some(SizeHint::with_exact(4)), None, "abc", Heard::Failure),
        (Some(SizeHint::with_exact(4)), None, "", Heard::Failure),
        (None, Some("4"), "abcd", Heard::Success),
        (None, Some("4"), "abc", Heard::Failure),
        // The answer to HEAD, of a body that does not know it.
        (None, Some("4"), "", Heard::Success),
        // The body knows better than a header that was left from before it was unpacked.
        (
            Some(SizeHint::with_exact(3)),
            Some("9"),
            "abc",
            Heard::Success,
        ),
        (None, Some("no number"), "abc", Heard::Success),
        (None, None, "abc", Heard::Success),
    ];
    for (hint, header, text, wanted) in cases {
        let what = format!("{hint:?} {header:?} {text:?}");
        let out = heard(move || {
            let hint = hint.unwrap_or_default();
            let data = (!text.is_empty()).then_some(Do::Data(text));
            let mut response = Response::builder();
            if let Some(length) = header {
                response = response.header("content-length", length);
            }
            response.body(Frames::new(data).hint(hint)).unwrap()
        });
        assert_eq!(out.await, wanted, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_inside_knows_better_how_it_ended() {
    let told = |class, then: &'static [fn() -> Do]| {
        move || {
            let end = BodyEnd::new();
            let first = [Do::Data("a"), Do::Tell(end.clone(), class)];
            let mut response =
                stream(&[&first[..], &then.iter().map(|d| d()).collect::<Vec<_>>()].concat());
            response.extensions_mut().insert(end);
            response
        }
    };
    const EVENT: fn() -> Do = || Do::Data("event: error");
    const FAIL: fn() -> Do = || Do::Fail;
    for (class, then, wanted) in [
        (Class::Transient, &[EVENT][..], Heard::Failure),
        (Class::TargetDown, &[EVENT][..], Heard::Failure),
        (Class::CallerFault, &[EVENT][..], Heard::Nothing),
        (Class::Success, &[EVENT][..], Heard::Success),
        // All was there before the connection broke.
        (Class::Success, &[FAIL][..], Heard::Success),
    ] {
        assert_eq!(heard(told(class, then)).await, wanted, "{class}");
    }

    // It is set before the last frame: a caller that stops there has not left.
    let (service, breaker) = over(told(Class::Transient, &[EVENT, || Do::Stall]));
    for _ in 0..3 {
        assert_eq!(breaker.state(), State::Closed);
        let mut body = head(&service).await.into_body();
        body.frame().await.unwrap().unwrap();
        body.frame().await.unwrap().unwrap();
        drop(body);
    }
    assert_eq!(breaker.state(), State::Open);

    // Nor need it leave: the frame that comes with it settles, and so does a head.
    let (service, breaker) = half_open(told(Class::Success, &[EVENT, || Do::Stall])).await;
    let mut body = head(&service).await.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(breaker.snapshot().probes_out, 1);
    body.frame().await.unwrap().unwrap();
    let snapshot = breaker.snapshot();
    assert_eq!((snapshot.probes_out, snapshot.probes_succeeded), (0, 1));
    let (service, breaker) = half_open(|| {
        let end = BodyEnd::new();
        end.set(Class::Success.into());
        let mut response = stream(&[Do::Stall]);
        response.extensions_mut().insert(end);
        response
    })
    .await;
    let _open = head(&service).await;
    let snapshot = breaker.snapshot();
    assert_eq!((snapshot.probes_out, snapshot.probes_succeeded), (0, 1));

    // Set while the caller waits for a frame that never comes.
    let (service, breaker) = half_open(told(Class::Transient, &[|| Do::Stall])).await;
    let mut body = head(&service).await.into_body();
    body.frame().await.unwrap().unwrap();
    assert!(timeout(SECOND, body.frame()).await.is_err());
    drop(body);
    assert_eq!(breaker.state(), State::Open);

    // One that was not set says nothing.
    let unset = || {
        let mut response = stream(&[Do::Data("a"), Do::Fail]);
        response.extensions_mut().insert(BodyEnd::new());
        response
    };
    assert_eq!(heard(unset).await, Heard::Failure);
}

fn grpc(code: Option<&'static str>, pushback: Option<&'static str>) -> Res {
    let mut trailers = HeaderMap::new();
    for (name, value) in [("grpc-status", code), ("grpc-retry-pushback-ms", pushback)] {
        if let Some(value) = value {
            trailers.insert(name, value.parse().unwrap());
        }
    }
    let mut response = stream(&[Do::Data("message"), Do::Trailers(trailers)]);
    let kind = "application/grpc+proto".parse().unwrap();
    response.headers_mut().insert("content-type", kind);
    response
}

#[tokio::test(start_paused = true)]
async fn a_grpc_status_in_the_trailers_is_the_outcome() {
    for (code, pushback, wanted) in [
        (Some("0"), None, Heard::Success),
        (Some("3"), None, Heard::Nothing),
        (Some("8"), None, Heard::RateLimited),
        (Some("13"), None, Heard::Failure),
        (Some("14"), None, Heard::Failure),
        (Some("14"), Some("20"), Heard::RateLimited),
        (Some("14"), Some("-1"), Heard::Failure),
        (Some("no code"), None, Heard::Failure),
    ] {
        let out = heard(move || grpc(code, pushback)).await;
        assert_eq!(out, wanted, "{code:?} {pushback:?}");
    }
    // Trailers that say nothing of it are an end like any other; a gRPC call has no such end.
    let (service, breaker) =
        half_open(|| stream(&[Do::Trailers(HeaderMap::new()), Do::Stall])).await;
    let mut body = head(&service).await.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(breaker.snapshot().probes_succeeded, 1);
    let mut none = HeaderMap::new();
    none.insert("server-timing", "db".parse().unwrap());
    let plain = move || stream(&[Do::Data("a"), Do::Trailers(none.clone())]);
    assert_eq!(heard(plain).await, Heard::Success);
    let cut = || {
        let mut response = stream(&[Do::Data("message")]);
        let kind = "application/grpc".parse().unwrap();
        response.headers_mut().insert("content-type", kind);
        response
    };
    assert_eq!(heard(cut).await, Heard::Failure);
    let web = || {
        let mut response = stream(&[Do::Data("message, trailers")]);
        let kind = "application/grpc-web+proto".parse().unwrap();
        response.headers_mut().insert("content-type", kind);
        response
    };
    assert_eq!(heard(web).await, Heard::Success);

    // Heard with the trailers, not after them.
    let (service, breaker) = over(|| grpc(Some("0"), None));
    breaker.permit().unwrap().failure();
    let mut body = head(&service).await.into_body();
    body.frame().await.unwrap().unwrap();
    let trailers = body.frame().await.unwrap().unwrap().into_trailers();
    assert_eq!(trailers.ok().unwrap()["grpc-status"], "0");
    assert_eq!(breaker.snapshot().failures_in_a_row, 0);
}

/// A layer whose breaker is half-open over what answers so.
async fn half_open(make: impl Fn() -> Res + Clone + Send + Sync + 'static) -> (Service_, Breaker) {
    let (service, breaker) = over(make);
    breaker.trip();
    advance(5 * SECOND).await;
    (service, breaker)
}

// Row 3: the body of a probe dropped at every frame; the next is admitted at once.
#[tokio::test(start_paused = true)]
async fn row_3_a_streaming_probe_dropped_anywhere_gives_its_slot_back() {
    let steps = || stream(&[Do::Wait, Do::Data("a"), Do::Wait, Do::Data("b"), Do::Wait]);
    let (service, breaker) = half_open(steps).await;
    let held = breaker.clone();
    let probe = || {
        let (service, held) = (service.clone(), held.clone());
        async move {
            let mut body = service.oneshot(Request::new(())).await?.into_body();
            while let Some(frame) = body.frame().await {
                assert_eq!(held.snapshot().probes_out, 1, "while it streams");
                frame?;
            }
            Ok::<_, BoxError>(())
        }
    };
    let drops = drops::walk(probe, |k| {
        let snapshot = breaker.snapshot();
        assert_eq!(snapshot.state, State::HalfOpen, "after {k} polls");
        assert_eq!(snapshot.probes_out, 0, "after {k} polls");
        assert_eq!((snapshot.probes_succeeded, snapshot.probes_failed), (0, 0));
    })
    .await;
    assert_eq!(drops, 4, "before the first poll, and at each wait");
    assert_eq!(breaker.snapshot().probes_succeeded, 1);
}

// Row 3: a body that is never polled, and one that ends without a word of how.
#[tokio::test(start_paused = true)]
async fn row_3_no_way_out_keeps_the_slot_of_a_probe() {
    let ends: [(&[Do], usize); 5] = [
        (&[Do::Stall], 0),
        (&[Do::Data("a"), Do::Stall], 1),
        (&[Do::Data("a")], 2),
        (&[Do::Fail], 1),
        (&[Do::Data("a"), Do::Fail], 9),
    ];
    for (steps, polls) in ends {
        let own = steps.to_vec();
        let (service, breaker) = half_open(move || stream(&own)).await;
        let mut body = head(&service).await.into_body();
        assert_eq!(breaker.snapshot().probes_out, 1);
        for _ in 0..polls {
            let _ = body.frame().await;
        }
        drop(body);
        assert_eq!(breaker.snapshot().probes_out, 0, "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn probes_succeed_and_fail_at_the_end() {
    let (service, breaker) = half_open(|| stream(&[Do::Data("a")])).await;
    for _ in 0..2 {
        assert_eq!(breaker.state(), State::HalfOpen);
        head(&service).await.into_body().collect().await.unwrap();
    }
    assert_eq!(breaker.state(), State::Closed);

    let (service, breaker) = half_open(|| stream(&[Do::Data("a"), Do::Fail])).await;
    let body = head(&service).await.into_body();
    assert_eq!(breaker.state(), State::HalfOpen);
    assert!(body.collect().await.is_err());
    assert_eq!(breaker.state(), State::Open);
}

// A probe may stream for an hour; after its lease the next one may enter, and both are heard.
#[tokio::test(start_paused = true)]
async fn a_long_probe_blocks_the_others_for_its_lease_only() {
    let (service, breaker) = half_open(|| stream(&[Do::Data("a"), Do::Data("b")])).await;
    let mut long = head(&service).await.into_body();
    long.frame().await.unwrap().unwrap();
    let error = service.clone().oneshot(Request::new(())).await.err();
    assert!(Refused::find(&*error.unwrap()).is_some());
    advance(5 * SECOND).await;
    head(&service).await.into_body().collect().await.unwrap();
    assert_eq!(breaker.state(), State::HalfOpen);
    long.collect().await.unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

// The state has moved on when it ends.
#[tokio::test(start_paused = true)]
async fn a_stream_from_before_it_opened_is_not_heard() {
    let (service, breaker) = over(|| stream(&[Do::Data("a"), Do::Fail]));
    let old = head(&service).await.into_body();
    breaker.trip();
    breaker.reset();
    let before = breaker.snapshot();
    assert!(old.collect().await.is_err());
    assert_eq!(breaker.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_a_layer_above_cut_off_is_a_failure_if_it_was_old_enough() {
    for (age, why, counts) in [
        (5, Some(Abandoned::Deadline), 0),
        (6, Some(Abandoned::Deadline), 1),
        (6, Some(Abandoned::HedgeLost), 0),
        (6, None, 0),
    ] {
        let layer = layer(config());
        let upstream = Script::from_fn(|_, _: &Req| Step::answer(stream(&[Do::Stall])));
        let mut service = layer.layer(upstream);
        let mut request = Request::new(());
        let call = Ledger::enter(&Http::new(), &mut request);
        let leg = call.open_leg(LegPlan::new("opus".into()), tokio::time::Instant::now());
        request.extensions_mut().insert(leg.clone());
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        let mut body = response.into_body();
        assert!(timeout(age * SECOND, body.frame()).await.is_err());
        if let Some(why) = why {
            leg.abandon(why);
        }
        drop(body);
        let counted = layer.breaker("opus").snapshot().failures_in_a_row;
        assert_eq!(counted, counts, "{why:?} after {age} s");
    }
}

// Rules about latency ask for the time to the head.
#[tokio::test(start_paused = true)]
async fn a_long_stream_is_not_slow_and_a_late_head_is() {
    for (before_head, in_body, opens) in [(0, 60, false), (2, 0, true)] {
        let rules = [Rule::slow(SECOND, 0.5, 2, 3600 * SECOND)];
        let layer = layer(config().rules(rules));
        let upstream = Script::from_fn(move |_, _: &Req| {
            Step::answer(stream(&[Do::Data("a")])).after(before_head * SECOND)
        });
        let service = layer.layer(upstream);
        for _ in 0..4 {
            let body = head(&service).await.into_body();
            advance(in_body * SECOND).await;
            body.collect().await.unwrap();
            if opens && layer.unnamed_breaker().state() == State::Open {
                break;
            }
        }
        let opened = layer.unnamed_breaker().state() == State::Open;
        assert_eq!(opened, opens, "head {before_head} s, body {in_body} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_panics_is_a_failure() {
    let (service, breaker) = over(|| stream(&[Do::Data("a"), Do::Panic]));
    for _ in 0..3 {
        let body = head(&service).await.into_body();
        let read = tokio::spawn(async move { body.collect().await.map(drop) });
        assert!(read.await.unwrap_err().is_panic());
    }
    assert_eq!(breaker.state(), State::Open);
}

// The contract between `poll_ready` and `call`, and what passes untouched.
#[tokio::test(start_paused = true)]
async fn the_instance_that_was_ready_is_called() {
    let probe = ReadyProbeLayer::pending_once();
    let layer = layer(config());
    let upstream = Script::from_fn(|_, _: &Req| {
        let body = Frames::new([Do::Data("ab")]).hint(SizeHint::with_exact(2));
        Step::answer(Response::new(body))
    });
    let mut service = layer.layer(probe.layer(upstream));
    for _ in 0..3 {
        let response = service.ready().await.unwrap().call(Request::new(()));
        let response = response.await.unwrap();
        assert_eq!(response.body().size_hint().exact(), Some(2));
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, "ab");
    }
    // While open it is ready without the one inside, and refuses.
    layer.unnamed_breaker().force_open();
    let error = service.ready().await.unwrap().call(Request::new(())).await;
    assert!(Refused::find(&*error.err().unwrap()).is_some());
    drop(service);
    assert_eq!(probe.reserved(), 0);
}
