//! The layer alone, over each adapter.

use std::time::Duration;

use http::{Request, Response};
use http_body_util::Full;
use tower::{Layer, ServiceExt};
use tower_retry_after::RetryAfterLayer;
use tower_spillway_core::{
    Carried, Class, Detached, Failure, Ledger, Plain, Reading,
    hint::{Hint, Jitter, Source},
    testing::script::{Script, Step},
};

use crate::support::SECOND;

/// An upstream's own way to say "come back in so many seconds".
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Busy(u64),
    Fine,
}

fn classify(result: Result<&Answer, Failure<'_>>) -> Reading {
    match result {
        Ok(Answer::Fine) => Reading::new(Class::Success),
        Ok(Answer::Busy(secs)) => Reading::new(Class::Throttled).with_hint(Some(Hint::After {
            wait: Duration::from_secs(*secs),
            source: Source::Custom("busy"),
        })),
        Err(_) => Reading::new(Class::Transient),
    }
}

fn busy_once() -> [Step<Answer>; 2] {
    [Step::answer(Answer::Busy(7)), Step::answer(Answer::Fine)]
}

#[tokio::test(start_paused = true)]
async fn over_any_clone_request() {
    let upstream = Script::new(busy_once()).recording();
    let service = RetryAfterLayer::new()
        .jitter(Jitter::None)
        .adapter(Detached(classify))
        .layer(upstream.clone());
    assert_eq!(service.oneshot("ping").await.unwrap(), Answer::Fine);
    assert_eq!(upstream.requests(), ["ping", "ping"]);
    assert_eq!(upstream.times(), [Duration::ZERO, 7 * SECOND]);
}

#[tokio::test(start_paused = true)]
async fn over_carried_requests_with_a_report() {
    let upstream = Script::new(busy_once());
    let service = RetryAfterLayer::new()
        .jitter(Jitter::None)
        .adapter(Plain(classify))
        .layer(upstream.clone());
    let ledger = Ledger::new();
    let request = Carried::new("ping".to_owned()).with_ledger(ledger.clone());
    assert_eq!(service.oneshot(request).await.unwrap(), Answer::Fine);
    let report = ledger.report();
    let classes: Vec<_> = report.attempts.iter().map(|a| a.class).collect();
    assert_eq!(classes, [Class::Throttled, Class::Success]);
    assert_eq!(report.attempts[0].wait, Some(7 * SECOND));
}

/// A 429 was not processed, so even a POST is sent again.
#[tokio::test(start_paused = true)]
async fn over_http_with_a_body_that_can_be_replayed() {
    type Body = Full<&'static [u8]>;
    let upstream = Script::new([
        Step::answer_with(|| {
            let builder = Response::builder().status(429).header("retry-after", "1");
            builder.body(Body::default()).unwrap()
        }),
        Step::answer_with(|| Response::new(Body::from(&b"up"[..]))),
    ]);
    let service = RetryAfterLayer::new().layer(upstream.clone());
    let request = Request::post("/").body(Body::from(&b"ping"[..])).unwrap();
    let answer = service.oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let report = answer.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(report.sends(), 2);
}
