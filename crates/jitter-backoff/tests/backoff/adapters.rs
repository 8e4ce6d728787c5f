//! The layer alone, over each adapter.

use http::{Request, Response};
use http_body_util::Full;
use tower::{Layer, ServiceExt};
use tower_jitter_backoff::{Jitter, JitterBackoffLayer};
use tower_spillway_core::{
    Carried, Class, Detached, Http, Ledger, Plain,
    testing::script::{Script, Step},
};

use crate::support::{MS, classify};

fn fails_once() -> [Step<&'static str>; 2] {
    [Step::fail(|| "down"), Step::answer("up")]
}

#[tokio::test(start_paused = true)]
async fn over_any_clone_request() {
    let upstream = Script::new(fails_once()).recording();
    let service = JitterBackoffLayer::new()
        .adapter(Detached(classify::<&str>))
        .layer(upstream.clone());
    assert_eq!(service.oneshot("ping").await.unwrap(), "up");
    assert_eq!(upstream.requests(), ["ping", "ping"]);
}

#[tokio::test(start_paused = true)]
async fn over_carried_requests_with_a_report() {
    let upstream = Script::new(fails_once());
    let service = JitterBackoffLayer::new()
        .jitter(Jitter::None)
        .adapter(Plain(classify::<&str>))
        .layer(upstream.clone());
    let ledger = Ledger::new();
    let request = Carried::new("ping".to_owned()).with_ledger(ledger.clone());
    assert_eq!(service.oneshot(request).await.unwrap(), "up");
    let report = ledger.report();
    let classes: Vec<_> = report.attempts.iter().map(|a| a.class).collect();
    assert_eq!(classes, [Class::Transient, Class::Success]);
    assert_eq!(report.attempts[0].wait, Some(100 * MS));
}

#[tokio::test(start_paused = true)]
async fn over_http_with_a_body_that_can_be_replayed() {
    type Body = Full<&'static [u8]>;
    let upstream = Script::new([
        Step::fail(|| std::io::Error::other("reset")),
        Step::answer_with(|| Response::new(Body::from(&b"up"[..]))),
    ]);
    let service = JitterBackoffLayer::new()
        .adapter(Http::new().retry_ambiguous(true))
        .layer(upstream.clone());
    let request = Request::post("/").body(Body::from(&b"ping"[..])).unwrap();
    let answer = service.oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let report = answer.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(report.sends(), 2);
}

/// The original error is returned, and can be downcast.
#[tokio::test(start_paused = true)]
async fn the_last_error_comes_back_as_it_was() {
    let upstream = Script::<_, ()>::always(Step::fail(|| std::io::Error::other("reset")));
    let service = JitterBackoffLayer::new()
        .adapter(Detached(classify::<()>))
        .layer(upstream.clone());
    let error = service.oneshot(()).await.unwrap_err();
    assert_eq!(
        error.downcast_ref::<std::io::Error>().unwrap().to_string(),
        "reset"
    );
    assert_eq!(upstream.calls(), 3);
}
