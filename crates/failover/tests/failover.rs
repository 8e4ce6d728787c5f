//! What a caller sees of a failover, over scripted targets.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::time::Duration;

use http::{Request, Response, StatusCode};
use tower::{Service, ServiceExt, util::BoxCloneSyncService};
use tower_failover::{AllRefused, FailoverService, NotPrepared, Target};
use tower_layer::Layer;
use tower_spillway_core::{
    BoxError, Cause, Class, Classified, Http, Ledger, Limits, NotReplayable, Reading, Refusal,
    Refused, ReplayableBody, RetryLayer, TimedOut, Verdict,
    attempt_timeout::AttemptTimeoutLayer,
    call::CallLayer,
    hint::{Hint, Source},
    testing::{
        contract::ReadyProbeLayer,
        drops,
        readiness::Readiness,
        script::{Script, Step},
    },
};

type Req = Request<String>;
type Res = Response<String>;
type Upstream = Script<Req, Res>;
type Boxed = BoxCloneSyncService<Req, Res, BoxError>;

const SECOND: Duration = Duration::from_secs(1);

fn status(status: u16) -> Res {
    let mut response = Response::new(format!("status {status}"));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn reading(status_code: u16, reading: Reading) -> Res {
    let mut response = status(status_code);
    response.extensions_mut().insert(reading);
    response
}

fn answers(code: u16) -> Upstream {
    Script::always(Step::answer(status(code))).recording()
}

fn refuses(wait: Option<Duration>) -> Upstream {
    Script::always(Step::fail(move || {
        Refused::new(Refusal::Open).retry_in(wait)
    }))
}

fn post() -> Req {
    Request::post("/chat")
        .header("authorization", "Bearer caller")
        .header("cookie", "caller")
        .header("x-kept", "yes")
        .body("hi".into())
        .unwrap()
}

fn get() -> Req {
    Request::get("/").body(String::new()).unwrap()
}

fn ledgered(mut request: Req) -> (Req, Ledger) {
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    (request, ledger)
}

fn targets<S: Clone>(services: impl IntoIterator<Item = S>) -> FailoverService<S, Req> {
    let names = ["opus", "gemini", "mistral"];
    let targets = names.into_iter().zip(services);
    FailoverService::new(targets.map(|(name, s)| Target::new(name, s).retry_ambiguous(true)))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_healthy_primary_serves_and_nobody_else_is_asked() {
    let (opus, gemini) = (answers(200), answers(200));
    let (request, ledger) = ledgered(post());
    let response = targets([opus.clone(), gemini.clone()])
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!((opus.calls(), gemini.calls()), (1, 0));
    let report = ledger.report();
    assert_eq!(report.target.unwrap().as_str(), "opus");
    assert_eq!(report.fallback_reason, None);
    assert_eq!(report.attempts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn classes_say_who_hops() {
    for (outcome, hops) in [
        (status(200), false),
        (status(302), false),
        (status(404), false),
        (status(501), false),
        (status(429), true),
        (status(500), true),
        (status(529), true),
        (reading(401, Reading::new(Class::TargetDown)), true),
        (reading(400, Reading::new(Class::NotHere)), true),
        (
            reading(
                429,
                Reading::new(Class::Throttled).with_hint(Some(Hint::Never)),
            ),
            true,
        ),
    ] {
        let first = outcome.status();
        let opus: Upstream = Script::always(Step::answer(outcome));
        let gemini = answers(200);
        let response = targets([opus.clone(), gemini.clone()])
            .oneshot(post())
            .await
            .unwrap();
        assert_eq!(gemini.calls(), usize::from(hops), "{first}");
        assert_eq!(response.status() == first, !hops || first == 200, "{first}");
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_of_the_caller_and_of_one_target_reach_no_other() {
    let (opus, gemini) = (answers(500), answers(200));
    let key = |value: &'static str| {
        move |request: &mut Req| {
            assert!(request.headers().get("x-opus").is_none());
            request
                .headers_mut()
                .insert("authorization", value.parse()?);
            request.headers_mut().insert("x-opus", "set".parse()?);
            request.extensions_mut().insert("set for one target");
            Ok(())
        }
    };
    let mut service = FailoverService::new([
        Target::new("opus", opus.clone())
            .prepare(key("Bearer opus"))
            .retry_ambiguous(true),
        Target::new("gemini", gemini.clone()).prepare(|request: &mut Req| {
            assert!(request.headers().get("x-opus").is_none());
            assert!(request.extensions().get::<&str>().is_none());
            Ok(())
        }),
    ])
    .unwrap();
    service.ready().await.unwrap().call(post()).await.unwrap();
    let (opus, gemini) = (opus.requests(), gemini.requests());
    assert_eq!(opus[0].headers()["authorization"], "Bearer opus");
    assert!(opus[0].headers().get("cookie").is_none());
    assert!(gemini[0].headers().get("authorization").is_none());
    assert_eq!(gemini[0].headers()["x-kept"], "yes");
    assert_eq!(gemini[0].body(), "hi");
}

#[tokio::test(start_paused = true)]
async fn inherited_credentials_reach_the_target_that_says_so() {
    let opus = answers(200);
    let service =
        FailoverService::new([Target::new("opus", opus.clone()).inherit_credentials()]).unwrap();
    service.oneshot(post()).await.unwrap();
    assert_eq!(
        opus.requests()[0].headers()["authorization"],
        "Bearer caller"
    );
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_post_does_not_hop_unless_allowed() {
    let run = |allowed: bool, request: Req| async move {
        let (opus, gemini) = (answers(500), answers(200));
        let service = FailoverService::new([
            Target::new("opus", opus).retry_ambiguous(allowed),
            Target::new("gemini", gemini.clone()),
        ])
        .unwrap();
        let (request, ledger) = ledgered(request);
        let response = service.oneshot(request).await.unwrap();
        (response, gemini.calls(), ledger.report())
    };
    let (response, hops, report) = run(false, post()).await;
    assert_eq!((response.status().as_u16(), hops), (500, 0));
    assert_eq!(response.body(), "status 500");
    assert_eq!(report.attempts[0].cause, Some(Cause::MayHaveBeenProcessed));
    assert_eq!(run(true, post()).await.1, 1);
    assert_eq!(run(false, get()).await.1, 1, "GET is idempotent");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_the_target_honours_makes_an_ambiguous_post_safe() {
    let (opus, gemini) = (answers(500), answers(200));
    let service = FailoverService::new([
        Target::new("opus", opus).honours_idempotency_key(true),
        Target::new("gemini", gemini.clone()),
    ])
    .unwrap();
    let mut request = post();
    request
        .headers_mut()
        .insert("idempotency-key", "k1".parse().unwrap());
    service.clone().oneshot(request).await.unwrap();
    assert_eq!(gemini.calls(), 1);
    service.oneshot(post()).await.unwrap();
    assert_eq!(gemini.calls(), 1, "no key, no hop");
}

#[tokio::test(start_paused = true)]
async fn all_refused_is_one_error_with_the_earliest_return_and_nothing_is_sent() {
    let service = targets([
        refuses(Some(9 * SECOND)),
        refuses(None),
        refuses(Some(4 * SECOND)),
    ]);
    let (request, ledger) = ledgered(post());
    let error = service.oneshot(request).await.unwrap_err();
    let refused = error.downcast_ref::<AllRefused>().unwrap();
    assert_eq!(refused.retry_in(), Some(4 * SECOND));
    let report = ledger.report();
    assert_eq!(report.sends(), 0);
    assert_eq!(report.attempts.len(), 3, "the refusals are on record");
    assert_eq!(report.target, None);
}

/// What one said a while ago has come nearer since.
#[tokio::test(start_paused = true)]
async fn the_earliest_return_counts_from_the_last_refusal() {
    let late = Step::fail(|| Refused::new(Refusal::Held).retry_in(Some(8 * SECOND)));
    for (first, retry_in) in [(9, 6 * SECOND), (60, 8 * SECOND), (2, SECOND / 1000)] {
        let service = targets([
            refuses(Some(first * SECOND)),
            Script::always(late.clone().after(3 * SECOND)),
        ]);
        let error = service.oneshot(post()).await.unwrap_err();
        let refused = error.downcast_ref::<AllRefused>().unwrap();
        assert_eq!(refused.retry_in(), Some(retry_in), "{first} s");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_later_targets_leave_the_last_real_outcome() {
    let service = targets([answers(500), refuses(None), refuses(None)]);
    let response = service.oneshot(post()).await.unwrap();
    assert_eq!(response.body(), "status 500");

    let service = targets([answers(500), answers(503), refuses(None)]);
    let (request, ledger) = ledgered(post());
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.body(), "status 503");
    assert_eq!(ledger.report().target.unwrap().as_str(), "gemini");
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_calls_the_request_wrong_gives_the_outcome_of_the_primary() {
    let response = targets([answers(529), answers(400), answers(200)])
        .oneshot(post())
        .await
        .unwrap();
    assert_eq!(response.body(), "status 529");

    let response = targets([refuses(None), answers(400)])
        .oneshot(post())
        .await
        .unwrap();
    assert_eq!(response.body(), "status 400", "the primary was never sent");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_prepared_goes_to_the_next_target_and_is_no_refusal() {
    let gemini = answers(200);
    let broken = |_: &mut Req| Err("no model".into());
    let service = FailoverService::new([
        Target::new("opus", answers(200)).prepare(broken),
        Target::new("gemini", gemini.clone()),
    ])
    .unwrap();
    service.oneshot(post()).await.unwrap();
    assert_eq!(gemini.calls(), 1);

    let service = FailoverService::new([
        Target::new("opus", answers(200)).prepare(broken),
        Target::new("gemini", answers(200)).prepare(broken),
    ])
    .unwrap();
    let (request, ledger) = ledgered(post());
    let error = service.oneshot(request).await.unwrap_err();
    let classified = error.downcast_ref::<Classified>().unwrap();
    assert_eq!(classified.reading().class(), Class::CallerFault);
    assert!(tower_spillway_core::error::find::<NotPrepared>(&*error).is_some());
    assert_eq!(ledger.report().sends(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_primary_that_is_not_ready_in_time_is_skipped() {
    let readiness = [Readiness::new(), Readiness::new()];
    readiness[0].set_pending();
    let (opus, gemini) = (answers(200), answers(200));
    let service = targets([
        readiness[0].layer(opus.clone()),
        readiness[1].layer(gemini.clone()),
    ]);
    let start = tokio::time::Instant::now();
    let (request, ledger) = ledgered(post());
    service.clone().oneshot(request).await.unwrap();
    assert_eq!(start.elapsed(), SECOND, "ready_within");
    assert_eq!((opus.calls(), gemini.calls()), (0, 1));
    assert_eq!(ledger.report().attempts[0].class, Class::Refused);

    readiness[0].set_failed("gone");
    service.clone().oneshot(post()).await.unwrap();
    assert_eq!((opus.calls(), gemini.calls()), (0, 2));

    readiness[0].set_ready();
    service.oneshot(post()).await.unwrap();
    assert_eq!((opus.calls(), gemini.calls()), (1, 2), "it comes back");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_failed_is_replaced_for_the_next_call() {
    let readiness = Readiness::new();
    let opus = answers(200);
    let mut service = targets([readiness.layer(opus.clone()), readiness.layer(answers(200))]);
    readiness.set_failed("gone");
    let error = service
        .ready()
        .await
        .unwrap()
        .call(post())
        .await
        .unwrap_err();
    assert!(error.is::<AllRefused>());
    readiness.set_ready();
    service.ready().await.unwrap().call(post()).await.unwrap();
    assert_eq!(opus.calls(), 1);
}

/// Retries everything that may pass, after a second.
fn retry() -> RetryLayer<
    impl Fn(&tower_spillway_core::History, &tower_spillway_core::Outcome<'_, Res>) -> Verdict + Clone,
> {
    RetryLayer::new(|_: &_, outcome: &tower_spillway_core::Outcome<'_, Res>| {
        let hint = outcome.hint().and_then(Hint::after);
        Verdict::Retry {
            after: hint.unwrap_or(SECOND),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn while_another_target_is_usable_one_resend_then_hop() {
    let (opus, gemini) = (answers(500), answers(200));
    let service = targets([retry().layer(opus.clone()), retry().layer(gemini.clone())]);
    let (request, ledger) = ledgered(post());
    service.oneshot(request).await.unwrap();
    assert_eq!((opus.calls(), gemini.calls()), (2, 1));
    let fallback = ledger.report().fallback_reason.unwrap();
    assert_eq!(fallback.cause, Some(Cause::OtherTargetFirst));
}

#[tokio::test(start_paused = true)]
async fn a_hung_primary_gets_one_send_then_the_hop() {
    let opus: Upstream = Script::always(Step::hang());
    let gemini = answers(200);
    let limited = AttemptTimeoutLayer::to_head(8 * SECOND);
    let service = targets([
        retry().layer(limited.layer(opus.clone())),
        retry().layer(limited.layer(gemini.clone())),
    ]);
    let start = tokio::time::Instant::now();
    service.oneshot(post()).await.unwrap();
    assert_eq!((opus.calls(), gemini.calls()), (1, 1));
    assert_eq!(start.elapsed(), 8 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn without_a_usable_target_the_primary_gets_its_full_limits() {
    let (opus, gemini) = (answers(500), answers(500));
    let service = FailoverService::new([
        Target::new("opus", retry().layer(opus.clone())).retry_ambiguous(true),
        Target::new("gemini", retry().layer(gemini.clone()))
            .retry_ambiguous(true)
            .usable_if(|| false),
    ])
    .unwrap();
    let response = service.oneshot(post()).await.unwrap();
    assert_eq!(response.body(), "status 500");
    assert_eq!((opus.calls(), gemini.calls()), (3, 3), "the last one too");
}

#[tokio::test(start_paused = true)]
async fn a_wait_above_patience_hops_at_once_and_an_equal_one_is_waited() {
    let run = |wait: Duration| async move {
        let hinted = reading(
            429,
            Reading::new(Class::Throttled).with_hint(Some(Hint::After {
                wait,
                source: Source::RetryAfterSeconds,
            })),
        );
        let opus: Upstream = Script::new([Step::answer(hinted), Step::answer(status(200))]);
        let gemini = answers(200);
        let service = targets([retry().layer(opus.clone()), retry().layer(gemini.clone())]);
        let start = tokio::time::Instant::now();
        service.oneshot(post()).await.unwrap();
        (opus.calls(), gemini.calls(), start.elapsed())
    };
    assert_eq!(run(2 * SECOND).await, (2, 0, 2 * SECOND));
    assert_eq!(run(3 * SECOND).await, (1, 1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_retrying_layer_outside_waits_only_when_nothing_was_sent() {
    // Refused everywhere for 4 s, then healthy.
    let start = tokio::time::Instant::now();
    let gate = move |_: usize, _: &Req| match start.elapsed() {
        t if t < 4 * SECOND => {
            let wait = 4 * SECOND - t;
            Step::fail(move || Refused::new(Refusal::Open).retry_in(Some(wait)))
        }
        _ => Step::answer(status(200)),
    };
    let opus: Upstream = Script::from_fn(gate);
    let service = retry().layer(targets([opus.clone(), opus.clone()]));
    let (request, ledger) = ledgered(post());
    service.oneshot(request).await.unwrap();
    assert_eq!(start.elapsed(), 4 * SECOND);
    assert_eq!(ledger.report().sends(), 1);

    // Failed everywhere: one round, whatever the layer outside wants.
    let (opus, gemini) = (answers(500), answers(503));
    let ambiguous = Http::new().retry_ambiguous(true);
    let service = retry()
        .adapter(ambiguous)
        .layer(targets([opus.clone(), gemini.clone()]));
    let (request, ledger) = ledgered(post());
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.body(), "status 503");
    assert_eq!((opus.calls(), gemini.calls()), (1, 1));
    assert_eq!(
        ledger.report().sends(),
        2,
        "the outer attempt is none of its own"
    );
}

#[tokio::test(start_paused = true)]
async fn the_deadline_and_the_cap_of_the_call_bind_hops() {
    let slow: Upstream = Script::always(Step::answer(status(500)).after(5 * SECOND));
    let gemini: Upstream = Script::always(Step::hang());
    let call = CallLayer::new().deadline(8 * SECOND);
    let (request, ledger) = ledgered(post());
    let error = call
        .layer(targets([slow, gemini]))
        .oneshot(request)
        .await
        .unwrap_err();
    assert!(error.is::<TimedOut>());
    let report = ledger.report();
    assert_eq!(report.latency, 8 * SECOND);
    assert_eq!(report.attempts[1].class, Class::Cancelled);

    let gemini = answers(200);
    let capped = CallLayer::new().max_sends(1);
    let service = capped.layer(targets([answers(500), gemini.clone()]));
    let response = service.oneshot(post()).await.unwrap();
    assert_eq!(response.body(), "status 500");
    assert_eq!(gemini.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn limits_of_one_leg_do_not_bind_the_next() {
    let one = retry().limits(Limits {
        max_attempts: Some(1),
        ..Limits::default()
    });
    let (opus, gemini) = (answers(500), answers(500));
    let service = targets([
        Boxed::new(one.layer(opus.clone())),
        Boxed::new(retry().layer(gemini.clone())),
    ]);
    service.oneshot(post()).await.unwrap();
    assert_eq!((opus.calls(), gemini.calls()), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn every_target_is_polled_ready_before_its_call() {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let mut service = targets([
            probe.layer(answers(500)),
            probe.layer(answers(503)),
            probe.layer(answers(200)),
        ]);
        for _ in 0..3 {
            let response = service.ready().await.unwrap().call(post()).await.unwrap();
            assert_eq!(response.status(), 200);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_anywhere_each_attempt_is_recorded_once() {
    let failing = || Script::always(Step::answer(status(500)).after(SECOND));
    let ledgers = std::cell::RefCell::new(Vec::<Ledger>::new());
    for driven in [false, true] {
        let make = || {
            let (opus, gemini): (Upstream, Upstream) = (failing(), failing());
            let wrap = |s: Upstream| match driven {
                true => Boxed::new(retry().layer(s)),
                false => Boxed::new(s),
            };
            let (request, ledger) = ledgered(post());
            ledgers.borrow_mut().push(ledger);
            let service = targets([wrap(opus.clone()), wrap(gemini.clone())]);
            async move {
                let out = service.oneshot(request).await;
                (out, opus.calls() + gemini.calls())
            }
        };
        let walked = drops::walk(make, |k| {
            let report = ledgers.borrow().last().unwrap().report();
            let cancelled = report
                .attempts
                .iter()
                .filter(|a| a.class == Class::Cancelled)
                .count();
            assert!(cancelled <= 1, "after {k} polls: {:?}", report.attempts);
        })
        .await;
        assert!(walked >= 3, "{walked}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_before_an_answer_comes_up_got_it_from_nobody() {
    let never = |_: Res| std::future::pending::<Result<Res, BoxError>>();
    let driven = || retry().layer(answers(200));
    let inside = || FailoverService::new([Target::new("vertex", driven())]).unwrap();
    for stuck in [
        Boxed::new(driven().and_then(never)),
        Boxed::new(inside().and_then(never)),
    ] {
        let (request, ledger) = ledgered(get());
        let call = targets([stuck]).oneshot(request);
        tokio::time::timeout(SECOND, call).await.unwrap_err();
        let report = ledger.report();
        assert_eq!(report.attempts[0].class, Class::Success);
        assert_eq!(report.target, None);
    }
}

#[test]
fn wrong_configuration_names_the_bound() {
    let none: [Target<Upstream, Req>; 0] = [];
    assert_eq!(
        FailoverService::new(none).unwrap_err().to_string(),
        "targets must be at least one"
    );
    let twice = [
        Target::<_, Req>::new("opus", answers(200)),
        Target::new("opus", answers(200)),
    ];
    assert_eq!(
        FailoverService::new(twice).unwrap_err().to_string(),
        "target name must be given to one target only"
    );
    let never = [Target::<_, Req>::new("opus", answers(200)).sends_while_others(0)];
    assert!(FailoverService::new(never).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_between_two_attempts_does_not_hide_what_was_answered() {
    // Sent once, then refused: a breaker opened while the driver waited.
    let refusing_after = |code: u16| -> Upstream {
        Script::from_fn(move |n, _| match n {
            1 => Step::answer(status(code)),
            _ => Step::fail(|| Refused::new(Refusal::Open)),
        })
    };
    let service = targets([
        retry().layer(refusing_after(500)),
        retry().layer(refusing_after(503)),
    ]);
    let (request, ledger) = ledgered(post());
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.body(), "status 503", "the last real outcome");
    let report = ledger.report();
    assert_eq!(report.sends(), 2);
    assert_eq!(report.fallback_reason.unwrap().class, Class::Transient);
}

/// A response that is too large to be held while a further send is waited for.
fn large(code: u16) -> Res {
    let mut response = status(code);
    *response.body_mut() = "x".repeat(65 * 1024);
    response
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_further_send_does_not_say_that_nothing_was_sent() {
    let refused = || Refused::new(Refusal::Held).retry_in(Some(SECOND));
    let steps = [Step::answer(large(503)), Step::fail(refused)];
    let opus = Script::new(steps.into_iter().cycle().take(80));
    let targets = targets([retry().layer(opus)]);
    let (request, ledger) = ledgered(get());
    let error = retry().layer(targets).oneshot(request).await.unwrap_err();
    assert!(!error.is::<AllRefused>());
    assert_eq!(
        ledger.report().sends(),
        1,
        "no further round of all targets"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_copied_ends_in_the_refusal_of_its_target() {
    struct Once;
    impl ReplayableBody for Once {
        fn try_replay(&self) -> Result<Self, NotReplayable> {
            Err(NotReplayable::new("one shot"))
        }
    }
    let refuses = |name: &'static str| {
        let service = Script::<Request<Once>, Res>::always(Step::fail(|| {
            Refused::new(Refusal::Open).retry_in(Some(SECOND))
        }));
        Target::new(name, service)
    };
    let service = FailoverService::new([refuses("opus"), refuses("gemini")]).unwrap();
    let ledger = Ledger::new();
    let mut request = Request::new(Once);
    request.extensions_mut().insert(ledger.clone());
    let error = service.oneshot(request).await.unwrap_err();
    assert_eq!(
        error.downcast_ref::<Refused>().map(Refused::refusal),
        Some(Refusal::Open),
        "gemini was not asked, so not every target refused"
    );
    let report = ledger.report();
    assert_eq!(report.attempts.len(), 1);
    assert_eq!(report.attempts[0].cause, Some(Cause::NotReplayable));
}

#[tokio::test(start_paused = true)]
async fn a_failover_inside_a_target_leaves_waits_to_the_targets_outside() {
    let wait = reading(
        429,
        Reading::new(Class::Throttled).with_hint(Some(Hint::After {
            wait: 50 * SECOND,
            source: Source::RetryAfterSeconds,
        })),
    );
    let inside = FailoverService::new([Target::new(
        "opus",
        retry().layer(Script::always(Step::answer(wait))),
    )]);
    let service = targets([Boxed::new(inside.unwrap()), Boxed::new(answers(200))]);
    let start = tokio::time::Instant::now();
    let response = service.oneshot(get()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(start.elapsed(), Duration::ZERO, "gemini is usable");
}

#[tokio::test(start_paused = true)]
async fn a_cap_inside_a_target_binds_a_failover_below_it() {
    let (opus, vertex) = (answers(429), answers(429));
    let inside = FailoverService::new([
        Target::new("opus", retry().layer(opus.clone())),
        Target::new("vertex", retry().layer(vertex.clone())),
    ]);
    let capped = CallLayer::new().max_sends(1).layer(inside.unwrap());
    let service = targets([Boxed::new(capped), Boxed::new(answers(200))]);
    service.oneshot(get()).await.unwrap();
    assert_eq!((opus.calls(), vertex.calls()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_earlier_send_in_doubt_keeps_a_request_from_the_next_target() {
    let opus = Script::new([Step::answer(status(500)), Step::answer(status(429))]);
    let gemini = answers(200);
    // The retrying layer may send again here; nobody allowed to do the work elsewhere too.
    let here = retry().adapter(Http::new().retry_ambiguous(true));
    let service = FailoverService::new([
        Target::new("opus", Boxed::new(here.layer(opus))),
        Target::new("gemini", Boxed::new(gemini.clone())),
    ])
    .unwrap();
    let (request, ledger) = ledgered(post());
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(gemini.calls(), 0);
    let cause = ledger.report().attempts[1].cause;
    assert_eq!(cause, Some(Cause::MayHaveBeenProcessed));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_ready_long_after_the_deadline_is_not_sent_to() {
    let readiness = Readiness::new();
    readiness.set_pending();
    let opus = answers(200);
    let service = targets([readiness.layer(opus.clone())]).ready_within(9 * SECOND);
    let client = CallLayer::new().deadline(5 * SECOND).layer(service);
    let answer = tokio::spawn(client.oneshot(get()));
    tokio::task::yield_now().await;
    // A machine that slept.
    tokio::time::advance(3600 * SECOND).await;
    readiness.set_ready();
    assert!(answer.await.unwrap().is_err());
    assert_eq!(opus.calls(), 0);
}
